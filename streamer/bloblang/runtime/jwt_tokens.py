"""JSON Web Tokens in their compact form (RFC 7515, 7519): made, checked and read.

A token's `exp` and `nbf` count, as in Connect, whatever its documentation says of claims.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang.errors import ArgumentError, QueryError, TypeMismatch
from streamer.bloblang.golib.convert import text_of
from streamer.bloblang.golib.operations import NUMBER_TYPES
from streamer.bloblang.golib.text import go_type
from streamer.bloblang.runtime import jwt_signatures
from streamer.bloblang.runtime.jwt_signatures import ALGORITHMS, SignatureAlgorithm
from streamer.core.json.dump import dump_json
from streamer.core.json.json_fault import find_json_fault
from streamer.core.timestamps import SECOND

# What a mapping may not set: they tell a reader how to check the token.
_RESERVED_HEADERS: Final = frozenset(
    ("alg", "typ", "jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "crit")
)
# Algorithms that Go's library knows besides; a token signed with one is of the wrong kind.
_UNSUPPORTED_ALGORITHMS: Final = frozenset(("PS256", "PS384", "PS512", "EdDSA", "none"))
_ESCAPES: Final = ((b"&", b"\\u0026"), (b"<", b"\\u003c"), (b">", b"\\u003e"))


def _encode_segment(value: dict[str, Any]) -> bytes:
    raw = dump_json(value)
    for mark, escape in _ESCAPES:
        raw = raw.replace(mark, escape)
    return base64.urlsafe_b64encode(raw).rstrip(b"=")


def make_signer(algorithm: SignatureAlgorithm, secret: str, headers: Any) -> Callable[[Any], str]:
    """Return what makes a token of claims.

    Args:
        algorithm: what signs it.
        secret: its key, see `SignatureAlgorithm.signing_key`.
        headers: more headers as an object, or None.

    Raises:
        ArgumentError: the secret is no key for the algorithm, or the headers are no object.
    """
    try:
        key = algorithm.signing_key(secret)
    except ArgumentError as e:
        raise ArgumentError(f"decoding signing_secret: {e}") from None
    if headers is not None and type(headers) is not dict:
        kind = go_type(headers)
        raise ArgumentError(f"headers parameter must be an object (map), got {kind}")
    extra_headers = {
        name: item for name, item in (headers or {}).items() if name not in _RESERVED_HEADERS
    }
    head = _encode_segment({**extra_headers, "alg": algorithm.name, "typ": "JWT"})

    def sign(claims: Any) -> str:
        if type(claims) is not dict:
            raise TypeMismatch(claims, "object")
        message = head + b"." + _encode_segment(claims)
        signature = base64.urlsafe_b64encode(algorithm.sign(key, message)).rstrip(b"=")
        return f"{message.decode()}.{signature.decode()}"

    return sign


def _malformed_error(what: str, reason: str) -> QueryError:
    return _token_error(f"token is malformed: could not {what}: {reason}")


def _token_error(reason: str) -> QueryError:
    return QueryError(f"parsing JWT string: {reason}")


_ALPHABET: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def _decode_segment(segment: str, what: str) -> bytes:
    raw = segment.encode(errors="replace").replace(b"\n", b"").replace(b"\r", b"")
    bad = next((i for i, c in enumerate(raw) if c not in _ALPHABET), -1)
    if bad < 0 and len(raw) % 4 == 1:
        bad = len(raw) - 1
    if bad >= 0:
        raise _malformed_error(f"base64 decode {what}", f"illegal base64 data at input byte {bad}")
    return base64.urlsafe_b64decode(raw + b"=" * (-len(raw) % 4))


_GO_KINDS: Final = {list: "array", str: "string", float: "number", bool: "bool"}


def _decode_object(segment: str, what: str, kind: str) -> dict[str, Any]:
    raw = _decode_segment(segment, what)
    try:
        # Go has every number of a claim as float64.
        value = json.loads(raw, parse_int=float)
    except ValueError as e:
        raise _malformed_error(f"JSON decode {what}", _describe_json_error(raw, e)) from None
    except RecursionError:
        raise _malformed_error(f"JSON decode {what}", "exceeded max depth") from None
    if value is None:
        return {}
    if type(value) is not dict:
        reason = f"json: cannot unmarshal {_GO_KINDS[type(value)]} into Go value of type {kind}"
        raise _malformed_error(f"JSON decode {what}", reason)
    return value


def _describe_json_error(raw: bytes, error: ValueError) -> str:
    """Return why bytes are no document, in the words of Go's json.Unmarshal."""
    if getattr(error, "msg", "") == "Extra data":
        extra = raw.decode(errors="replace")[getattr(error, "pos", 0) :].lstrip()
        return f"invalid character '{extra[0]}' after top-level value"
    fault = find_json_fault(raw) or str(error)
    return "unexpected end of JSON input" if fault.endswith("EOF") else fault


def _check_times(claims: dict[str, Any], now: int) -> None:
    """Refuse a token that is not valid at a time, in nanoseconds since the Unix epoch."""
    reasons = []
    for name, text in (("exp", "token is expired"), ("nbf", "token is not valid yet")):
        if name not in claims:
            continue
        value = claims[name]
        if type(value) not in NUMBER_TYPES:
            reasons.append(f"invalid type for claim: {name} is invalid")
        elif value and (now >= value * SECOND) is (name == "exp"):
            reasons.append(text)
    if reasons:
        raise _token_error(f"token has invalid claims: {', '.join(reasons)}")


def make_parser(algorithm: SignatureAlgorithm, secret: str) -> Callable[[int, Any], dict[str, Any]]:
    """Return what gives the claims of a token, from the time in nanoseconds and the token.

    Args:
        algorithm: what the token must be signed with.
        secret: its key, see `SignatureAlgorithm.checking_key`.

    Raises:
        ArgumentError: the secret is no key for the algorithm.
    """
    key = algorithm.checking_key(secret)

    def parse(now: int, token: Any) -> dict[str, Any]:
        segments = text_of(token).split(".")
        if len(segments) != 3:
            raise _token_error("token is malformed: token contains an invalid number of segments")
        header = _decode_object(segments[0], "header", "map[string]interface {}")
        claims = _decode_object(segments[1], "claim", "jwt.MapClaims")
        _check_algorithm(header.get("alg"), algorithm)
        signature = _decode_segment(segments[2], "signature")
        try:
            algorithm.verify(key, ".".join(segments[:2]).encode(), signature)
        except jwt_signatures.InvalidSignatureError as e:
            raise _token_error(f"token signature is invalid: {e}") from None
        _check_times(claims, now)
        return claims

    return parse


def _check_algorithm(name: Any, algorithm: SignatureAlgorithm) -> None:
    if type(name) is not str:
        raise _token_error("token is unverifiable: signing method (alg) is unspecified")
    if name not in ALGORITHMS and name not in _UNSUPPORTED_ALGORITHMS:
        raise _token_error("token is unverifiable: signing method (alg) is unavailable")
    if name != algorithm.name:
        reason = f"error while executing keyfunc: incorrect signing method: {name}"
        raise _token_error(f"token is unverifiable: {reason}")
