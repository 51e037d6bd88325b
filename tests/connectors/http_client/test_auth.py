"""Who sends a request: OAuth 1 and 2, JWTs, passwords, and TLS certificates, on real servers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import ssl
from pathlib import Path
from urllib.parse import parse_qs, quote_plus, urlencode

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from streamer.connectors.http_client.errors import HttpError
from streamer.core.message import Message
from tests.certificates import certificate
from tests.components.outputs.scripted import Seen
from tests.connectors.http_client.client import client
from tests.servers.http import Reply, Server, http_server

A = [Message(b"a")]


def authorization(server: Server) -> str:
    return server.asked[-1].headers["authorization"]


def test_oauth_1_signs_the_whole_url():
    with http_server() as server:
        keys = "consumer_key: ck, consumer_secret: cs, access_token: at, access_token_secret: as"
        client(f"url: '{server.url}/x?b=c d', oauth: {{enabled: true, {keys}}}").send(A, Seen().ex)
    header = authorization(server)
    assert header.startswith("OAuth ")
    found = dict(re.findall(r'(\w+)="([^"]*)"', header))
    signature = found.pop("oauth_signature")
    text = (
        f"POST&{quote_plus(server.url + '/x?b=c d')}&{quote_plus(urlencode(sorted(found.items())))}"
    )
    digest = hmac.new(b"cs&as", text.encode(), hashlib.sha1).digest()
    assert signature == quote_plus(base64.b64encode(digest).decode())


@pytest.mark.parametrize("method", ["RS256", "RS512", "EdDSA"])
def test_a_jwt_is_signed_with_the_key_of_a_file(tmp_path, method):
    made = (
        ed25519.Ed25519PrivateKey.generate()
        if method == "EdDSA"
        else rsa.generate_private_key(public_exponent=65537, key_size=2048)
    )
    pem = made.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (tmp_path / "key").write_bytes(pem)
    with http_server() as server:
        fields = f"private_key_file: {tmp_path}/key, signing_method: {method}"
        client(
            f"url: '{server.url}', jwt: {{enabled: true, {fields}, "
            "claims: {sub: me}, headers: {kid: k}}"
        ).send(A, Seen().ex)
    kind, token = authorization(server).split()
    assert kind == "Bearer"
    assert jwt.decode(token, made.public_key(), [method]) == {"sub": "me"}
    assert jwt.get_unverified_header(token)["kid"] == "k"


def test_a_key_that_is_not_there_is_told():
    fields = "enabled: true, private_key_file: 'no', signing_method: RS256"
    asked = client(f"url: 'http://x', retries: 0, jwt: {{{fields}}}")
    with pytest.raises(HttpError, match="failed to read private key 'no'"):
        asked.send(A, Seen().ex)


def tokens(asked, given: list[dict[str, list[str]]]) -> Reply:
    """Answer as a server of tokens that takes the client's secret in the body only."""
    form = parse_qs(asked.body.decode())
    if "client_secret" not in form:
        return Reply(401)
    given.append(form)
    return Reply(
        200, json.dumps({"access_token": f"t{len(given)}", "token_type": "bearer"}).encode()
    )


def test_a_token_of_oauth_2_is_fetched_once():
    given: list[dict[str, list[str]]] = []
    with http_server(lambda asked: tokens(asked, given)) as issuer, http_server() as server:
        asking = client(
            f"url: '{server.url}', oauth2: {{enabled: true, client_key: k, client_secret: s, "
            f"token_url: '{issuer.url}', scopes: [a, b], endpoint_params: {{audience: [x]}}}}"
        )
        asking.send(A, Seen().ex)
        asking.send(A, Seen().ex)
    assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer t1"] * 2
    [form] = given
    assert form == {
        "grant_type": ["client_credentials"],
        "audience": ["x"],
        "scope": ["a b"],
        "client_id": ["k"],
        "client_secret": ["s"],
    }


def test_a_token_can_be_had_for_a_refresh_token_and_expires():
    left = iter([5, 3600])

    def answers(asked):
        body = {"access_token": asked.body.decode()[-2:], "expires_in": next(left)}
        return Reply(200, json.dumps(body | {"refresh_token": "r2"}).encode())

    with http_server(answers) as issuer, http_server() as server:
        asking = client(
            f"url: '{server.url}', oauth2: {{enabled: true, client_key: k, client_secret: s, "
            f"token_url: '{issuer.url}', "
            "endpoint_params: {grant_type: [refresh_token], refresh_token: [r1]}}"
        )
        for _ in range(3):
            asking.send(A, Seen().ex)
    # The first one is too near its end to be used again.
    assert [one.headers["authorization"] for one in server.asked] == [
        "Bearer r1",
        "Bearer r2",
        "Bearer r2",
    ]


def test_a_token_that_is_refused_is_a_failure():
    with http_server(lambda asked: Reply(403, b"go away")) as issuer:
        asking = client(
            "url: 'http://127.0.0.1:1', retries: 0, "
            f"oauth2: {{enabled: true, token_url: '{issuer.url}'}}"
        )
        with pytest.raises(HttpError, match="cannot fetch token: 403 Forbidden, Response: go away"):
            asking.send(A, Seen().ex)
    assert len(issuer.asked) == 2


def test_tls_with_certificates_of_both_sides(tmp_path: Path):
    server_files = certificate(tmp_path / "server", "127.0.0.1")
    own_files = certificate(tmp_path / "own", "me", password=b"secret")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*server_files)
    context.load_verify_locations(own_files[0])
    context.verify_mode = ssl.CERT_REQUIRED
    with http_server(tls=context) as server:
        shown = f"cert_file: '{own_files[0]}', key_file: '{own_files[1]}', password: secret"
        inline = json.dumps(
            {
                "cert": own_files[0].read_text(),
                "key": own_files[1].read_text(),
                "password": "secret",
            }
        )
        trusted = f"root_cas_file: '{server_files[0]}'"
        for tls in (
            f"{trusted}, client_certs: [{{{shown}}}]",
            f"skip_cert_verify: true, client_certs: [{inline}]",
        ):
            asking = client(f"url: '{server.url}', retries: 0, tls: {{enabled: true, {tls}}}")
            assert asking.send(A, Seen().ex).status == 200
        for tls in ("enabled: false", "enabled: true"):
            with pytest.raises(HttpError, match="certificate"):
                client(f"url: '{server.url}', retries: 0, tls: {{{tls}}}").send(A, Seen().ex)
    assert len(server.asked) == 2
