"""Finds the ends of JSON values in a stream of bytes that arrives piece by piece.

A value may be cut by the end of what has been read; more is asked for then, and what was searched
grows by at least as much again, so that a long value is not searched too often. Whether a value is
right is for whoever parses it.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any, Final

import orjson

from streamer.core.json.parse import parse_json
from streamer.sdk.input.scanning import BLOCK_BYTES, ByteStream

_SPACE: Final = re.compile(rb"[ \t\r\n]*")
_STRING_PATTERN: Final = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
# A quote that closes nowhere, or not yet, is the last of the second kind.
_STRUCTURE: Final = re.compile(_STRING_PATTERN + rb'|["\[\]{}]', re.DOTALL)
_STRING: Final = re.compile(_STRING_PATTERN, re.DOTALL)
_SCALAR: Final = re.compile(rb'[^ \t\r\n"\[\]{},:]+')
_DECODER: Final[Any] = json.JSONDecoder()
_SPACE_OUTSIDE_STRINGS: Final = re.compile(rb"(" + _STRING_PATTERN + rb")|[ \t\r\n]+", re.DOTALL)


def compact_json(raw: bytes) -> bytes:
    """Return a JSON value without the white space between its parts, and else as it is."""
    return _SPACE_OUTSIDE_STRINGS.sub(rb"\1", raw)


def parse_decoded(raw: bytes) -> Any:
    """Parse a document as Benthos decodes a stream of them: numbers do not keep their spelling.

    `1.50` is written as 1.5 again, and 1e3 as 1000. An integer of 64 bits stays exact, though,
    where Benthos makes it a float.

    Raises:
        ValueError: the text is not one JSON document.
    """
    try:
        return orjson.loads(raw)
    except ValueError:
        return parse_json(raw)


class JsonValueReader:
    """A stream of JSON text.

    Attributes:
        data: what has been read and not left behind.
        at: the place in `data` that is looked at.
        is_ended: whether nothing comes behind `data`.
    """

    def __init__(self, stream: ByteStream, position: int) -> None:
        """Begin at a place of the stream, up to which it has been read."""
        self._stream = stream
        self._before = position
        self.data = b""
        self.at = 0
        self.is_ended = False
        self._text: str | None = None

    @property
    def position(self) -> int:
        """The place in the stream that `at` is."""
        return self._before + self.at

    def read_more(self) -> bool:
        """Read more, as much again as there is; return whether there was any."""
        parts = [self.data[self.at :]]
        self._before += self.at
        self.at = 0
        target, size = len(parts[0]), 0
        while not self.is_ended and size <= target:
            block = self._stream.read(BLOCK_BYTES)
            parts.append(block)
            size += len(block)
            self.is_ended = not block
        self.data, self._text = b"".join(parts), None
        return size > 0

    def next_byte(self) -> int:
        """Go to the next byte that is no white space, and return it; -1 at the end.

        It reads more when there is nothing else in `data`.
        """
        while not self.has_buffered():
            if not self.read_more():
                return -1
        return self.data[self.at]

    def has_buffered(self) -> bool:
        """Go over white space, and tell whether something else has been read behind it."""
        match = _SPACE.match(self.data, self.at)
        assert match is not None
        self.at = match.end()
        return self.at < len(self.data)

    def read_value(self, wait: bool = True) -> bytes:
        """Return the value that begins at `at`, and go behind it.

        What is no value, or is not whole at the stream's end, is returned as far as it goes.

        Args:
            wait: whether more may be read; without, nothing is returned of a value that is not
                there as a whole.
        """
        while True:
            end = self._value_end()
            whole = end and (end < len(self.data) or self.data[end - 1] in b'}]"')
            if not whole and not self.is_ended:
                if not wait:
                    return b""
                self.read_more()
                continue
            raw = self.data[self.at : end or len(self.data)]
            self.at += len(raw)
            return raw

    def _value_end(self) -> int:
        """Return the place behind the value at `at`; 0 when it does not end."""
        if self._text is None:
            self._text = self.data.decode() if self.data.isascii() else ""
        if self._text:
            # Python's own scanner is in C. What it does not take, such as a value that is cut, is
            # looked at in detail.
            with suppress(StopIteration, ValueError, RecursionError):
                end: int = _DECODER.scan_once(self._text, self.at)[1]
                return end
        return _find_value_end(self.data, self.at)


def _find_value_end(data: bytes, at: int) -> int:
    """Return the place behind the value at a place; 0 when it does not end."""
    first = data[at]
    if first not in b'{["':
        plain = _SCALAR.match(data, at)
        return plain.end() if plain else at + 1
    if first == 0x22:
        text = _STRING.match(data, at)
        return text.end() if text else 0
    depth = 0
    for match in _STRUCTURE.finditer(data, at):
        byte = data[match.start()]
        if byte == 0x22:
            if match.end() - match.start() == 1:
                return 0
        elif byte in b"{[":
            depth += 1
        else:
            depth -= 1
            if not depth:
                return match.end()
    return 0
