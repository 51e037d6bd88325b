"""Damage in a store: found by the places that blocks carry, and passed over only when asked to.

Whatever reads a store walks through its blocks. Each says how many messages were before it, so what
is missing between two of them is known, and how much that is. What is to be passed over is written
down beside the segments, so that every later reading passes over the same.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from streamer.connectors.spool.blocks import (
    HEADER_BYTES,
    Header,
    find_next_header,
    is_whole,
    read_header,
)
from streamer.connectors.spool.byte_spool import DURABLE_FILE, read_durable, segment_path
from streamer.connectors.spool.checksums import DamagedRange, find_damaged, rewrite_without
from streamer.connectors.spool.pointer import (
    UNKNOWN_TOTAL,
    Position,
    SafePosition,
    read_read_position,
    read_safe,
    write_read_position,
)
from streamer.core.disk import make_private_directory, sync_data, sync_directory
from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine

DAMAGE_PREFIX: Final = "the spool is damaged: "
"""Begins the text of an error about damage."""

SKIP_OPTION: Final = "--skip-damaged"
LOST_COUNTER: Final = "input_lost"
"""The counter of messages that were passed over."""

SKIP_MARKS_FILE: Final = "skip_marks"
"""A file that is there while the newest mark may be one that is older than what is damaged."""

_SKIPPED_FILE: Final = "skipped.json"
_MAX_VERIFIED_BYTES: Final = 256 << 20
"""Bytes of a store whose bodies are looked through at a start, too."""


class Block(NamedTuple):
    """The place of a block.

    Attributes:
        segment: number of its segment.
        start: where it begins.
        end: where it ends.
        messages: how many it has.
        total: messages of the store up to its end.
    """

    segment: int
    start: int
    end: int
    messages: int
    total: int


class Damage(NamedTuple):
    """A part of a store that cannot be read.

    Attributes:
        path: of the segment in which the damage was seen.
        byte: where in it.
        start: where the last block ends that can be read.
        end: where the next one begins.
        messages: how many messages are lost; None when that cannot be known.
        missing: whether the segment is not there at all.
    """

    path: Path
    byte: int
    start: Position
    end: Position
    messages: int | None
    missing: bool = False

    @classmethod
    def of_part(cls, directory: Path, part: DamagedRange) -> Damage:
        """Return what is damaged in a spool of bytes (`streamer.connectors.spool.checksums`)."""
        path = segment_path(directory, part.segment)
        start, end = (Position(part.segment, at) for at in (part.start, part.end))
        return cls(path, part.start, start, end, part.lines, part.missing)

    @property
    def lost_text(self) -> str:
        """The number of lost messages, in words."""
        if self.messages is None:
            return "an unknown number of messages"
        return f"{self.messages:,} message{'' if self.messages == 1 else 's'}"

    def __str__(self) -> str:
        if self.missing:
            return f"{self.path} is missing, and with it {self.lost_text} that came in"
        where = f"{self.path} is damaged at byte {self.byte:,}"
        return f"{where}; {self.lost_text} that came in cannot be read"


def damage_error(damages: Sequence[Damage]) -> StreamerError:
    """Return the error about damage."""
    return StreamerError(
        f"{DAMAGE_PREFIX}{'; '.join(map(str, damages))}; restore what is damaged from a backup, or "
        f"start once with {SKIP_OPTION} to go on without these messages"
    )


def is_store_behind(safe: SafePosition, at: Position) -> bool:
    """Return whether a store ends before a position that was read, or is another one."""
    another = at.store and safe.store and at.store != safe.store
    return bool(another) or at[:2] > (safe.segment, safe.size)


def behind_error(directory: Path, at: Position) -> StreamerError:
    """Return the error about a store that ends before a position that was read."""
    return StreamerError(
        f"{DAMAGE_PREFIX}{directory} does not hold what was read of it up to segment {at.segment}, "
        f"byte {at.pos:,}: it was emptied, or an older copy was put there, and what came in later "
        f"is lost; restore it from a backup, or start once with {SKIP_OPTION} to go on with what "
        "comes from now on"
    )


def parse_position(offset: Mapping[str, Any]) -> Position:
    """Return the position that an offset names; those of version 0.1 have less in them."""
    total, store = offset.get("total", UNKNOWN_TOTAL), offset.get("store", 0)
    return Position(offset["segment"], offset["pos"], total, store)


class SkippedDamage:
    """The parts of a store that are skipped."""

    def __init__(self, directory: Path) -> None:
        """Read the marks.

        Raises:
            StreamerError: the file that it is in is damaged.
        """
        self._path = directory / _SKIPPED_FILE
        self._ends: dict[tuple[int, int], Position] = {}
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return
        try:
            ends, checksum = json.loads(data)
            if zlib.crc32(json.dumps(ends).encode()) != checksum:
                raise ValueError("its check sum is another one")
            self._ends = {(a, b): Position(*end) for a, b, *end in ends}
        except (ValueError, TypeError) as e:
            raise StreamerError(
                f"{DAMAGE_PREFIX}{self._path} says what is passed over, and cannot be read ({e}). "
                f"Restore it from a backup, or delete it and start once with {SKIP_OPTION}"
            ) from None

    def skip_to(self, at: Position) -> Position | None:
        """Return where to go on instead of a position; None when nothing is passed over there."""
        for start, end in self._ends.items():
            if start <= at[:2] < end[:2]:
                return end
        return None

    def skip(self, damages: Sequence[Damage]) -> None:
        """Pass over what is damaged from now on; when this returns it is on the disk."""
        for one in damages:
            self._ends[one.start[:2]] = one.end
        document = [[*start, *end[:3]] for start, end in self._ends.items()]
        draft = self._path.with_suffix(".tmp")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(json.dumps([document, zlib.crc32(json.dumps(document).encode())]).encode())
            file.flush()
            sync_data(file.fileno())
        draft.replace(self._path)
        entries = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            sync_directory(entries)
        finally:
            os.close(entries)


def iter_blocks(
    directory: Path, start: Position, until: SafePosition, *, bodies: bool = False
) -> Iterator[Block | Damage]:
    """Go through the blocks between a position and what is safe.

    Args:
        directory: the store's.
        start: where a block begins.
        until: how far to go.
        bodies: whether to look at bodies as well as at headers.

    Raises:
        StreamerError: what is to be passed over cannot be read.
    """
    skipped = SkippedDamage(directory)
    # Before `gap.start` all is well; it is open while no block was found that can be read.
    at, gap = start, _Gap(start)
    with closing(_Segment(directory)) as segment:
        while at[:2] < (until.segment, until.size):
            if (end := skipped.skip_to(at)) is not None:
                at, gap = end, _Gap(end)
                continue
            size = segment.open(at.segment)
            if at.segment == until.segment:
                size = min(size, until.size)
            if at.pos >= size:
                # A segment goes when all of it is read, though a position may still be at its end.
                if size == 0 and (at.pos == 0 or at.total != UNKNOWN_TOTAL):
                    gap = gap.widen(at, 0, segment.missing)
                if at.segment == until.segment:
                    gap = gap.widen(at, 0)
                    break
                at = Position(at.segment + 1, 0)
                continue
            header = read_header(
                segment.read(at.pos, HEADER_BYTES), at.pos, size, until.store, at.segment
            )
            if header is None:
                gap = gap.widen(at, 0)
                rest = segment.read(at.pos + 1, size - at.pos - 1)
                next_at = find_next_header(rest, at.pos + 1, size, until.store, at.segment)
                at = Position(at.segment, next_at)
                continue
            length = header.end - header.body
            if bodies and not is_whole(segment.read(header.body, length), header):
                gap = gap.widen(at, header.messages)
                at = Position(at.segment, header.end)
                continue
            before, block = _block_at(at, header)
            # Nearly all blocks come right behind the one before them.
            is_behind = gap.at is None and before == gap.start.total
            if not is_behind and (damage := gap.to_damage(directory, Position(*at[:2], before))):
                yield damage
            yield block
            at = Position(at.segment, header.end, block.total)
            gap = _Gap(at)
        if damage := gap.to_damage(directory, Position(until.segment, until.size, until.total)):
            yield damage


def _block_at(at: Position, header: Header) -> tuple[int, Block]:
    """Return how many messages are before a block, and the block."""
    before = UNKNOWN_TOTAL if header.place is None else header.place.before
    total = UNKNOWN_TOTAL if before == UNKNOWN_TOTAL else before + header.messages
    return before, Block(at.segment, at.pos, header.end, header.messages, total)


class _Gap(NamedTuple):
    """The bytes between two blocks that can be read.

    Attributes:
        start: where the first one ends.
        at: where the damage was seen first; None when none was.
        messages: those of blocks whose body alone is damaged.
        missing: whether the segment is missing in which it was seen.
    """

    start: Position
    at: Position | None = None
    messages: int = 0
    missing: bool = False

    def widen(self, at: Position, messages: int, missing: bool = False) -> _Gap:
        """Return the gap with more in it: a block, or a segment that may be missing."""
        missing = self.missing or (missing and self.at is None)
        return _Gap(self.start, self.at or at, self.messages + messages, missing)

    def to_damage(self, directory: Path, end: Position) -> Damage | None:
        """Return what is lost up to a block that can be read, or up to the end; None for nothing.

        Bytes of a write that has failed, and blocks without messages, are no loss.
        """
        before, after = self.start.total, end.total
        known = before != UNKNOWN_TOTAL and after != UNKNOWN_TOTAL
        if before == after if known else self.at is None:
            return None
        at = self.at or self.start
        path = segment_path(directory, at.segment)
        lost = after - before if known else self.messages
        lost_known = lost if lost > 0 else None
        return Damage(path, at.pos, self.start, end, lost_known, self.missing)


class _Segment:
    """The segment that is read."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._number = 0
        self._file = -1
        self._size = 0

    @property
    def missing(self) -> bool:
        return self._file < 0

    def open(self, number: int) -> int:
        """Open a segment, if it is not open; return its size in bytes."""
        if number != self._number:
            self.close()
            self._number = number
            # It may be removed between two looks, as may any file that is damaged.
            with suppress(FileNotFoundError):
                self._file = os.open(segment_path(self._directory, number), os.O_RDONLY)
                self._size = os.fstat(self._file).st_size
        return self._size

    def read(self, start: int, size: int) -> bytes:
        return os.pread(self._file, size, start)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file, self._size, self._number = -1, 0, 0


