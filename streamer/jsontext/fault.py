"""Why bytes are no JSON document, in the words of Go's decoder, which Benthos's users know.

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
_MOST: Final = 10_000
_ESCAPED: Final = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}
_MANY: Final = "message contains multiple valid documents"


class _Fault(Exception):
    pass


def json_fault(raw: bytes) -> str | None:
    """Return what is wrong with bytes that should be one JSON document; None when nothing is."""
    at = documents = 0
    try:
        while documents < 3:
            at = _skip(raw, at)
            if at == len(raw):
                return _MANY if documents > 1 else None if documents else "EOF"
            at = _value(raw, at)
            documents += 1
    except _Fault as fault:
        return str(fault)
    return _MANY


def end_of_value(raw: bytes) -> int:
    """Return where the first JSON value in the bytes ends.

    Raises:
        ValueError: they don't begin with one; the text is Go's.
    """
    at = _skip(raw, 0)
    if at == len(raw):
        raise ValueError("EOF")
    try:
        return _value(raw, at)
    except _Fault as fault:
        raise ValueError(str(fault)) from None


def _skip(raw: bytes, at: int) -> int:
    found = _SPACE.match(raw, at)
    return found.end() if found else at


def _quoted(byte: int) -> str:
    if byte in b"'\\":
        return f"'\\{chr(byte)}'"
    if byte in _ESCAPED:
        return f"'{_ESCAPED[byte]}'"
    if byte < 32 or byte == 127:
        return f"'\\x{byte:02x}'"
    # Go shows the byte as the letter of that number.
    return f"'{chr(byte)}'" if byte < 127 or 160 < byte != 173 else f"'\\u{byte:04x}'"


def _wrong(raw: bytes, at: int, where: str) -> _Fault:
    if at >= len(raw):
        return _Fault("unexpected EOF")
    return _Fault(f"invalid character {_quoted(raw[at])} {where}")


def _value(raw: bytes, at: int) -> int:
    """Read one value of any depth and return the place after it."""
    closings: list[int] = []
    while True:
        at = _skip(raw, at)
        opened = raw[at] if at < len(raw) else 0
        if opened in b"{[":
            closings.append(125 if opened == 123 else 93)
            if len(closings) > _MOST:
                raise _Fault("exceeded max depth")
            inside = _skip(raw, at + 1)
            if raw[inside : inside + 1] == bytes((closings[-1],)):
                at = inside
            else:
                at = _key(raw, inside) if opened == 123 else inside
                continue
        else:
            at = _scalar(raw, at)
        at = _closed(raw, at, closings)
        if not closings:
            return at


def _closed(raw: bytes, at: int, closings: list[int]) -> int:
    """Read what follows a value: ends of what it is in, or a comma and the next key."""
    while closings:
        at = _skip(raw, at)
        byte = raw[at] if at < len(raw) else 0
        if byte == closings[-1]:
            closings.pop()
            at += 1
        elif byte == 44:
            return _key(raw, _skip(raw, at + 1)) if closings[-1] == 125 else at + 1
        else:
            kind = "object key:value pair" if closings[-1] == 125 else "array element"
            raise _wrong(raw, at, f"after {kind}")
    return at


def _key(raw: bytes, at: int) -> int:
    if raw[at : at + 1] != b'"':
        raise _wrong(raw, at, "looking for beginning of object key string")
    at = _skip(raw, _string(raw, at))
    if raw[at : at + 1] != b":":
        raise _wrong(raw, at, "after object key")
    return at + 1


def _scalar(raw: bytes, at: int) -> int:
    byte = raw[at] if at < len(raw) else 0
    if byte == 34:
        return _string(raw, at)
    if byte in _LITERALS:
        word = _LITERALS[byte]
        for place, letter in enumerate(word[1:], at + 1):
            if raw[place : place + 1] != bytes((letter,)):
                where = f"in literal {word.decode()} (expecting '{chr(letter)}')"
                raise _wrong(raw, place, where)
        return at + len(word)
    if byte == 45 or 48 <= byte <= 57:
        return _number(raw, at)
    raise _wrong(raw, at, "looking for beginning of value")


def _string(raw: bytes, at: int) -> int:
    at += 1
    while True:
        found = _PLAIN.match(raw, at)
        at = found.end() if found else at
        byte = raw[at] if at < len(raw) else 0
        if byte == 34:
            return at + 1
        if byte != 92:
            raise _wrong(raw, at, "in string literal")
        at += 1
        if raw[at : at + 1] == b"u":
            for place in range(at + 1, at + 5):
                if place >= len(raw) or raw[place] not in _HEX:
                    raise _wrong(raw, place, "in \\u hexadecimal character escape")
            at += 4
        elif at >= len(raw) or raw[at] not in _ESCAPES:
            raise _wrong(raw, at, "in string escape code")
        at += 1


def _number(raw: bytes, at: int) -> int:
    if raw[at] == 45:
        at += 1
    at = at + 1 if raw[at : at + 1] == b"0" else _digits(raw, at, "in numeric literal")
    if raw[at : at + 1] == b".":
        at = _digits(raw, at + 1, "after decimal point in numeric literal")
    if raw[at : at + 1] in (b"e", b"E"):
        at += 1
        at += raw[at : at + 1] in (b"+", b"-")
        at = _digits(raw, at, "in exponent of numeric literal")
    return at


def _digits(raw: bytes, at: int, where: str) -> int:
    found = _DIGITS.match(raw, at)
    if found is None or found.end() == at:
        raise _wrong(raw, at, where)
    return found.end()
