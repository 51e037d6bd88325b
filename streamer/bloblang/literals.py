"""The value of a literal's text: quoted strings with Go's escapes, and numbers."""

from __future__ import annotations

import re
from typing import Final

from streamer.core.value import INT64_MAX

_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.?))",
    re.DOTALL,
)
_SIMPLE_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    '"': '"',
}


def unquote(text: str) -> str:
    r"""Return the contents of a double-quoted string, its escapes resolved as Go does.

    Bytes written as `\xff` that don't make UTF-8 together become U+FFFD.

    Raises:
        ValueError: an escape that Go does not know.
    """
    body = text[1:-1]
    if "\n" in body:
        raise ValueError("invalid syntax")
    if "\\" not in body:
        return body
    if "\\x" not in body and not re.search(r"\\[0-7]", body):
        return _ESCAPE.sub(_resolve_escape, body)
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPE.finditer(body):
        parts.append(body[end : match.start()].encode())
        byte = match[2] or match[5]
        if byte is None:
            parts.append(_resolve_escape(match).encode())
        else:
            code = int(byte, 16 if match[2] else 8)
            if code > 255:
                raise ValueError("invalid syntax")
            parts.append(bytes((code,)))
        end = match.end()
    parts.append(body[end:].encode())
    return b"".join(parts).decode("utf-8", "surrogateescape")


def _resolve_escape(match: re.Match[str]) -> str:
    if match[1]:
        return _SIMPLE_ESCAPES[match[1]]
    code = match[3] or match[4]
    if code:
        point = int(code, 16)
        if point > 0x10FFFF or 0xD800 <= point < 0xE000:
            raise ValueError("invalid syntax")
        return chr(point)
    raise ValueError("invalid syntax")


def parse_number(text: str) -> int | float:
    """Return the value of a number literal.

    Raises:
        ValueError: an integer beyond int64; the text is Go's.
    """
    if "." in text:
        return float(text)
    value = int(text) if len(text) < 25 else INT64_MAX + 1
    if value > INT64_MAX:
        raise ValueError(
            f"failed to parse '{text}' as integer: "
            f'strconv.ParseInt: parsing "{text}": value out of range'
        )
    return value
