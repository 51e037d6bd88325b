"""Cut bytes into messages: bytes that were spooled uncut, and streams on their way to the spool."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from streamer.connectors.files.line_files import is_self_overlapping
from streamer.connectors.spool.blocks import Record, ScanFunction, pack_batch, pack_each, pack_uncut
from streamer.core.execution import Execution
from streamer.core.message import NO_META
from streamer.sdk.input.replayable import Chunk, RawMessages
from streamer.sdk.input.scanning import ByteStream, ScanError, ScanInput, Scanner, SplittableScanner

_READ_BYTES: Final = 1 << 18
_MAX_MESSAGE_BYTES: Final = 64 << 20
"""Bytes between two delimiters, where the scanner has no bound of its own."""


def make_scan_function(scanner: Any, ex: Execution, name: str) -> ScanFunction:
    """Return the function that cuts bytes which were spooled uncut.

    Args:
        scanner: of the input.
        ex: takes what it logs and counts.
        name: what the bytes came from, for the log.
    """

    def scan(data: bytes, meta: Mapping[str, Any]) -> Iterator[Chunk]:
        if isinstance(scanner, SplittableScanner):
            yield RawMessages(scanner.scan_range(data, ex, name), meta)
            return
        try:
            for cut in scanner.scan_stream(ScanInput(io.BytesIO(data), name, meta, ex)):
                yield cut.chunk
        except ScanError as e:
            ex.log("ERROR", f"Failed to read received data: {e}", {"source": name})

    return scan


def scan_into_spool(
    stream: ByteStream,
    scanner: Scanner,
    name: str,
    ex: Execution,
    put: Callable[[Record], None],
) -> None:
    """Cut a stream that cannot be read again and spool its messages, until it ends.

    Where any range of bytes between two delimiters can be cut by itself, that is left to who reads
    it, and only the delimiters are looked for.

    Args:
        stream: gives what there is, and nothing at its end.
        scanner: cuts it.
        name: what the stream is, for the log.
        ex: takes what the scanner logs and counts.
        put: spools a record, and returns when it is safe.

    Raises:
        ScanError: the scanner cannot read it.
        OSError: the stream has broken; what was whole before is in the spool.
    """
    if isinstance(scanner, SplittableScanner) and not is_self_overlapping(scanner.delimiter):
        max_bytes = getattr(scanner, "max_buffer_size", _MAX_MESSAGE_BYTES)
        _spool_delimited(stream, scanner.delimiter, max_bytes, put)
        return
    for cut in scanner.scan_stream(ScanInput(stream, name, NO_META, ex)):
        for record in records_of_chunk(cut.chunk):
            put(record)


def records_of_chunk(chunk: Chunk) -> list[Record]:
    """Return the records of a chunk."""
    if isinstance(chunk, RawMessages):
        return [pack_each(chunk.raws, chunk.meta)] if chunk.raws else []
    return [pack_batch(one) for one in chunk if one]


def _spool_delimited(
    stream: ByteStream, delimiter: bytes, max_bytes: int, put: Callable[[Record], None]
) -> None:
    """Land a stream as far as its last delimiter, again and again.

    Of a piece without an end no more is held than shows that it is longer than a message may be;
    whoever reads it leaves it out and says so.
    """
    buffer = bytearray()
    searched = cut = 0
    try:
        while data := stream.read(_READ_BYTES):
            buffer += data
            # A delimiter may lie across two reads, but not across what was thrown away.
            end = buffer.rfind(delimiter, max(searched - len(delimiter) + 1, cut))
            searched = len(buffer)
            if end < 0:
                if len(buffer) > max_bytes + _READ_BYTES:
                    cut = max_bytes + 1
                    del buffer[cut : len(buffer) - len(delimiter) + 1]
                    searched = len(buffer)
                continue
            end += len(delimiter)
            ready = bytes(memoryview(buffer)[:end])
            del buffer[:end]
            searched, cut = len(buffer), 0
            put(pack_uncut(ready, NO_META, max(ready.count(delimiter), 1)))
    finally:
        if buffer:
            put(pack_uncut(bytes(buffer), NO_META, 1))
