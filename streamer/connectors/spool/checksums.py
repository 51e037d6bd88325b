"""Check sums of what was appended to the segments of a spool of bytes, and the damage they show."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from streamer.core.disk import sync_data

_ENTRY: Final = struct.Struct("<QII")
_SUM: Final = struct.Struct("<I")
_ENTRY_BYTES: Final = _ENTRY.size + _SUM.size


class AppendChecksum(NamedTuple):
    """The bytes that were appended at once.

    Attributes:
        start: where it begins in its segment, in bytes.
        end: where it ends.
        checksum: of its bytes.
        lines: how many lines it has.
    """

    start: int
    end: int
    checksum: int
    lines: int


class DamagedRange(NamedTuple):
    """Bytes of a segment that are not what was appended.

    Attributes:
        segment: number of the segment.
        start: where they begin.
        end: where they end.
        lines: how many lines are lost; None when that is not known.
        missing: whether the segment is not there at all.
    """

    segment: int
    start: int
    end: int
    lines: int | None
    missing: bool = False


def checksums_path(directory: Path, number: int) -> Path:
    """Return the path of the check sums of a segment."""
    return directory / f"{number:010d}.sum"


def pack_checksum(end: int, data: bytes, lines: int) -> bytes:
    """Return the entry of bytes that were appended, and end there."""
    entry = _ENTRY.pack(end, zlib.crc32(data), lines)
    return entry + _SUM.pack(zlib.crc32(entry))


def read_checksums(directory: Path, number: int) -> list[AppendChecksum]:
    """Return the check sums of a segment, up to the first that is not whole; none for none."""
    try:
        data = checksums_path(directory, number).read_bytes()
    except FileNotFoundError:
        return []
    checksums: list[AppendChecksum] = []
    start = 0
    for at in range(0, len(data) - _ENTRY_BYTES + 1, _ENTRY_BYTES):
        entry = data[at : at + _ENTRY.size]
        end, checksum, lines = _ENTRY.unpack(entry)
        if (
            data[at + _ENTRY.size : at + _ENTRY_BYTES] != _SUM.pack(zlib.crc32(entry))
            or end < start
        ):
            break
        checksums.append(AppendChecksum(start, end, checksum, lines))
        start = end
    return checksums


def truncate_checksums(directory: Path, number: int, size: int) -> None:
    """Forget the check sums of what was appended behind a size, and not published."""
    kept = [one for one in read_checksums(directory, number) if one.end <= size]
    path = checksums_path(directory, number)
    if path.exists() and path.stat().st_size > len(kept) * _ENTRY_BYTES:
        os.truncate(path, len(kept) * _ENTRY_BYTES)


def find_damaged(
    directory: Path, start: tuple[int, int], end: tuple[int, int], delimiter: bytes = b"\n"
) -> Iterator[DamagedRange]:
    """Return what is damaged between two positions, each a segment's number and bytes of it.

    What has no check sum is taken as it is, if its length is right.

    Args:
        directory: the spool's.
        start: where to begin.
        end: where to end.
        delimiter: ends a line.
    """
    for number in range(start[0], end[0] + 1):
        since = start[1] if number == start[0] else 0
        sums = read_checksums(directory, number)
        until = end[1] if number == end[0] else sums[-1].end if sums else 0
        try:
            file = os.open(directory / f"{number:010d}.seg", os.O_RDONLY)
        except FileNotFoundError:
            if until > since or not sums:
                known = sum(one.lines for one in sums if one.end > since) if sums else None
                yield DamagedRange(number, since, until, known, missing=True)
            continue
        try:
            yield from _damaged_in_segment(file, number, since, until, sums, delimiter)
        finally:
            os.close(file)


def _damaged_in_segment(
    file: int, number: int, since: int, until: int, sums: list[AppendChecksum], delimiter: bytes
) -> Iterator[DamagedRange]:
    for one in sums:
        if one.end <= since or one.start >= until:
            continue
        data = os.pread(file, one.end - one.start, one.start)
        if len(data) == one.end - one.start and zlib.crc32(data) == one.checksum:
            continue
        # Where these bytes are damaged as well, more lines are taken for lost than were unread.
        before = data[: max(since - one.start, 0)].count(delimiter)
        yield DamagedRange(number, max(one.start, since), one.end, max(one.lines - before, 1))
    summed = max(sums[-1].end if sums else 0, since)
    size = os.fstat(file).st_size
    if until > summed and size < until:
        yield DamagedRange(number, max(summed, size), until, None)


def rewrite_without(directory: Path, number: int, since: int, damaged: list[DamagedRange]) -> None:
    """Write a segment anew without its damaged parts; what was read of it keeps its length.

    Args:
        directory: the spool's.
        number: of the segment, to which nothing is appended any more.
        since: up to where it was read.
        damaged: its damaged parts.
    """
    path = directory / f"{number:010d}.seg"
    data = path.read_bytes() if path.exists() else b""
    kept = data[:since].ljust(since, b"\0")
    sums = pack_checksum(since, kept, 0) if since else b""
    pieces, size = [kept], since
    holes = sorted((one.start, one.end) for one in damaged)
    summed = read_checksums(directory, number)
    # What stands behind all that was summed may be of another segment, as its bad parts are.
    whole = min(len(data), summed[-1].end) if summed else len(data)
    for start, end in _ranges_without(since, whole, holes):
        piece = data[start:end]
        size += len(piece)
        sums += pack_checksum(size, piece, piece.count(b"\n"))
        pieces.append(piece)
    for to, content in ((checksums_path(directory, number), sums), (path, b"".join(pieces))):
        draft = to.with_suffix(".tmp")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(content)
            out.flush()
            sync_data(out.fileno())
        draft.replace(to)


def _ranges_without(
    start: int, end: int, holes: list[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    for since, until in holes:
        if since > start:
            yield start, min(since, end)
        start = max(start, until)
    if end > start:
        yield start, end
