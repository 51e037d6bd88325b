"""An input whose messages are put into batches on the driver, before they are spooled."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from streamer.connectors.spool.batcher import Batcher
from streamer.connectors.spool.driver_reader import (
    batches_of_chunk,
    chunks_between,
    make_execution,
    read_until_end,
    records_of_batches,
    report_stats,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.spool_writer import SpoolWriter, StreamStoppedError
from streamer.connectors.spool.store import SpoolStore
from streamer.core.message import Batch
from streamer.sdk.input.input_context import InputContext, open_input
from streamer.sdk.input.replayable import Offset, ReplayableSource
from streamer.sdk.processing.batching import BatchPolicy


@dataclass(frozen=True)
class BatchedInput:
    """The input before it is opened.

    Attributes:
        source: what is read, with its processors; not opened.
        policy: puts its messages into batches.
    """

    source: Any
    policy: BatchPolicy

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to read; return the source of what the spool holds.

        Raises:
            StreamerError: the other input cannot be opened.
        """
        store = SpoolStore.for_input(context)
        if store.mark and store.mark.get("done"):
            store.close()
        else:
            reading = _BatchedReader(self, context, store)
            context.start("batched", reading.run)
        return SpoolSource.for_input(context)


class _SourceRange:
    """A stretch of the other input of which something is held.

    Attributes:
        batches: how many it has; None until all of it is read.
    """

    def __init__(self, start: Offset, end: Offset) -> None:
        self.start, self.end = start, end
        self.batches: int | None = None


class _BatchedReader:
    """One run of the input.

    What is held was not spooled. The mark says where it was read: the first stretch that has some
    of it, and how many batches from its beginning were spooled. From there it is read again after a
    crash.
    """

    def __init__(self, spec: BatchedInput, context: InputContext, store: SpoolStore) -> None:
        self._context = context
        self._store = store
        self._spool_writer = SpoolWriter(context, store)
        self._source: ReplayableSource = open_input(spec.source, context.child("input"))
        self._batcher = Batcher(spec.policy, time.monotonic_ns)
        self._ex = make_execution(context)
        mark = store.mark or {}
        self._at: Offset = mark.get("at") or self._source.initial_offset()
        self._reread: tuple[Offset, Offset] | None = mark.get("again")
        self._skip: int = mark.get("landed", 0)
        self._steps: list[_SourceRange] = []
        self._read = 0
        self._spooled = 0

    def run(self) -> None:
        """Read until there is no more to read."""
        try:
            at = self._at
            if self._reread:
                start, at = self._reread
                self._read_range(start, at, self._skip)
            if read_until_end(self._context, self._source, at, self._take, self._on_idle):
                self._write(self._batcher.flush(self._ex), done=True)
                self._store.close()
        except StreamStoppedError:
            return

    def _take(self, start: Offset, end: Offset) -> bool:
        self._read_range(start, end, 0)
        return False

    def _read_range(self, start: Offset, end: Offset, skip: int) -> None:
        """Read a stretch but for its first batches, which were spooled."""
        step = _SourceRange(start, end)
        self._steps.append(step)
        closed: list[Batch] = []
        count = 0
        for chunk in chunks_between(self._source, start, end, self._ex):
            for batch in batches_of_chunk(chunk):
                count += 1
                self._read += 1
                if count <= skip:
                    self._spooled = self._read
                    continue
                closed += self._batcher.add(batch, self._ex)
                if not self._batcher.has_pending:
                    self._spooled = self._read
        step.batches = count
        closed += self._batcher.flush_due(self._ex)
        if not self._batcher.has_pending:
            self._spooled = self._read
        self._write(closed)

    def _on_idle(self) -> bool:
        closed = list(self._batcher.flush_due(self._ex))
        if closed:
            self._spooled = self._read
            self._write(closed)
        return False

    def _write(self, closed: Iterable[Batch], *, done: bool = False) -> None:
        steps = self._steps
        if done:
            self._spooled = self._read
        while steps and steps[0].batches is not None and self._spooled >= steps[0].batches:
            self._spooled -= steps[0].batches
            self._read -= steps[0].batches
            self._at = steps.pop(0).end
        mark = {
            "at": self._at,
            "again": [steps[0].start, steps[0].end] if steps else None,
            "landed": self._spooled,
            "done": done,
        }
        self._spool_writer.write(records_of_batches(closed), mark)
        self._source.on_committed(self._at)
        report_stats(self._context, self._ex)
