"""Authentication: a user with a password, as in Benthos, and tokens for programs.

Passwords and tokens are known by their hashes alone.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

# The cost of scrypt that Benthos's users have hashed their passwords with.
_SCRYPT_N: Final = 32_768
_SCRYPT_R: Final = 8
_SCRYPT_P: Final = 1
_SCRYPT_BYTES: Final = 32
_SCRYPT_MEMORY: Final = 64 << 20

_MAX_REMEMBERED: Final = 100
_REMEMBER_S: Final = 60.0

_MAX_FREE_FAILURES: Final = 5
_PAUSE_S: Final = 1.0
_MAX_WAIT_S: Final = 5.0
_FORGET_S: Final = 600.0
_MAX_ADDRESSES: Final = 10_000


class Authenticator:
    """Decides who may ask. It can be used from several threads.

    Attributes:
        is_required: whether anybody has to say who they are.
        challenge: the `WWW-Authenticate` header of a refusal.
        console_challenge: the same for the console: all schemes, and none that a browser asks for.
    """

    def __init__(self, http: Mapping[str, Any]) -> None:
        """Take the section `http`, which is without findings."""
        basic, bearer = http["basic_auth"], http["bearer_auth"]
        self._basic = BasicAuth(basic) if basic["enabled"] else None
        self._user: str = basic["username"]
        self._tokens = {
            base64.b64decode(token["token_hash"]): str(token["name"])
            for token in (bearer["tokens"] if bearer["enabled"] else ())
        }
        self.is_required = self._basic is not None or bool(bearer["enabled"])
        self.challenge = self._basic.challenge if self._basic else "Bearer"
        # The console has a form of its own; a browser would ask before it could.
        basic_challenge = [f"x{self._basic.challenge}"] if self._basic else []
        self.console_challenge = ", ".join(basic_challenge + ["Bearer"] * bool(bearer["enabled"]))
        # A password's hash takes long on purpose, and who has been right once is known for a
        # while: by a hash with a key that nobody else has.
        self._key = secrets.token_bytes(32)
        self._recent_authors: dict[bytes, tuple[str, float]] = {}

    def recent_author(self, header: str) -> str | None:
        """Return who asks, when that was found out a moment ago; see `authenticate`."""
        author, until = self._recent_authors.get(self._header_digest(header), ("", 0.0))
        return author if author and time.monotonic() < until else None

    def authenticate(self, header: str) -> str | None:
        """Return who asks, by the `Authorization` header of a request; None for nobody known."""
        kind, _, text = header.partition(" ")
        author = self._identify(header, kind, text)
        if author is not None:
            if len(self._recent_authors) > _MAX_REMEMBERED:
                self._recent_authors.clear()
            self._recent_authors[self._header_digest(header)] = (
                author,
                time.monotonic() + _REMEMBER_S,
            )
        return author

    def _identify(self, header: str, kind: str, text: str) -> str | None:
        if kind.lower() == "bearer":
            token_digest = hashlib.sha256(text.strip().encode("utf-8", "surrogateescape")).digest()
            name = None
            # All are looked at: how long it takes must not tell how much was right.
            for digest, owner in self._tokens.items():
                if hmac.compare_digest(token_digest, digest):
                    name = owner
            return name
        if self._basic is None or not self._basic.allows(header):
            return None
        return self._user

    def _header_digest(self, header: str) -> bytes:
        encoded = header.encode("utf-8", "surrogateescape")
        return hmac.digest(self._key, encoded, "sha256")


class LoginThrottle:
    """Slows those who try passwords and tokens, by their addresses. For one event loop.

    After some wrong ones, an address has one more looked at each second. Who has been right a
    moment ago does not come here.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin with nobody; `now` is a clock that never runs backwards, s."""
        self._now = now
        self._failures: dict[str, tuple[int, float, float]] = {}

    def reserve_attempt(self, address: str) -> float | None:
        """Return for how many seconds a try has to wait; None when too many wait already."""
        failures, newest, free_at = self._failures.get(address, (0, 0.0, 0.0))
        now = self._now()
        if failures < _MAX_FREE_FAILURES or now - newest > _FORGET_S:
            return 0.0
        begins = max(now, free_at)
        if begins - now > _MAX_WAIT_S:
            return None
        self._failures[address] = failures, newest, begins + _PAUSE_S
        return begins - now + _PAUSE_S

    def record_failure(self, address: str) -> None:
        """Count a failed attempt of an address."""
        failures, newest, free_at = self._failures.pop(address, (0, 0.0, 0.0))
        now = self._now()
        failures = 0 if now - newest > _FORGET_S else failures
        if len(self._failures) >= _MAX_ADDRESSES:
            # Who has been quiet for longest is forgotten first.
            del self._failures[next(iter(self._failures))]
        self._failures[address] = failures + 1, now, free_at


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
            "argon2": self._argon2,
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
        digest = hashlib.md5(password, usedforsecurity=False).digest()
        return hmac.compare_digest(digest, self._hash)

    def _sha256(self, password: bytes) -> bool:
        return hmac.compare_digest(hashlib.sha256(password).digest(), self._hash)

    def _bcrypt(self, password: bytes) -> bool:
        import bcrypt

        try:
            return bcrypt.checkpw(password, self._hash)
        except ValueError:  # no hash of bcrypt's, or a password beyond its 72 bytes
            return False

    def _argon2(self, password: bytes) -> bool:
        from argon2 import PasswordHasher
        from argon2.exceptions import InvalidHashError, VerificationError

        try:
            return PasswordHasher().verify(self._hash, password)
        except (InvalidHashError, VerificationError):
            return False

    def _scrypt(self, password: bytes) -> bool:
        digest = hashlib.scrypt(
            password,
            salt=self._salt,
            n=_SCRYPT_N,
            r=_SCRYPT_R,
            p=_SCRYPT_P,
            maxmem=_SCRYPT_MEMORY,
            dklen=_SCRYPT_BYTES,
        )
        return hmac.compare_digest(digest, self._hash)