def find_damage(directory: Path) -> list[Damage]:
    """Return what is damaged in a store of what is not read yet.

    Raises:
        StreamerError: what is to be passed over cannot be read.
    """
    start = read_read_position(directory) or _first_position(directory)
    if (directory / DURABLE_FILE).exists():
        durable = read_durable(directory)
        parts = find_damaged(directory, start[:2], (durable.segment, durable.size))
        return [Damage.of_part(directory, one) for one in parts]
    safe = read_safe(directory)
    rest = sum(
        path.stat().st_size for path in directory.glob("*.seg") if int(path.stem) >= start.segment
    )
    blocks = iter_blocks(directory, start, safe, bodies=rest <= _MAX_VERIFIED_BYTES)
    return [one for one in blocks if isinstance(one, Damage)]


def _first_position(directory: Path) -> Position:
    """Return where a store begins of which nothing has been read, as far as is known."""
    numbers = [int(path.stem) for path in directory.glob("*.seg")]
    first = min(numbers, default=1)
    return Position(first, 0, 0 if first == 1 else UNKNOWN_TOTAL)


def check_positions(spool: Path, offset: Mapping[str, Any], skips: bool, log: LogLine) -> None:
    """Check, before inputs are opened, that their stores are those that were read.

    Args:
        spool: where they are.
        offset: up to which micro-batches were planned, or the offsets of several inputs by name.
        skips: whether to go on with stores that are not.
        log: takes log lines.

    Raises:
        StreamerError: one has been emptied, or is an older copy.
    """
    if not {"segment", "pos"} <= offset.keys():
        for name, inner in offset.items():
            if isinstance(inner, Mapping):
                check_positions(spool / quote(name, safe=""), inner, skips, log)
        return
    if (spool / DURABLE_FILE).exists():
        return  # It has no blocks.
    at, safe = parse_position(offset), read_safe(spool)
    if not safe.segment and next(spool.glob("*.seg"), None) is not None:
        return  # The machine went down. What is there is looked at when the store is opened.
    if not is_store_behind(safe, at):
        return
    if not skips:
        raise behind_error(spool, at)
    make_private_directory(spool)
    # What comes now must not stand where something else has been read.
    write_read_position(spool, at)
    log("WARN", "Skipped messages that a store no longer has", {"directory": str(spool)})


