"""Words of Go's decoder, which Benthos's users know, for bytes that are no JSON document.

Runs only once the bytes were refused. Source: Go `encoding/json/scanner.go`, `stream.go`; Benthos
`internal/message/util.go` (one document, nothing behind it).
"""

from __future__ import annotations

import re
from typing import Final

_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_PLAIN: Final = re.compile(rb'[^"\\\x00-\x1f]*')
_DIGITS: Final = re.compile(rb"[0-9]*")
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_ESCAPES: Final = frozenset(b'bfnrt\\/"')
_LITERALS: Final = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_MAX_DEPTH: Final = 10_000
_QUOTED_BYTES: Final = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}
_SEVERAL_DOCUMENTS: Final = "message contains multiple valid documents"


class _FaultError(Exception):
    pass


def find_json_fault(raw: bytes) -> str | None:
    """Return what is wrong with bytes that should be one JSON document; None when nothing is."""
    at = documents = 0
    try:
        while documents < 3:
            at = _skip_space(raw, at)
            if at == len(raw):
                return _SEVERAL_DOCUMENTS if documents > 1 else None if documents else "EOF"
            at = _read_value(raw, at)
            documents += 1
    except _FaultError as fault:
        return str(fault)
    return _SEVERAL_DOCUMENTS


def find_end_of_value(raw: bytes) -> int:
    """Return where the first JSON value in the bytes ends.

    Raises:
        ValueError: they don't begin with one; the text is Go's.
    """
    at = _skip_space(raw, 0)
    if at == len(raw):
        raise ValueError("EOF")
    try:
        return _read_value(raw, at)
    except _FaultError as fault:
        raise ValueError(str(fault)) from None


def _skip_space(raw: bytes, at: int) -> int:
    match = _SPACE.match(raw, at)
    return match.end() if match else at


def _quote_byte(byte: int) -> str:
    if byte in b"'\\":
        return f"'\\{chr(byte)}'"
    if byte in _QUOTED_BYTES:
        return f"'{_QUOTED_BYTES[byte]}'"
    if byte < 32 or byte == 127:
        return f"'\\x{byte:02x}'"
    # Go shows the byte as the letter of that number.
    return f"'{chr(byte)}'" if byte < 127 or 160 < byte != 173 else f"'\\u{byte:04x}'"


def _invalid_character(raw: bytes, at: int, where: str) -> _FaultError:
    if at >= len(raw):
        return _FaultError("unexpected EOF")
    return _FaultError(f"invalid character {_quote_byte(raw[at])} {where}")


def _read_value(raw: bytes, at: int) -> int:
    """Read one value of any depth and return the place after it."""
    closings: list[int] = []
    while True:
        at = _skip_space(raw, at)
        opened = raw[at] if at < len(raw) else 0
        if opened in b"{[":
            closings.append(125 if opened == 123 else 93)
            if len(closings) > _MAX_DEPTH:
                raise _FaultError("exceeded max depth")
            inside = _skip_space(raw, at + 1)
            if raw[inside : inside + 1] == bytes((closings[-1],)):
                at = inside
            else:
                at = _read_key(raw, inside) if opened == 123 else inside
                continue
        else:
            at = _read_scalar(raw, at)
        at = _read_closings(raw, at, closings)
        if not closings:
            return at


def _read_closings(raw: bytes, at: int, closings: list[int]) -> int:
    """Read what follows a value: ends of what it is in, or a comma and the next key."""
    while closings:
        at = _skip_space(raw, at)
        byte = raw[at] if at < len(raw) else 0
        if byte == closings[-1]:
            closings.pop()
            at += 1
        elif byte == 44:
            return _read_key(raw, _skip_space(raw, at + 1)) if closings[-1] == 125 else at + 1
        else:
            kind = "object key:value pair" if closings[-1] == 125 else "array element"
            raise _invalid_character(raw, at, f"after {kind}")
    return at


def _read_key(raw: bytes, at: int) -> int:
    if raw[at : at + 1] != b'"':
        raise _invalid_character(raw, at, "looking for beginning of object key string")
    at = _skip_space(raw, _read_string(raw, at))
    if raw[at : at + 1] != b":":
        raise _invalid_character(raw, at, "after object key")
    return at + 1


def _read_scalar(raw: bytes, at: int) -> int:
    byte = raw[at] if at < len(raw) else 0
    if byte == 34:
        return _read_string(raw, at)
    if byte in _LITERALS:
        word = _LITERALS[byte]
        for place, letter in enumerate(word[1:], at + 1):
            if raw[place : place + 1] != bytes((letter,)):
                where = f"in literal {word.decode()} (expecting '{chr(letter)}')"
                raise _invalid_character(raw, place, where)
        return at + len(word)
    if byte == 45 or 48 <= byte <= 57:
        return _read_number(raw, at)
    raise _invalid_character(raw, at, "looking for beginning of value")


def _read_string(raw: bytes, at: int) -> int:
    at += 1
    while True:
        match = _PLAIN.match(raw, at)
        at = match.end() if match else at
        byte = raw[at] if at < len(raw) else 0
        if byte == 34:
            return at + 1
        if byte != 92:
            raise _invalid_character(raw, at, "in string literal")
        at += 1
        if raw[at : at + 1] == b"u":
            for place in range(at + 1, at + 5):
                if place >= len(raw) or raw[place] not in _HEX:
                    raise _invalid_character(raw, place, "in \\u hexadecimal character escape")
            at += 4
        elif at >= len(raw) or raw[at] not in _ESCAPES:
            raise _invalid_character(raw, at, "in string escape code")
        at += 1


def _read_number(raw: bytes, at: int) -> int:
    if raw[at] == 45:
        at += 1
    at = at + 1 if raw[at : at + 1] == b"0" else _read_digits(raw, at, "in numeric literal")
    if raw[at : at + 1] == b".":
        at = _read_digits(raw, at + 1, "after decimal point in numeric literal")
    if raw[at : at + 1] in (b"e", b"E"):
        at += 1
        at += raw[at : at + 1] in (b"+", b"-")
        at = _read_digits(raw, at, "in exponent of numeric literal")
    return at


def _read_digits(raw: bytes, at: int, where: str) -> int:
    match = _DIGITS.match(raw, at)
    if match is None or match.end() == at:
        raise _invalid_character(raw, at, where)
    return match.end()
