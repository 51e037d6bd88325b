"""Deliver a micro-batch's frames on the driver: write, log, count, remember the shards' status."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from streamer.engine.frame import Frame, FrameKind
from streamer.engine.snapshot import Snapshot
from streamer.engine.writers import Writer

LogLine = Callable[[str, str, Mapping[str, Any]], None]
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0


class DeliveryStoppedError(Exception):
    """The output kept failing until the program was told to stop; the micro-batch replays."""


class Delivery:
    """Takes micro-batches one after another.

    Attributes:
        statuses: the newest status of each shard, as stage 2 gave it.
        counts: counters since the start, by name and labels.
        batch: the newest micro-batch that was delivered; -1 before the first.
    """

    def __init__(
        self,
        writers: Sequence[Writer],
        log: LogLine,
        stopping: Callable[[], bool],
        on_status: Callable[[Mapping[int, Mapping[str, Any]]], None] = lambda statuses: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Set up.

        Args:
            writers: by the number of the output.
            log: takes log lines.
            stopping: whether to give up on an output that fails.
            on_status: hears the statuses of all shards after each micro-batch.
            sleep: waits between two tries, seconds.
        """
        self._writers = writers
        self._log = log
        self._stopping = stopping
        self._on_status = on_status
        self._sleep = sleep
        self.statuses: dict[int, Mapping[str, Any]] = {}
        self.counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        self.batch = -1

    def deliver(self, batch: int, frames: Sequence[Frame]) -> None:
        """Deliver one micro-batch.

        A failing output is tried again, with growing pauses, for as long as the program runs: that
        is the back pressure which everything upstream feels.

        Raises:
            DeliveryStoppedError: the program is to stop, and the output still fails.
        """
        ordered = sorted(frames, key=lambda frame: frame[:4])
        for frame in ordered:
            if frame.kind == FrameKind.LOG:
                for level, text, fields in orjson.loads(frame.body):
                    self._log(level, text, fields)
        began = time.monotonic()
        for number, writer in enumerate(self._writers):
            mine = [f for f in ordered if f.kind == FrameKind.DATA and f.output == number]
            self._write(writer, batch, mine)
        took = time.monotonic() - began
        for frame in ordered:
            # A micro-batch whose commit failed after its delivery comes again, and counts once.
            if frame.kind == FrameKind.COUNT and batch != self.batch:
                for name, by, labels in orjson.loads(frame.body):
                    self.counts[name, tuple(labels.items())] += by
            elif frame.kind == FrameKind.STATUS:
                self.statuses[frame.shard] = orjson.loads(frame.body)
        self.batch = batch
        self._on_status(self.statuses)
        self._log("DEBUG", "Delivered a micro-batch", self._figures(ordered, took))

    def _figures(self, frames: Sequence[Frame], took: float) -> dict[str, Any]:
        """Return what is worth knowing of a micro-batch when its speed is looked into."""
        now = Snapshot.of(self.statuses.values(), self.counts, self.batch)
        data = [len(frame.body) for frame in frames if frame.kind == FrameKind.DATA]
        figures: dict[str, Any] = {
            "micro_batch": now.batch,
            "messages": now.messages,
            "dropped": sum(now.dropped.values()),
            "frames": len(data),
            "bytes": sum(data),
            "write_ms": round(took * 1e3, 1),
        }
        if any("held" in status for status in self.statuses.values()):
            # By shard: a key that has most of the messages shows here.
            shards = sorted(self.statuses)
            figures["held"] = [self.statuses[shard].get("held", 0) for shard in shards]
        return figures

    def _write(self, writer: Writer, batch: int, frames: Sequence[Frame]) -> None:
        wait = FIRST_WAIT
        while True:
            try:
                writer.write(batch, frames)
                return
            except BrokenPipeError:
                raise
            except OSError as e:
                if self._stopping():
                    raise DeliveryStoppedError(str(e)) from e
                self._log("ERROR", f"Failed to write to the output: {e}; trying again", {})
            until = wait
            wait = min(wait * 2, LONGEST_WAIT)
            while until > 0 and not self._stopping():
                self._sleep(min(until, 0.25))
                until -= 0.25
