"""Cutting bytes into messages: those that have landed uncut, and streams that are to land."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from streamer.landing.blocks import Cut, Record, batch, each, uncut
from streamer.message import NO_META, Execution
from streamer.source.ranges import overlaps_itself
from streamer.source.replayable import Chunk, Raws
from streamer.source.scanning import ByteStream, Opened, ScanError, Scanner, Splitting

_BLOCK: Final = 1 << 18
_MAX_PIECE: Final = 64 << 20
"""Bytes between two delimiters, where the scanner has no bound of its own."""


def cut_with(scanner: Any, ex: Execution, name: str) -> Cut:
    """Return what cuts bytes that have landed whole.

    Args:
        scanner: of the input.
        ex: takes what it logs and counts.
        name: what the bytes came from, for the log.
    """

    def cut(data: bytes, meta: Mapping[str, Any]) -> Iterator[Chunk]:
        if isinstance(scanner, Splitting):
            yield Raws(scanner.scan(data, ex, name), meta)
            return
        try:
            for found in scanner.cuts(Opened(io.BytesIO(data), name, meta, ex)):
                yield found.chunk
        except ScanError as e:
            ex.log("ERROR", f"Failed to read what was received: {e}", {"source": name})

    return cut


def pour(
    stream: ByteStream,
    scanner: Scanner,
    name: str,
    ex: Execution,
    put: Callable[[Record], None],
) -> None:
    """Cut a stream that cannot be read again and land its messages, until it ends.

    Where any range of bytes between two delimiters can be cut by itself, that is left to who reads
    it, and only the delimiters are looked for.

    Args:
        stream: gives what there is, and nothing at its end.
        scanner: cuts it.
        name: what the stream is, for the log.
        ex: takes what the scanner logs and counts.
        put: lands a record, and returns when it is safe.

    Raises:
        ScanError: the scanner cannot read it.
        OSError: the stream has broken; what was whole before has landed.
    """
    if isinstance(scanner, Splitting) and not overlaps_itself(scanner.delimiter):
        longest = getattr(scanner, "max_buffer_size", _MAX_PIECE)
        _pour_uncut(stream, scanner.delimiter, longest, put)
        return
    for cut in scanner.cuts(Opened(stream, name, NO_META, ex)):
        for record in records_of(cut.chunk):
            put(record)


def records_of(chunk: Chunk) -> list[Record]:
    """Return the records of a chunk."""
    if isinstance(chunk, Raws):
        return [each(chunk.raws, chunk.meta)] if chunk.raws else []
    return [batch(one) for one in chunk if one]


def _pour_uncut(
    stream: ByteStream, delimiter: bytes, longest: int, put: Callable[[Record], None]
) -> None:
    """Land a stream as far as its last delimiter, again and again.

    Of a piece without an end no more is held than shows that it is longer than a message may be;
    whoever reads it leaves it out and says so.
    """
    held = bytearray()
    looked = cut = 0
    try:
        while data := stream.read(_BLOCK):
            held += data
            # A delimiter may lie across two reads, but not across what was thrown away.
            end = held.rfind(delimiter, max(looked - len(delimiter) + 1, cut))
            looked = len(held)
            if end < 0:
                if len(held) > longest + _BLOCK:
                    cut = longest + 1
                    del held[cut : len(held) - len(delimiter) + 1]
                    looked = len(held)
                continue
            end += len(delimiter)
            ready = bytes(memoryview(held)[:end])
            del held[:end]
            looked, cut = len(held), 0
            put(uncut(ready, NO_META, max(ready.count(delimiter), 1)))
    finally:
        if held:
            put(uncut(bytes(held), NO_META, 1))
