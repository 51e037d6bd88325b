"""The shape of a JSON line: the bytes that stay the same from line to line, and what is between.

A line is seen as its quotes and what stands between them. Values that are texts, and numbers,
booleans and nulls that stand alone between two quotes, may differ from line to line; keys,
brackets, commas and blanks may not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson

Path = tuple[str, ...]
"""The keys of nested objects down to a field."""

_LITERAL: Final = re.compile(rb"-?\d[\d.eE+-]*|true|false|null")
_MAX_QUOTES: Final = 512


class FixedBytes(NamedTuple):
    """Bytes that a line must have at a place.

    Attributes:
        boundary: the place is beside this boundary: 0 is the start of the line, the others are the
            quotes in their order, and then the end of the line.
        before: they begin so many bytes in front of it; None for right behind it.
        text: the bytes.
        until: the boundary that must follow them; None where a literal follows.
    """

    boundary: int
    before: int | None
    text: bytes
    until: int | None


class TextSlot(NamedTuple):
    """A text that may be any; `boundary` is its first quote, and the next one its last."""

    boundary: int


class LiteralSlot(NamedTuple):
    """A number, a boolean or null.

    Attributes:
        boundary: it begins `before` bytes behind this boundary.
        before: the number of bytes.
        after: it ends so many bytes in front of the next boundary.
    """

    boundary: int
    before: int
    after: int


Slot = TextSlot | LiteralSlot


@dataclass(frozen=True, slots=True)
class LineShape:
    """A shape.

    Attributes:
        quotes: how many quotes a line has.
        fixed: what all lines have.
        slots: what differs, by its path.
        unnamed: the literals inside of arrays, which have no path.
    """

    quotes: int
    fixed: tuple[FixedBytes, ...]
    slots: dict[Path, Slot]
    unnamed: tuple[LiteralSlot, ...]

    def literals(self) -> Iterator[LiteralSlot]:
        """Return the slots of numbers, booleans and nulls."""
        yield from self.unnamed
        yield from (slot for slot in self.slots.values() if isinstance(slot, LiteralSlot))


def learn_shape(line: bytes) -> LineShape | None:
    """Return the shape of a line.

    Args:
        line: without control characters and backslashes.

    Returns:
        None for a line that is no JSON object, or has a key twice, or too many quotes.

    Example:
        >>> shape = learn_shape(b'{"id":1,"name":"a"}')
        >>> [one.text for one in shape.fixed], list(shape.slots)
        ([b'{"id":', b',"name":', b'}'], [('id',), ('name',)])
    """
    if line[:1] != b"{" or not 0 < line.count(b'"') <= _MAX_QUOTES:
        return None
    try:
        orjson.loads(line)
        json.loads(line, object_pairs_hook=_refuse_repeated_keys)
    except (ValueError, RecursionError):
        return None
    return _ShapeBuilder(line).build()


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key is there twice")


class _Container:
    """An object or array that is open; `key` is of the value that comes next in an object."""

    def __init__(self, is_object: bool, path: Path | None) -> None:
        self.is_object = is_object
        self.path = path
        self.key: str | None = None

    def path_of_value(self) -> Path | None:
        """Return the path of the value that comes next; None inside of an array."""
        if not self.is_object or self.path is None or self.key is None:
            return None
        return (*self.path, self.key)


class _ShapeBuilder:
    """Goes through a line from left to right; the line is known to be valid."""

    def __init__(self, line: bytes) -> None:
        self._parts = line.split(b'"')
        self._open: list[_Container] = []
        self._fixed: list[FixedBytes] = []
        self._slots: dict[Path, Slot] = {}
        self._unnamed: list[LiteralSlot] = []
        # What has been gathered of the fixed bytes that are not ended yet, and where they begin.
        self._text = b""
        self._boundary = 0
        self._before: int | None = None

    def build(self) -> LineShape:
        """Return the shape."""
        for number, part in enumerate(self._parts):
            if number % 2 == 0:
                self._add_between(number, part)
            else:
                self._add_string(number, part)
        last = len(self._parts)
        self._end_fixed(last)
        return LineShape(last - 1, tuple(self._fixed), self._slots, tuple(self._unnamed))

    def _add_between(self, number: int, part: bytes) -> None:
        """Add what is between two strings; a literal that is alone in it may differ."""
        literals = list(_LITERAL.finditer(part))
        end = 0
        for match in literals:
            self._walk(part[end : match.start()])
            path = self._open[-1].path_of_value()
            if len(literals) == 1:
                before, after = part[: match.start()], part[match.end() :]
                self._text += before
                self._end_fixed(None)
                slot = LiteralSlot(number, len(before), len(after))
                if path is None:
                    self._unnamed.append(slot)
                else:
                    self._slots[path] = slot
                # The rest is in front of the next boundary, wherever the literal ends.
                self._text, self._boundary, self._before = after, number + 1, len(after)
            end = match.end()
        self._walk(part[end:])
        if len(literals) != 1:
            self._text += part

    def _add_string(self, number: int, part: bytes) -> None:
        top = self._open[-1]
        after = self._parts[number + 1].lstrip()
        if top.is_object and after[:1] == b":":
            top.key = part.decode()
            self._text += b'"%b"' % part
            return
        # A text: its first quote ends the fixed bytes, and behind its last one others begin.
        self._end_fixed(number)
        path = top.path_of_value()
        if path is not None:
            self._slots[path] = TextSlot(number)
        self._text, self._boundary, self._before = b"", number + 1, None

    def _end_fixed(self, until: int | None) -> None:
        self._fixed.append(FixedBytes(self._boundary, self._before, self._text, until))
        self._text = b""

    def _walk(self, part: bytes) -> None:
        """Follow brackets as they open and close."""
        for code in part:
            if code in b"{[":
                path = self._open[-1].path_of_value() if self._open else ()
                self._open.append(_Container(code == b"{"[0], path))
            elif code in b"}]":
                self._open.pop()
