"""Comparing a text with a password's hash: Argon2 and bcrypt, by the libraries of those names."""

from __future__ import annotations

import hmac
import re
from typing import Any, Final

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib.convert import text_of
from streamer.bloblang.methods.encoding import decode

_CATEGORY = "String Manipulation"
_SECRET = Param("hashed_secret", "string")

_ARGON2_EXAMPLE: Final = "$argon2id$v=19$m=64,t=2,p=1$c2FsdHktbWNzYWx0ZmFjZQ$sA82UX+E/oJwbmZNO6k3Ig"
_BCRYPT_EXAMPLE: Final = "$2y$04$Dtnt5NNzVtMCOZONT705tOXsaYE7mJajYbrhuG0sCiQjBHNJ8ygbe"


def _argon2_error(reason: str) -> QueryError:
    return QueryError(f"invalid argon2 hash{reason}")


_PARAMETERS: Final = re.compile(r"m=(\d+),t=(\d+),p=(\d+)")


def _parse_parameters(text: str) -> tuple[int, int, int]:
    match = _PARAMETERS.match(text)
    if match is None:
        raise _argon2_error(": parsing parameters; expected integer")
    if match.end() != len(text):
        raise _argon2_error(": excess characters in parameters segment")
    memory, rounds, parallelism = map(int, match.groups())
    for number, limit in ((memory, 1 << 32), (rounds, 1 << 32), (parallelism, 1 << 8)):
        if number >= limit:
            reason = f"unsigned integer overflow on token {number}"
            raise _argon2_error(f": parsing parameters; {reason}")
    return memory, rounds, parallelism


def _decode_base64_part(text: str, what: str) -> bytes:
    try:
        return _decode_base64(text.replace("=", "!") + "=" * (-len(text) % 4))
    except QueryError as e:
        raise _argon2_error(f": parsing base64 {what}; {e}") from None


_decode_base64 = decode("base64")


@declare(
    "compare_argon2",
    _CATEGORY,
    _SECRET,
    examples=(
        Example(
            f'root = this.a.compare_argon2("{_ARGON2_EXAMPLE}")', '{"a":"open sesame"}', "true"
        ),
        Example(
            f'root = this.a.compare_argon2("{_ARGON2_EXAMPLE}")', '{"a":"open barley"}', "false"
        ),
    ),
    own_errors=True,
    origin=CONNECT,
)
def compare_argon2(value: Any, hashed_secret: str) -> bool:
    """True if an Argon2 hash (argon2i or argon2id, with its options) was made of the text."""
    from argon2.exceptions import HashingError
    from argon2.low_level import Type, hash_secret_raw

    secret = text_of(value).encode("utf-8", "surrogateescape")
    if not secret:
        return False
    parts = hashed_secret.split("$")
    if len(parts) != 6:
        raise _argon2_error("")
    _, form, version, parameters, salt, key = parts
    if form not in ("argon2i", "argon2id"):
        raise _argon2_error(": unrecognised argon2 format")
    if not re.match(r"v=\S", version):
        raise _argon2_error(": parsing version; input does not match format")
    memory, rounds, parallelism = _parse_parameters(parameters)
    expected = _decode_base64_part(key, "key")
    try:
        actual = hash_secret_raw(
            secret,
            _decode_base64_part(salt, "salt"),
            rounds,
            memory,
            parallelism,
            len(expected),
            Type.I if form == "argon2i" else Type.ID,
        )
    except HashingError as e:
        raise QueryError(f"argon2: {e}") from None
    return hmac.compare_digest(actual, expected)


def _check_bcrypt(hashed: str) -> None:
    """Refuse what is no bcrypt hash, in the words that Go's library has for it."""
    if len(hashed) < 59:
        raise _bcrypt_error("hashedSecret too short to be a bcrypted password")
    if hashed[0] != "$":
        reason = f"bcrypt hashes must start with '$', but hashedSecret started with '{hashed[0]}'"
        raise _bcrypt_error(reason)
    if hashed[1] > "2":
        reason = f"bcrypt algorithm version '{hashed[1]}' requested is newer than current"
        raise _bcrypt_error(f"{reason} version '2'")
    cost = hashed[3:5] if hashed[2] == "$" else hashed[4:6]
    if not cost.isdigit():
        raise QueryError(f'strconv.Atoi: parsing "{cost}": invalid syntax')
    if not 4 <= int(cost) <= 31:
        raise _bcrypt_error(f"cost {int(cost)} is outside allowed inclusive range 4..31")


def _bcrypt_error(reason: str) -> QueryError:
    return QueryError(f"crypto/bcrypt: {reason}")


_BCRYPT_HASH: Final = re.compile(r"\$\d.?\$(\d\d)\$([./A-Za-z0-9]{53})")


@declare(
    "compare_bcrypt",
    _CATEGORY,
    _SECRET,
    examples=(
        Example(
            f'root = this.a.compare_bcrypt("{_BCRYPT_EXAMPLE}")', '{"a":"open sesame"}', "true"
        ),
        Example(
            f'root = this.a.compare_bcrypt("{_BCRYPT_EXAMPLE}")', '{"a":"open barley"}', "false"
        ),
    ),
    own_errors=True,
    origin=CONNECT,
)
def compare_bcrypt(value: Any, hashed_secret: str) -> bool:
    """True if a bcrypt hash was made of the text."""
    import bcrypt

    secret = text_of(value).encode("utf-8", "surrogateescape")
    _check_bcrypt(hashed_secret)
    match = _BCRYPT_HASH.match(hashed_secret)
    if match is None:
        _check_salt(hashed_secret)
        return False
    cost, rest = match.groups()
    # The variants differ in how old programs erred; all are compared as the corrected one. The
    # algorithm itself takes no more than 72 bytes.
    actual = bcrypt.hashpw(secret[:72], f"$2b${cost}${rest[:22]}".encode())
    return hmac.compare_digest(actual[-31:], rest[22:].encode())


def _check_salt(hashed: str) -> None:
    salt = hashed.split("$", 3)[3][:22]
    at = next((i for i, c in enumerate(salt) if not (c.isascii() and c.isalnum() or c in "./")), -1)
    if at >= 0:
        raise QueryError(f"illegal base64 data at input byte {at}")
