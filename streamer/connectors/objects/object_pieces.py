"""The pieces of a micro-batch of objects: what each task reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from streamer.connectors.objects.batch_plan import line_delimiter_of
from streamer.connectors.objects.object_lines import LineRange
from streamer.connectors.objects.object_offset import ObjectOffset
from streamer.connectors.objects.store import ListedObject, ObjectStore
from streamer.sdk.input.scanning import START_MARK, FixedSizeScanner, ScanMark, Scanner

_MIN_RANGE_BYTES: Final = 4 << 20
"""Bytes of a part of an object that a task of its own is worth."""


@dataclass(frozen=True, slots=True)
class ObjectPart:
    """Messages of one object that follow each other.

    Attributes:
        object: the object.
        since: where they begin.
        count: how many they are; None for all up to the end of the object.
        lines: the range of its lines, in place of `since` and `count`; None without one.
        is_reread: whether the object has replaced one of which a part was read.
    """

    object: ListedObject
    since: ScanMark = START_MARK
    count: int | None = None
    lines: LineRange | None = None
    is_reread: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the part is all of the object, so that nothing depends on its version."""
        return self.since == START_MARK and self.count is None and self.lines is None

    @property
    def size(self) -> int:
        """About how many bytes are read."""
        if self.lines is not None:
            return self.lines.end - self.lines.start
        return self.object.size


@dataclass(frozen=True, slots=True)
class ObjectPiece:
    """Parts of objects that one task reads, in order."""

    parts: Sequence[ObjectPart]


def split_objects(
    store: ObjectStore, scanner: Scanner, start: ObjectOffset, end: ObjectOffset, pieces: int
) -> list[ObjectPiece]:
    """Cut what lies between two offsets into pieces of about equal size, in order.

    An object of which only a part is read, or several parts, must be the one that was planned: what
    was planned of one that has been replaced since cannot be read.
    """
    requested = _list_parts(scanner, start, end)
    total = sum(part.size for part in requested)
    share = max(-(-total // max(pieces, 1)), _MIN_RANGE_BYTES)
    parts: list[ObjectPart] = []
    for part in requested:
        cut = list(_cut_part(scanner, part, share))
        if len(cut) > 1 or not part.is_whole:
            now = store.head(part.object.key)
            if now is not None and now.version != part.object.version:
                if part.is_whole:
                    parts += _cut_part(scanner, replace(part, object=now), share)
                continue
        parts += cut
    return list(_group_parts(parts, share, pieces))


def _list_parts(scanner: Scanner, start: ObjectOffset, end: ObjectOffset) -> list[ObjectPart]:
    """Return what is read of each object."""
    delimiter = line_delimiter_of(scanner)
    begun = start.partly_read

    def make_part(
        listed: ListedObject, since: ScanMark, until: ScanMark | None, is_reread: bool = False
    ) -> ObjectPart:
        if delimiter is None:
            count = None if until is None else until.number - since.number
            return ObjectPart(listed, since, count, is_reread=is_reread)
        if since == START_MARK and until is None:
            return ObjectPart(listed, is_reread=is_reread)
        bounds = (since.position, listed.size if until is None else until.position)
        lines = LineRange(listed, *bounds, delimiter)
        return ObjectPart(listed, lines=lines, is_reread=is_reread)

    parts = []
    for one in end.objects:
        since = begun.mark if one.is_rest and begun is not None else START_MARK
        parts.append(make_part(one.object, since, None, one.is_reread))
    if end.partly_read is not None:
        listed, until = end.partly_read
        is_same = begun is not None and begun.object == listed and not end.objects
        since = begun.mark if begun is not None and is_same else START_MARK
        parts.append(make_part(listed, since, until))
    return parts


def _cut_part(scanner: Scanner, part: ObjectPart, share: int) -> Iterator[ObjectPart]:
    """Cut a part into several of about so many bytes, where that can be done without reading it."""
    if part.size < 2 * share:
        yield part
        return
    delimiter = line_delimiter_of(scanner)
    if delimiter is not None:
        lines = part.lines or LineRange(part.object, 0, part.object.size, delimiter)
        count = (lines.end - lines.start) // share
        bounds = [lines.start + (lines.end - lines.start) * at // count for at in range(count + 1)]
        for first, last in zip(bounds, bounds[1:], strict=False):
            yield replace(part, lines=replace(lines, start=first, end=last), is_reread=False)
        return
    if not isinstance(scanner, FixedSizeScanner):
        yield part
        return
    unit = scanner.mark_of(1).position
    since = part.since.number
    end = -(-part.object.size // unit) if part.count is None else since + part.count
    step = max(share // unit, 1)
    for first in range(since, end, step):
        yield replace(part, since=scanner.mark_of(first), count=min(step, end - first))


def _group_parts(parts: Sequence[ObjectPart], share: int, pieces: int) -> Iterator[ObjectPiece]:
    """Put small parts that follow each other into pieces; many empty objects are divided too."""
    max_parts = max(-(-len(parts) // max(pieces, 1)), 1)
    group: list[ObjectPart] = []
    size = 0
    for part in parts:
        if group and (size + part.size > share or len(group) >= max_parts):
            yield ObjectPiece(group)
            group, size = [], 0
        group.append(part)
        size += part.size
    if group:
        yield ObjectPiece(group)
