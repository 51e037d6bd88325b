"""The messages of a spool, as a replayable source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from streamer.connectors.spool.blocks import HEADER_BYTES, is_whole, read_chunks, read_header
from streamer.connectors.spool.byte_spool import delete_segments, segment_path
from streamer.connectors.spool.damage import (
    Block,
    Damage,
    behind_error,
    damage_error,
    is_store_behind,
    iter_blocks,
    parse_position,
)
from streamer.connectors.spool.pointer import (
    UNKNOWN_TOTAL,
    Position,
    SafePosition,
    read_safe,
    write_read_position,
)
from streamer.connectors.spool.scan_bytes import make_scan_function
from streamer.core.execution import Execution
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.input.replayable import Chunk, LatestOffset, Limit, Offset

_MIN_PIECE_BYTES = 1 << 20
_MAX_INLINE_BYTES = 32 << 20
"""Bytes of a micro-batch that travel inside of its tasks, at most: Spark refuses a task that is too
large (`spark.rpc.message.maxSize`), and the driver's heap holds them more than once."""


class BlockRange(NamedTuple):
    """Blocks of one segment.

    Attributes:
        path: the segment's.
        start: where the first block begins.
        end: where the last one ends.
        store: the store's identity.
        data: the bytes themselves, for workers that do not see the file.
    """

    path: str
    start: int
    end: int
    store: int
    data: bytes | None = None


@dataclass(frozen=True)
class SpoolSource:
    """A store as a source; an offset is a segment and a position in it.

    Attributes:
        directory: the store's.
        scanner: cuts records that are not cut yet; None when there are none.
        name: of what the messages came from, for the log.
        inline: whether the bytes travel in the pieces, since workers do not see the store.
    """

    directory: Path
    scanner: Any = None
    name: str = ""
    inline: bool = False

    @classmethod
    def for_input(cls, context: InputContext, scanner: Any = None, name: str = "") -> Self:
        """Return the source of what an input spools; see the attributes."""
        return cls(context.directory, scanner, name, inline=not context.is_local)

    def initial_offset(self) -> Offset:
        """Return the beginning of the first segment."""
        return {"segment": 1, "pos": 0, "total": 0}

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Go on from `start` through what is safe, until the limit, but by one block at least.

        Raises:
            StreamerError: what comes next is damaged.
        """
        safe = read_safe(self.directory)
        at = parse_position(start)
        if not safe.segment:
            return LatestOffset(start, 0)  # It is being opened, or nothing was ever safe.
        if is_store_behind(safe, at):
            raise behind_error(self.directory, at)
        messages, size = 0, 0
        max_bytes = min(limit.size, _MAX_INLINE_BYTES) if self.inline else limit.size
        for block in iter_blocks(self.directory, at, safe):
            if isinstance(block, Damage):
                if at != parse_position(start):
                    # What is before comes out first.
                    return LatestOffset(_to_offset(at), messages, has_more=True)
                raise damage_error([block])
            if messages and (messages >= limit.messages or size >= max_bytes):
                before = (
                    block.total - block.messages if block.total != UNKNOWN_TOTAL else UNKNOWN_TOTAL
                )
                here = Position(block.segment, block.start, before, safe.store)
                return LatestOffset(_to_offset(here), messages, has_more=True)
            messages += block.messages
            size += block.end - block.start
            at = Position(block.segment, block.end, block.total, safe.store)
        end = Position(safe.segment, safe.size, safe.total, safe.store)
        return LatestOffset(_to_offset(end), messages, is_ended=safe.closed)

    def watch(self, wake: Callable[[], None]) -> None:
        """Do nothing: who writes the store wakes the planner."""

    def next_poll(self, start: Offset, now: int) -> int | None:
        """Return no time: who writes the store wakes the planner."""
        return None

    def split(self, start: Offset, end: Offset, parts: int) -> list[BlockRange]:
        """Cut the blocks between two offsets into pieces of about equal size, in order.

        Raises:
            StreamerError: something between them is damaged.
        """
        blocks: list[Block] = []
        store = read_safe(self.directory).store
        until = parse_position(end)
        for one in iter_blocks(
            self.directory,
            parse_position(start),
            SafePosition(until.segment, until.pos, False, store, until.total),
        ):
            if isinstance(one, Damage):
                raise damage_error([one])
            if one.messages:
                blocks.append(one)
        total = sum(block.end - block.start for block in blocks)
        share = max(-(-total // parts), _MIN_PIECE_BYTES)
        pieces: list[BlockRange] = []
        for block in blocks:
            path = str(segment_path(self.directory, block.segment))
            last = pieces[-1] if pieces else None
            joins = last and last.path == path and last.end == block.start
            if last and joins and block.end - last.start <= share:
                pieces[-1] = last._replace(end=block.end)
            else:
                pieces.append(BlockRange(path, block.start, block.end, store))
        return (
            [piece._replace(data=_read_range(piece)) for piece in pieces] if self.inline else pieces
        )

    def read(self, piece: BlockRange, ex: Execution) -> Iterator[Chunk]:
        """Read the messages of a piece; requests that wait are noted in the run."""

        def on_request(request: str) -> None:
            ex.answers.setdefault(request, [])

        cut = make_scan_function(self.scanner, ex, self.name)
        data = _read_range(piece) if piece.data is None else piece.data
        for body in _iter_bodies(piece, data):
            yield from read_chunks(body, cut, on_request)

    def partition_of(self, piece: BlockRange) -> str:
        """There is but one: what is spooled is in the order in which it came."""
        return ""

    def on_committed(self, end: Offset) -> None:
        """Delete the segments before the position, the one that ends there too."""
        at = parse_position(end)
        number = at.segment
        with suppress(OSError):
            # Without it, more is taken for lost when something is damaged; a disk may be full.
            write_read_position(self.directory, at)
        whole = number < read_safe(self.directory).segment
        delete_segments(self.directory, number + (whole and at.pos >= self._segment_length(number)))

    def on_finished(self) -> None:
        """The next start begins with an empty store."""

    def _segment_length(self, number: int) -> int:
        path = segment_path(self.directory, number)
        return path.stat().st_size if path.exists() else 0


def _to_offset(position: Position) -> Offset:
    return dict(position._asdict())


def _iter_bodies(piece: BlockRange, data: bytes) -> Iterator[memoryview]:
    """Return the bodies of the blocks of a piece.

    Raises:
        StreamerError: one of them is not what was written.
    """
    view, at, size = memoryview(data), 0, piece.end - piece.start
    number = int(Path(piece.path).stem)
    while at < size:
        head = bytes(view[at : at + HEADER_BYTES])
        header = read_header(head, piece.start + at, piece.end, piece.store, number)
        body = view[header.body - piece.start : header.end - piece.start] if header else view[:0]
        if header is None or not is_whole(body, header):
            here = Position(number, piece.start + at)
            lost = header.messages if header else None
            raise damage_error([Damage(Path(piece.path), here.pos, here, here, lost)])
        yield body
        at = header.end - piece.start


def _read_range(piece: BlockRange) -> bytes:
    with open(piece.path, "rb", buffering=0) as file:
        file.seek(piece.start)
        parts = []
        left = piece.end - piece.start
        while left and (data := file.read(left)):
            parts.append(data)
            left -= len(data)
    return parts[0] if len(parts) == 1 else b"".join(parts)
