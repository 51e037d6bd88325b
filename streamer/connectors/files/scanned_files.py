"""Files that only a scanner can cut: how far a micro-batch may go, its pieces, and their reading.

A file is taken whole while it fits into what a micro-batch may take, and is a piece of its own. One
that does not fit is looked through on the driver up to the message that is the last to fit, and is
gone on with from there; so it is read about twice. No file is looked through whose messages are
all of one size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamer.core.execution import Execution
from streamer.sdk.input.replayable import Chunk, Limit, RawMessages
from streamer.sdk.input.scanning import (
    MAX_CUT_MESSAGES,
    START_MARK,
    FixedSizeScanner,
    ScanError,
    ScanInput,
    ScanMark,
    Scanner,
    count_messages,
    expansion_of,
    silent_input,
)

_MAX_SAMPLED_BYTES = 1 << 14


class FilePosition(NamedTuple):
    """A place in a row of files: the file's number, and the place in it."""

    number: int
    mark: ScanMark = START_MARK


class BatchEnd(NamedTuple):
    """The bounds of a micro-batch.

    Attributes:
        stop: the place.
        messages: about how many messages lie before it.
        is_at_end: it is behind the last file.
    """

    stop: FilePosition
    messages: int
    is_at_end: bool


@dataclass(frozen=True, slots=True)
class ScannedPiece:
    """Messages of one file that follow each other.

    Attributes:
        path: of the file.
        display_path: the path as it was written or matched.
        since: where they begin.
        count: how many they are; None for all up to the end of the file.
        is_reread: whether the file is read from its beginning since it has replaced another one.
    """

    path: str
    display_path: str
    since: ScanMark
    count: int | None
    is_reread: bool = False


