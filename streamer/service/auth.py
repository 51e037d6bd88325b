"""Basic authentication: one user, whose password is kept as a hash. Rules as Benthos's."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Any, Final

# The cost of scrypt that Benthos's users have hashed their passwords with.
_SCRYPT_N: Final = 32_768
_SCRYPT_R: Final = 8
_SCRYPT_P: Final = 1
_SCRYPT_BYTES: Final = 32
_SCRYPT_MEMORY: Final = 64 << 20


class BasicAuth:
    """Decides who may ask.

    Attributes:
        challenge: the `WWW-Authenticate` header of a refusal.
    """

    def __init__(self, parsed: Mapping[str, Any]) -> None:
        """Take the section `http.basic_auth`, which is enabled and without findings."""
        self._user = parsed["username"].encode()
        self._hash = base64.b64decode(parsed["password_hash"])
        self._salt = base64.b64decode(parsed["salt"])
        self._matches: Callable[[bytes], bool] = {
            "md5": self._md5,
            "sha256": self._sha256,
            "bcrypt": self._bcrypt,
            "scrypt": self._scrypt,
        }[parsed["algorithm"].lower()]
        realm = parsed["realm"].replace("\\", "\\\\").replace('"', '\\"')
        self.challenge = f'Basic realm="{realm}", charset="UTF-8"'

    def allows(self, header: str) -> bool:
        """Whether the `Authorization` header of a request names the user and the password.

        It may take a tenth of a second and more: hashes are slow on purpose.
        """
        kind, _, text = header.partition(" ")
        try:
            user, colon, password = base64.b64decode(text.strip(), validate=True).partition(b":")
        except (binascii.Error, ValueError):
            return False
        if kind.lower() != "basic" or not colon:
            return False
        right = hmac.compare_digest(user, self._user)
        # Both are looked at: how long it takes must not tell which is wrong.
        return self._matches(password) and right

    def _md5(self, password: bytes) -> bool:
        found = hashlib.md5(password, usedforsecurity=False).digest()
        return hmac.compare_digest(found, self._hash)

    def _sha256(self, password: bytes) -> bool:
        return hmac.compare_digest(hashlib.sha256(password).digest(), self._hash)

    def _bcrypt(self, password: bytes) -> bool:
        import bcrypt

        try:
            return bcrypt.checkpw(password, self._hash)
        except ValueError:  # no hash of bcrypt's, or a password beyond its 72 bytes
            return False

    def _scrypt(self, password: bytes) -> bool:
        found = hashlib.scrypt(
            password,
            salt=self._salt,
            n=_SCRYPT_N,
            r=_SCRYPT_R,
            p=_SCRYPT_P,
            maxmem=_SCRYPT_MEMORY,
            dklen=_SCRYPT_BYTES,
        )
        return hmac.compare_digest(found, self._hash)
