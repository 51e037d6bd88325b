"""An input whose messages are put into batches on the driver, before they land."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from streamer.landing.collecting import Collector
from streamer.landing.following import (
    batches_of,
    chunks_between,
    execution,
    follow,
    records_of,
    told,
)
from streamer.landing.landed import Landed
from streamer.landing.lander import Lander, StoppedError
from streamer.landing.store import Store
from streamer.message import Batch
from streamer.pipeline.batching import BatchPolicy
from streamer.source.opening import Room, opened
from streamer.source.replayable import Offset, Replayable


@dataclass(frozen=True)
class Batched:
    """The input before it is opened.

    Attributes:
        source: what is read, with its processors; not opened.
        policy: puts its messages into batches.
    """

    source: Any
    policy: BatchPolicy

    def opened(self, room: Room) -> Landed:
        """Begin to read; return what has landed.

        Raises:
            StreamerError: the other input cannot be opened.
        """
        store = Store(room.directory, room.spool_limit)
        if store.mark and store.mark.get("done"):
            store.close()
        else:
            reading = _Reading(self, room, store)
            room.start("batched", reading.run)
        return Landed(room.directory, inside=not room.local)


class _Step:
    """A stretch of the other input of which something is held.

    Attributes:
        batches: how many it has; None until all of it is read.
    """

    def __init__(self, start: Offset, end: Offset) -> None:
        self.start, self.end = start, end
        self.batches: int | None = None


class _Reading:
    """One run of the input.

    What is held has not landed. The mark says where it was read: the first stretch that has some of
    it, and how many batches from its beginning have landed. From there it is read again after a
    crash.
    """

    def __init__(self, of: Batched, room: Room, store: Store) -> None:
        self._room = room
        self._store = store
        self._lander = Lander(room, store)
        self._source: Replayable = opened(of.source, room.inner("input"))
        self._collector = Collector(of.policy, time.monotonic_ns)
        self._ex = execution(room)
        mark = store.mark or {}
        self._at: Offset = mark.get("at") or self._source.initial()
        self._again: tuple[Offset, Offset] | None = mark.get("again")
        self._skip: int = mark.get("landed", 0)
        self._steps: list[_Step] = []
        self._read = 0
        self._landed = 0

    def run(self) -> None:
        """Read until there is no more to read."""
        try:
            at = self._at
            if self._again:
                start, at = self._again
                self._taken(start, at, self._skip)
            if follow(self._room, self._source, at, self._take, self._idle):
                self._write(self._collector.rest(self._ex), done=True)
                self._store.close()
        except StoppedError:
            return

    def _take(self, start: Offset, end: Offset) -> bool:
        self._taken(start, end, 0)
        return False

    def _taken(self, start: Offset, end: Offset, skip: int) -> None:
        """Read a stretch but for its first batches, which have landed."""
        step = _Step(start, end)
        self._steps.append(step)
        closed: list[Batch] = []
        count = 0
        for chunk in chunks_between(self._source, start, end, self._ex):
            for batch in batches_of(chunk):
                count += 1
                self._read += 1
                if count <= skip:
                    self._landed = self._read
                    continue
                closed += self._collector.add(batch, self._ex)
                if not self._collector.waits:
                    self._landed = self._read
        step.batches = count
        closed += self._collector.due(self._ex)
        if not self._collector.waits:
            self._landed = self._read
        self._write(closed)

    def _idle(self) -> bool:
        closed = list(self._collector.due(self._ex))
        if closed:
            self._landed = self._read
            self._write(closed)
        return False

    def _write(self, closed: Iterable[Batch], *, done: bool = False) -> None:
        steps = self._steps
        if done:
            self._landed = self._read
        while steps and steps[0].batches is not None and self._landed >= steps[0].batches:
            self._landed -= steps[0].batches
            self._read -= steps[0].batches
            self._at = steps.pop(0).end
        mark = {
            "at": self._at,
            "again": [steps[0].start, steps[0].end] if steps else None,
            "landed": self._landed,
            "done": done,
        }
        self._lander.write(records_of(closed), mark)
        self._source.committed(self._at)
        told(self._room, self._ex)