@dataclass(frozen=True, slots=True)
class ScannedFiles:
    """Files in a row, and what cuts them.

    Attributes:
        count: the number of files.
        path: the path of a file.
        length: the bytes of a file; None when it has gone.
        scanner: cuts them.
    """

    count: int
    path: Callable[[int], str]
    length: Callable[[int], int | None]
    scanner: Scanner

    def find_batch_end(self, start: FilePosition, limit: Limit) -> BatchEnd:
        """Go on from a place until the limit, but by one message at least."""
        number, mark = start
        messages = size = 0
        while number < self.count:
            length = self.length(number)
            if length is None:
                number, mark = number + 1, START_MARK
                continue
            remaining = Limit(limit.messages - messages, limit.size - size)
            taken = length * expansion_of(self.scanner)
            about = (
                self._estimate_messages(number, length, remaining)
                if mark == START_MARK and taken <= remaining.size
                else 0
            )
            if not about or about > remaining.messages:
                if messages and mark == START_MARK:
                    return BatchEnd(FilePosition(number), messages, False)
                end_mark = self._find_mark(number, length, mark, remaining)
                if end_mark is not None:
                    messages += end_mark.number - mark.number
                    return BatchEnd(FilePosition(number, end_mark), messages, False)
                about = 1
            messages, size = messages + about, size + taken
            number, mark = number + 1, START_MARK
        return BatchEnd(FilePosition(number), messages, True)

    def _estimate_messages(self, number: int, length: int, remaining: Limit) -> int:
        """Return about how many messages a file has, at least one."""
        if isinstance(self.scanner, FixedSizeScanner):
            return max(-(-length // self.scanner.mark_of(1).position), 1)
        unpacked = length * expansion_of(self.scanner)
        if unpacked <= min(_MAX_SAMPLED_BYTES, remaining.messages):
            # So few bytes are no more messages than fit, whatever they are.
            return max(unpacked // 100, 1)
        mark = START_MARK
        for mark in self._iter_marks(number, START_MARK, 100):
            if mark.position >= _MAX_SAMPLED_BYTES:
                break
        return max(unpacked * mark.number // (mark.position or 1), 1)

    def _find_mark(
        self, number: int, length: int, since: ScanMark, remaining: Limit
    ) -> ScanMark | None:
        """Return the mark up to which there is room, or None when that is the end of the file."""
        max_messages = max(remaining.messages, 1)
        if isinstance(self.scanner, FixedSizeScanner):
            unit = self.scanner.mark_of(1).position
            mark = self.scanner.mark_of(
                since.number + min(max_messages, max(remaining.size // unit, 1))
            )
            return mark if mark.position < length else None
        before = since
        for mark in self._iter_marks(number, since, min(max_messages, MAX_CUT_MESSAGES)):
            count = mark.number - since.number
            if count > max_messages:
                # Cuts need not be full, so this one can be too long: a shorter one ends right.
                left = max_messages - (before.number - since.number)
                return next(self._iter_marks(number, before, left))
            if count == max_messages or mark.position - since.position >= remaining.size:
                return mark
            before = mark
        return None

    def _iter_marks(self, number: int, since: ScanMark, max_messages: int) -> Iterator[ScanMark]:
        """Scan a file; it ends at what cannot be read, which is reported when it is read."""
        path = self.path(number)
        try:
            with open(path, "rb", buffering=0) as file:
                for cut in self.scanner.scan_stream(silent_input(file, path), since, max_messages):
                    yield cut.mark
        except (ScanError, OSError):
            return

    def pieces(
        self, start: FilePosition, end: FilePosition, parts: int, display_paths: Mapping[str, str]
    ) -> Iterator[Any]:
        """Return what lies between two places, a piece for each file.

        A file whose messages are all of one size is cut into about `parts` pieces.
        """
        for number in range(start.number, min(end.number + 1, self.count)):
            since = start.mark if number == start.number else START_MARK
            path = self.path(number)
            count = end.mark.number - since.number if number == end.number else None
            length = self.length(number)
            if count == 0 or length is None:
                continue
            for first, of in self._split_file(since, count, length, parts):
                yield ScannedPiece(path, display_paths.get(path, path), first, of)

    def _split_file(
        self, since: ScanMark, count: int | None, length: int, parts: int
    ) -> Iterator[tuple[ScanMark, int | None]]:
        if not isinstance(self.scanner, FixedSizeScanner):
            yield since, count
            return
        unit = self.scanner.mark_of(1).position
        last = -(-length // unit) if count is None else since.number + count
        share = max(-(-(last - since.number) // parts), (1 << 20) // unit, 1)
        for first in range(since.number, last, share):
            yield self.scanner.mark_of(first), min(share, last - first)


def read_scanned(
    scanner: Scanner, piece: ScannedPiece, meta: Mapping[str, Any], ex: Execution
) -> Iterator[Chunk]:
    """Read the messages of a piece; what the scanner cannot read is logged, and ends the file."""
    left = piece.count
    with open(piece.path, "rb", buffering=0) as file:
        source = ScanInput(file, piece.display_path, meta, ex)
        before = None
        try:
            for cut in scanner.scan_stream(
                source,
                piece.since,
                MAX_CUT_MESSAGES if left is None else min(left, MAX_CUT_MESSAGES),
            ):
                chunk = cut.chunk
                if ex.read_counter is not None:
                    before = _report_block(file.tell(), before, piece.since, chunk, ex)
                if left is None:
                    yield chunk
                    continue
                count = count_messages(chunk)
                yield chunk if count <= left else take_first(chunk, left)
                left -= count
                if left <= 0:
                    return
        except ScanError as error:
            ex.log("ERROR", f"Failed to read message: {error}", {"source": piece.display_path})
            ex.count("input_error")


def _report_block(
    position: int, before: int | None, since: ScanMark, chunk: Chunk, ex: Execution
) -> int:
    """Note how many bytes of a file a cut has needed; return the file's position behind it."""
    # What stands before the piece was passed over in one go, unless it had to be unpacked.
    begin = min(since.position, position) if before is None else before
    ex.read_counter.begin_block(position - begin, count_messages(chunk))
    return position


def take_first(chunk: Chunk, count: int) -> Chunk:
    """Return the first messages of a chunk; whole batches of them."""
    if isinstance(chunk, RawMessages):
        return RawMessages(chunk.raws[:count], chunk.meta)
    batches = []
    for batch in chunk:
        if count <= 0:
            break
        batches.append(batch)
        count -= len(batch)
    return batches
