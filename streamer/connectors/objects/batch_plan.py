"""The objects of a micro-batch: how many fit into its limit, and how far the last one is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, NamedTuple

from streamer.connectors.files.line_files import is_self_overlapping
from streamer.connectors.objects.object_offset import (
    MAX_KEY_CHARACTERS,
    MAX_OBJECTS,
    BatchObject,
    PartlyRead,
)
from streamer.connectors.objects.object_stream import ObjectStream
from streamer.connectors.objects.store import ListedObject, ObjectStore, StoreError
from streamer.sdk.input.replayable import Limit
from streamer.sdk.input.scanning import (
    MAX_CUT_MESSAGES,
    START_MARK,
    FixedSizeScanner,
    ScanError,
    ScanMark,
    Scanner,
    SplittableScanner,
    expansion_of,
    is_whole_reader,
    silent_execution,
    silent_input,
)

_SAMPLE_BYTES: Final = 64 << 10
"""Bytes of an object that are read to estimate the length of messages."""
_DEFAULT_MESSAGE_BYTES: Final = 256.0


class BatchContents(NamedTuple):
    """The contents of a micro-batch.

    Attributes:
        objects: those that it reads to their ends.
        partly_read: the object behind them that it reads in part; None for none.
        messages: about how many messages they have; at least one where there is an object.
        is_full: whether the limit was reached.
    """

    objects: Sequence[BatchObject]
    partly_read: PartlyRead | None
    messages: int
    is_full: bool


class _Start(NamedTuple):
    """An object, and where the micro-batch begins in it."""

    batch_object: BatchObject
    mark: ScanMark


def line_delimiter_of(scanner: Scanner) -> bytes | None:
    """Return the end of messages by which objects can be cut anywhere; None where they cannot."""
    if not isinstance(scanner, SplittableScanner):
        return None
    return None if is_self_overlapping(scanner.delimiter) else scanner.delimiter


@dataclass
class BatchPlanner:
    """Cuts a row of objects into micro-batches.

    Objects are not opened for it, except one now and then as a sample, and those that do not fit
    into a micro-batch and have to be scanned up to the message that is the last to fit.

    Attributes:
        store: has the objects.
        scanner: cuts them into messages.
    """

    store: ObjectStore
    scanner: Scanner
    _message_bytes: float | None = None

    def __post_init__(self) -> None:
        self._expansion = expansion_of(self.scanner)
        self._is_of_lines = line_delimiter_of(self.scanner) is not None
        fixed = self.scanner if isinstance(self.scanner, FixedSizeScanner) else None
        self._mark_of = fixed.mark_of if fixed is not None else None

    def plan_batch(
        self, started: PartlyRead | None, objects: Iterator[BatchObject], limit: Limit
    ) -> BatchContents:
        """Take objects until the limit, but one message at least.

        Args:
            started: the object that is read in part already.
            objects: those behind it, in order.
            limit: of the micro-batch.
        """
        taken: list[BatchObject] = []
        messages = size = characters = 0
        for start in _iter_starts(started, objects):
            remaining = Limit(limit.messages - messages, limit.size - size)
            characters += len(start.batch_object.object.key)
            if len(taken) >= MAX_OBJECTS or (taken and characters > MAX_KEY_CHARACTERS):
                return BatchContents(taken, None, messages, True)
            about, unpacked = self._estimate(start)
            if unpacked > remaining.size or about > remaining.messages:
                if taken:
                    return BatchContents(taken, None, messages, True)
                mark = self._find_mark(start, remaining)
                if mark is not None:
                    partly = PartlyRead(start.batch_object.object, mark)
                    return BatchContents((), partly, max(remaining.messages, 1), True)
            taken.append(start.batch_object)
            messages += about
            size += unpacked
        return BatchContents(taken, None, messages, False)

    def _estimate(self, start: _Start) -> tuple[int, int]:
        """Return about how many messages and bytes the rest of an object has."""
        length = start.batch_object.object.size * self._expansion
        unpacked = max(length - start.mark.position, 0)
        if self._mark_of is not None:
            mean = float(self._mark_of(1).position)
        elif length <= _DEFAULT_MESSAGE_BYTES:
            return 1, unpacked
        else:
            mean = self._mean_message_bytes(start.batch_object.object)
        return max(int(unpacked / mean), 1), unpacked

    def _mean_message_bytes(self, sample: ListedObject) -> float:
        """Return the mean length of messages, by a sample of the first object of some length."""
        if self._message_bytes is None:
            if sample.size < _SAMPLE_BYTES // 4:
                return _DEFAULT_MESSAGE_BYTES
            self._message_bytes = self._measure_messages(sample)
        return self._message_bytes

    def _measure_messages(self, sample: ListedObject) -> float:
        mark = START_MARK
        end = min(_SAMPLE_BYTES, sample.size)
        stream = ObjectStream(self.store, sample.key, silent_execution(), end=end)
        with closing(stream):
            try:
                for cut in self.scanner.scan_stream(silent_input(stream, sample.key)):
                    mark = cut.mark
            except (ScanError, StoreError, OSError):
                pass  # Only a part of it was given to the scanner; or it is read again as a whole.
        return max(mark.position / mark.number, 1.0) if mark.number else _DEFAULT_MESSAGE_BYTES

    def _find_mark(self, start: _Start, remaining: Limit) -> ScanMark | None:
        """Return how far an object is read; None for its end."""
        listed, since = start.batch_object.object, start.mark
        if self._is_of_lines:
            mean = self._mean_message_bytes(listed)
            size = min(remaining.size, max(int(remaining.messages * mean), 1))
            position = since.position + size
            return ScanMark(position) if position < listed.size else None
        max_messages = max(remaining.messages, 1)
        if self._mark_of is not None:
            unit = self._mark_of(1).position
            count = min(max_messages, max(remaining.size // unit, 1))
            mark = self._mark_of(since.number + count)
            return mark if mark.position < listed.size else None
        if is_whole_reader(self.scanner):
            return None
        return self._scan_to_mark(listed, since, remaining)

    def _scan_to_mark(
        self, listed: ListedObject, since: ScanMark, remaining: Limit
    ) -> ScanMark | None:
        max_messages = max(remaining.messages, 1)
        before = since
        for mark in self._iter_marks(listed, since, min(max_messages, MAX_CUT_MESSAGES)):
            count = mark.number - since.number
            if count > max_messages:
                # Cuts need not be full, so this one can be too long: a shorter one ends right.
                left = max_messages - (before.number - since.number)
                return next(self._iter_marks(listed, before, left), None)
            if count == max_messages or mark.position - since.position >= remaining.size:
                return mark
            before = mark
        return None

    def _iter_marks(
        self, listed: ListedObject, since: ScanMark, max_messages: int
    ) -> Iterator[ScanMark]:
        """Scan an object; it ends at what cannot be read, which is reported when it is read."""
        stream = ObjectStream(self.store, listed.key, silent_execution(), version=listed.version)
        with closing(stream):
            try:
                source = silent_input(stream, listed.key)
                for cut in self.scanner.scan_stream(source, since, max_messages):
                    yield cut.mark
            except ScanError:
                return


def _iter_starts(started: PartlyRead | None, objects: Iterator[BatchObject]) -> Iterator[_Start]:
    if started is not None:
        yield _Start(BatchObject(started.object, is_rest=True), started.mark)
    for one in objects:
        yield _Start(one, START_MARK)