def check_stores(spool: Path, skips: bool, log: LogLine, count: Callable[[str, int], None]) -> None:
    """Check, once inputs are opened, that the messages they received can be read.

    Args:
        spool: where their stores are.
        skips: whether to pass over what is damaged, from now on.
        log: takes log lines.
        count: adds to a counter.

    Raises:
        StreamerError: something is damaged, and not to be passed over.
    """
    stores = sorted({path.parent for path in spool.rglob("*.seg")})
    damages_by_store = [(store, find_damage(store)) for store in stores]
    if not skips and (all_of := [one for _, some in damages_by_store for one in some]):
        raise damage_error(all_of)
    for store, some in damages_by_store:
        if some and (store / DURABLE_FILE).exists():
            _rewrite_without_damage(store, some)
        elif some:
            SkippedDamage(store).skip(some)
        for one in some:
            fields = {"file": str(one.path), "position": one.byte, "lost": one.lost_text}
            log("WARN", "Skipped damage in the spool", fields)
            count(LOST_COUNTER, one.messages or 0)


def _rewrite_without_damage(store: Path, damages: Sequence[Damage]) -> None:
    """Write the segments of a spool of bytes anew, without what is damaged."""
    start = read_read_position(store) or _first_position(store)
    for number in {one.start.segment for one in damages}:
        bad = [
            DamagedRange(number, one.start.pos, one.end.pos, None)
            for one in damages
            if one.start.segment == number
        ]
        rewrite_without(store, number, start.pos if number == start.segment else 0, bad)


@contextmanager
def skip_damaged_marks(spool: Path, skips: bool) -> Iterator[None]:
    """Let inputs that are opened go on from an older note where the newest is damaged."""
    files = [store / SKIP_MARKS_FILE for store in {path.parent for path in spool.rglob("*.seg")}]
    for file in files if skips else ():
        file.touch(0o600)
    try:
        yield
    finally:
        for file in files:
            file.unlink(missing_ok=True)
