"""Lines of large objects, by ranges of bytes that several tasks read.

A line is in the range that has its first byte. A range therefore ends wherever it is cut: its
reader passes over the line that has begun before, and reads the last one to its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from streamer.connectors.objects.object_stream import ObjectStream
from streamer.connectors.objects.store import ListedObject, ObjectStore
from streamer.core.execution import Execution

BLOCK_BYTES: Final = 2 << 20
"""Bytes of a block of lines, about."""

_TAIL_BYTES: Final = 64 << 10
"""Bytes of a request for the end of the last line."""


@dataclass(frozen=True, slots=True)
class LineRange:
    """The lines of an object that begin in a range of its bytes.

    Attributes:
        object: the object, which must have this version when it is read.
        start: the first byte.
        end: the byte behind the last.
        delimiter: ends a line, and cannot overlap itself.
    """

    object: ListedObject
    start: int
    end: int
    delimiter: bytes

    def open(self, store: ObjectStore, ex: Execution) -> ObjectStream:
        """Return the bytes of the range, and of a delimiter before it."""
        start = max(self.start - len(self.delimiter), 0)
        return self._open_bytes(store, start, self.end, ex)

    def iter_blocks(
        self, stream: ObjectStream, store: ObjectStore, ex: Execution
    ) -> Iterator[bytes]:
        """Read the lines as blocks, which end where a line ends or the object does.

        Args:
            stream: of `open`; it is closed.
            store: has the object.
            ex: the run.

        Raises:
            StoreError: the object cannot be read.
        """
        delimiter, width = self.delimiter, len(self.delimiter)
        is_begun = self.start == 0
        parts: list[bytes] = []  # of the line that has no end yet
        edge = b""
        for block in _iter_blocks(stream):
            rest = block
            if not is_begun:
                seen = edge + block
                place = seen.find(delimiter)
                if place < 0:
                    edge = _last_bytes(seen, width - 1)
                    continue
                is_begun, edge, rest = True, b"", seen[place + width :]
            cut = (edge + rest).rfind(delimiter) + width - len(edge)
            if cut + len(edge) >= width and rest:
                yield b"".join((*parts, rest[:cut]))
                parts, edge, rest = [], b"", rest[cut:]
            if rest:
                parts.append(rest)
                edge = _last_bytes(edge + rest, width - 1)
        if parts:
            yield b"".join((*parts, *self._read_line_end(store, edge, ex)))

    def _read_line_end(self, store: ObjectStore, edge: bytes, ex: Execution) -> Iterator[bytes]:
        """Read on behind the range, to the end of its last line."""
        width, size = len(self.delimiter), self.object.size
        for at in range(self.end, size, _TAIL_BYTES):
            for block in _iter_blocks(self._open_bytes(store, at, min(at + _TAIL_BYTES, size), ex)):
                place = (edge + block).find(self.delimiter)
                if place >= 0:
                    yield block[: place + width - len(edge)]
                    return
                yield block
                edge = _last_bytes(edge + block, width - 1)

    def _open_bytes(self, store: ObjectStore, start: int, end: int, ex: Execution) -> ObjectStream:
        listed = self.object
        return ObjectStream(store, listed.key, ex, start=start, end=end, version=listed.version)


def _iter_blocks(stream: ObjectStream) -> Iterator[bytes]:
    with closing(stream):
        while data := stream.read(BLOCK_BYTES):
            yield data


def _last_bytes(data: bytes, count: int) -> bytes:
    return data[-count:] if count > 0 else b""
