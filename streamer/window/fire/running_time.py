"""The running time of a stream: how long it has been running without a backlog."""

from __future__ import annotations

from dataclasses import dataclass

from streamer.window.contract import MicroBatchInfo


@dataclass(slots=True)
class RunningTime:
    """The running time as a shard keeps it between micro-batches; idle timeouts count it.

    Attributes:
        now: batch time, ns; None before the first micro-batch.
        start_id: the start of the program that the last micro-batch belonged to.
        is_behind: whether the last micro-batch was working off a backlog.
        active: running time: how long the stream has been running without a backlog, ns.
    """

    now: int | None = None
    start_id: str = ""
    is_behind: bool = False
    active: int = 0

    def advance(self, info: MicroBatchInfo) -> int:
        """Let time pass until a micro-batch; return its batch time, ns."""
        now = info.batch_time if self.now is None else max(self.now, info.batch_time)
        is_behind = info.backlog or info.lag
        running = self.now is not None and self.start_id == info.start_id
        if running and not self.is_behind and not is_behind:
            self.active += max(now - (self.now or 0) - info.suspended, 0)
        self.now, self.start_id, self.is_behind = now, info.start_id, is_behind
        return now
