"""Messages made by a mapping at the times of a cron expression.

The first ones come at the first time after the program's start; a time at which the program is down
is not made up for. How many messages there are is found where micro-batches are planned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from streamer.connectors.generated.cron import parse_cron
from streamer.connectors.generated.message_generator import MessageGenerator, RepeatableGenerator
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.input.replayable import Chunk, LatestOffset, Limit, Offset


class ScheduledPiece(NamedTuple):
    """Batches that follow each other.

    Attributes:
        since: the moment behind which the first of them is, Unix ns.
        batches: how many they are.
        made: how many messages were made before them.
        tried: how often the mapping ran before them.
    """

    since: int
    batches: int
    made: int
    tried: int


@dataclass
class ScheduledInput(RepeatableGenerator):
    """Generated messages by a schedule, as a replayable source.

    Attributes:
        mapping: makes a message out of nothing.
        schedule: the cron expression.
        count: messages in all; 0 for no end.
        batch_size: how often the mapping runs for a batch.
    """

    mapping: str
    schedule: str
    count: int
    batch_size: int
    _began: int | None = field(default=None, init=False)

    def initial_offset(self) -> Offset:
        """Return the offset before the first message."""
        return {"n": 0, "tried": 0, "batches": 0, "at": 0, "since": 0}

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Go over the times that have come, up to the limit."""
        if self._began is None:
            self._began = now
        since = at = max(start["at"], self._began)
        made, tried, batches = start["n"], start["tried"], start["batches"]
        maker = MessageGenerator(self.mapping, Execution(lambda: now))
        max_batches = batches + max(limit.messages // self.batch_size, 1)
        more = False
        while not (self.count and made >= self.count):
            due = parse_cron(self.schedule).next_after(at)
            if due is None or due > now:
                break
            if batches == max_batches:
                more = True
                break
            size = self._batch_size_after(made)
            # Only a count asks how many there are; otherwise each is one, as in the offset's use.
            made += len(maker.make_batch(range(tried, tried + size), due)) if self.count else size
            at, tried, batches = due, tried + size, batches + 1
        ended = bool(self.count) and made >= self.count
        if batches == start["batches"]:
            return LatestOffset(start, 0, ended)
        offset = {"n": made, "tried": tried, "batches": batches, "at": at, "since": since}
        return LatestOffset(offset, tried - start["tried"], ended, more)

    def next_poll(self, start: Offset, now: int) -> int | None:
        """Return the schedule's next time; None when no more follows."""
        if self._began is None or (self.count and start["n"] >= self.count):
            return None
        return parse_cron(self.schedule).next_after(max(start["at"], self._began))

    def _batch_size_after(self, made_count: int) -> int:
        """Return how often the mapping runs for the next batch."""
        return min(self.batch_size, self.count - made_count) if self.count else self.batch_size

    def split(self, start: Offset, end: Offset, parts: int) -> list[ScheduledPiece]:
        """Return all as one piece: times come one by one."""
        batches = end["batches"] - start["batches"]
        piece = ScheduledPiece(end["since"], batches, start["n"], start["tried"])
        return [piece] if batches else []

    def read(self, piece: ScheduledPiece, ex: Execution) -> Iterator[Chunk]:
        """Make the messages of one piece."""
        maker = MessageGenerator(self.mapping, ex)
        at, made, tried = piece.since, piece.made, piece.tried
        for _ in range(piece.batches):
            due = parse_cron(self.schedule).next_after(at)
            assert due is not None
            size = self._batch_size_after(made)
            batch: Batch = maker.make_batch(range(tried, tried + size), due)
            at, made, tried = due, made + len(batch), tried + size
            if batch:
                yield [batch]
