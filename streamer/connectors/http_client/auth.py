"""Authorization headers of requests, made anew for each request."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import threading
import time
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

from streamer.connectors.http_client.auth_fields import BASIC_AUTH, ENABLED, JWT, OAUTH
from streamer.connectors.http_client.errors import HttpError
from streamer.core.permissions import Permissions
from streamer.sdk.spec import ParsedFields

AUTHORIZATION: Final = "Authorization"


class RequestSigner:
    """Signs requests as the fields `oauth`, `jwt` and `basic_auth` say.

    Where several are enabled the last of these wins, as in Benthos.
    """

    def __init__(self, parsed: ParsedFields) -> None:
        """Take the fields of a client."""
        self._oauth = _if_enabled(parsed[OAUTH])
        self._jwt = _if_enabled(parsed[JWT])
        self._basic = _if_enabled(parsed[BASIC_AUTH])
        self._key: Any = None
        self._lock = threading.Lock()

    def header(self, method: str, url: str) -> str | None:
        """Return the Authorization header of a request; None without one.

        Raises:
            HttpError: the key of a JWT cannot be read.
        """
        if self._basic is not None:
            pair = f"{self._basic['username']}:{self._basic['password']}".encode()
            return f"Basic {base64.b64encode(pair).decode()}"
        if self._jwt is not None:
            return f"Bearer {self._sign_jwt(self._jwt)}"
        if self._oauth is not None:
            return _sign_oauth(self._oauth, method, url)
        return None

    def _sign_jwt(self, conf: ParsedFields) -> str:
        import jwt

        with self._lock:
            if self._key is None:
                self._key = _read_key(conf["private_key_file"], conf.permissions)
        try:
            return jwt.encode(
                dict(conf["claims"]), self._key, conf["signing_method"], dict(conf["headers"])
            )
        except (jwt.PyJWTError, TypeError, ValueError, NotImplementedError) as error:
            raise HttpError(f"failed to sign jwt: {error}") from None


def _if_enabled(conf: ParsedFields | None) -> ParsedFields | None:
    return conf if conf is not None and conf[ENABLED] else None


def _read_key(file: str, permissions: Permissions) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return load_pem_private_key(permissions.read(file), None)
    except (OSError, ValueError, TypeError) as error:
        raise HttpError(f"failed to read private key {file!r}: {error}") from None


def _sign_oauth(conf: ParsedFields, method: str, url: str) -> str:
    """Return the header of OAuth 1, as Benthos makes it: the URL is signed whole."""
    nonce, now = str(secrets.randbits(63)), str(int(time.time()))
    signed = {
        "oauth_consumer_key": conf["consumer_key"],
        "oauth_nonce": nonce,
        "oauth_signature_method": "HMAC-SHA1",
        "oauth_timestamp": now,
        "oauth_token": conf["access_token"],
        "oauth_version": "1.0",
    }
    text = "&".join([method, quote_plus(url), quote_plus(urlencode(sorted(signed.items())))])
    key = f"{quote_plus(conf['consumer_secret'])}&{quote_plus(conf['access_token_secret'])}"
    digest = hmac.new(key.encode(), text.encode(), hashlib.sha1).digest()
    signature = base64.b64encode(digest).decode()
    named = {**signed, "oauth_signature": signature}
    listed = ", ".join(f'{name}="{quote_plus(value)}"' for name, value in sorted(named.items()))
    return f"OAuth {listed}"
