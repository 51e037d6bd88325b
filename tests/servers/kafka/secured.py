"""A broker that asks who one is, and knows who may do what.

Its listeners are TLS (encrypted), MUTUAL (the client shows a certificate too), SASL (users, in the
clear), SECURE (users, encrypted) and PLAINTEXT, where everybody may do all, for the test itself.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.servers.kafka.broker import Broker
from tests.servers.kafka.certificates import Authority, encrypt
from tests.servers.kafka.client import Kafka

PASSWORDS = {"alice": 'it\'s "4"; a\\b', "bob": "bob-secret"}
"""The users: alice may do all, bob nothing but what a test allows him."""

KEY_PASSWORD = "key-secret"
LISTENERS = {"TLS": "SSL", "MUTUAL": "SSL", "SASL": "SASL_PLAINTEXT", "SECURE": "SASL_SSL"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_SECURITY = "org.apache.kafka.common.security"


@dataclass(frozen=True)
class Secured:
    """A running broker and what its clients need.

    Attributes:
        broker: the broker; `broker.address("SECURE")`.
        authority: the file of who signed the broker's certificate (PEM).
        stranger: the file of an authority that signed nothing here.
        certificate: alice's certificate (PEM).
        key: its key (PEM).
        encrypted_key: the same behind KEY_PASSWORD.
        signer: the key that tokens are signed with.
    """

    broker: Broker
    authority: Path
    stranger: Path
    certificate: Path
    key: Path
    encrypted_key: Path
    signer: rsa.RSAPrivateKey

    @property
    def kafka(self) -> Kafka:
        """A client that may do all."""
        return self.broker.client()

    def token(self, user: str, lives: float = 3600) -> str:
        """Return a token that says who somebody is, for so many seconds."""
        now = int(time.time())
        claims = {"sub": user, "iat": now - 10, "exp": now + int(lives), "scope": "streams"}
        return jwt.encode(claims, self.signer, "RS256", {"kid": "streamer-tests"})

    def client(self, listener: str, user: str = "alice", mechanism: str = "PLAIN") -> Kafka:
        """Return a client of a listener, as librdkafka is told to be it."""
        settings: dict[str, Any] = {"security.protocol": LISTENERS[listener]}
        if LISTENERS[listener].endswith("SSL"):
            settings["ssl.ca.location"] = str(self.authority)
        if listener == "MUTUAL":
            settings["ssl.certificate.location"] = str(self.certificate)
            settings["ssl.key.location"] = str(self.key)
        if LISTENERS[listener].startswith("SASL"):
            settings["sasl.mechanism"] = mechanism
            if mechanism == "OAUTHBEARER":
                settings["oauth_cb"] = lambda _: (self.token(user), time.time() + 3600)
            else:
                settings |= {"sasl.username": user, "sasl.password": PASSWORDS[user]}
        return Kafka(self.broker.address(listener), settings)

    def allow(
        self, user: str, operation: str, kind: str, name: str, prefixed: bool = False
    ) -> None:
        """Allow somebody something: `allow("bob", "READ", "TOPIC", "lights")`.

        Args:
            user: who.
            operation: what.
            kind: with what.
            name: its name.
            prefixed: whether the name is what names begin with.
        """
        from confluent_kafka import admin

        pattern = admin.ResourcePatternType["PREFIXED" if prefixed else "LITERAL"]

        rule = admin.AclBinding(
            admin.ResourceType[kind],
            name,
            pattern,
            f"User:{user}",
            "*",
            admin.AclOperation[operation],
            admin.AclPermissionType.ALLOW,
        )
        kafka = self.kafka
        kafka.admin.create_acls([rule])[rule].result(60)


@contextmanager
def secured_broker(directory: Path) -> Iterator[Secured]:
    """Run one with listeners of all kinds."""
    directory.mkdir(parents=True, exist_ok=True)
    authority = Authority(directory)
    certificate, key = authority.sign("broker")
    (directory / "broker.pem").write_bytes(key.read_bytes() + certificate.read_bytes())
    certificate, key = authority.sign("alice")
    encrypted = encrypt(key, KEY_PASSWORD)
    signer = rsa.generate_private_key(65537, 2048)
    keys = directory / "keys.json"
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(signer.public_key()))
    keys.write_text(json.dumps({"keys": [{**public, "kid": "streamer-tests", "use": "sig"}]}))
    scram = [
        f"{mechanism}=[name={user},password={password}]"
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        for user, password in PASSWORDS.items()
    ]
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"
    settings = _settings(directory, authority.file, keys)
    with Broker(directory, settings, LISTENERS, scram, [allowed]) as broker:
        stranger = Authority(directory, "stranger").file
        yield Secured(broker, authority.file, stranger, certificate, key, encrypted, signer)


def _settings(directory: Path, authority: Path, keys: Path) -> dict[str, str]:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority),
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
    }
    users = " ".join(f"user_{user}={_quoted(word)}" for user, word in PASSWORDS.items())
    modules = {
        "plain": f"{_SECURITY}.plain.PlainLoginModule required {users};",
        "scram-sha-256": f"{_SECURITY}.scram.ScramLoginModule required;",
        "scram-sha-512": f"{_SECURITY}.scram.ScramLoginModule required;",
        "oauthbearer": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="broker";',
    }
    for listener in ("sasl", "secure"):
        for mechanism, module in modules.items():
            settings[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = module
        settings[f"listener.name.{listener}.oauthbearer.sasl.server.callback.handler.class"] = (
            f"{_SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        )
    return settings


def _quoted(word: str) -> str:
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
