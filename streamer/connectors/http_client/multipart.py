"""Bodies of several parts, as RFC 2046 has them: how they are written, and how they are read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from email.message import Message as Header
from typing import Final

Part = tuple[Sequence[tuple[str, str]], bytes]
"""The headers of a part, and its body."""

_LINE_BREAK: Final = b"\r\n"
_BLANK_LINE: Final = re.compile(rb"\r?\n\r?\n")


class MultipartError(ValueError):
    """The body of a multipart request cannot be split into its parts."""


def write_multipart(parts: Iterable[Part]) -> tuple[bytes, str]:
    """Return a body of parts, and its Content-Type. Headers of a part are in order of their names.

    They may hold any text but line breaks, which are replaced by blanks.
    """
    boundary = os.urandom(30).hex()
    pieces: list[bytes] = []
    for headers, body in parts:
        pieces.append(b"--" + boundary.encode())
        for name, value in sorted(headers):
            line = f"{name}: {' '.join(value.splitlines())}"
            pieces.append(line.encode("utf-8", "surrogateescape"))
        pieces += [b"", body]
    pieces += [b"--" + boundary.encode() + b"--", b""]
    return _LINE_BREAK.join(pieces), f"multipart/form-data; boundary={boundary}"


def parse_content_type(header: str) -> tuple[str, Mapping[str, str]]:
    """Return the media type that a Content-Type header names, in lower case, and its parameters."""
    parsed = Header()
    parsed["content-type"] = header
    parameters = parsed.get_params(failobj=[(header, "")])
    kind = parameters[0][0].strip().lower()
    return kind, {name.lower(): str(value) for name, value in parameters[1:]}


def read_multipart(body: bytes, boundary: str) -> list[Part]:
    """Return the parts of a body.

    Raises:
        MultipartError: the body has no such boundary, or does not end.
    """
    if not boundary:
        raise MultipartError("multipart: boundary is empty")
    delimiter = b"--" + boundary.encode()
    # What begins a line is a delimiter; the line break before it belongs to it.
    pieces = re.split(rb"(?:^|\r?\n)" + re.escape(delimiter), body)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise MultipartError("multipart: NextPart: EOF")
    return [_parse_part(piece) for piece in pieces[1:-1]]


def _parse_part(piece: bytes) -> Part:
    piece = piece.lstrip(b" \t")
    if piece.startswith((b"\r\n\r\n", b"\n\n")):
        return [], piece[4 if piece.startswith(b"\r") else 2 :]
    head, *rest = _BLANK_LINE.split(piece, maxsplit=1)
    headers = []
    for line in head.split(b"\n"):
        name, colon, value = line.decode("utf-8", "surrogateescape").partition(":")
        if colon:
            headers.append((name.strip(), value.strip()))
    return headers, rest[0] if rest else b""
