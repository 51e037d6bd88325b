"""Messages made by a mapping that leaves some out, until so many have been made.

How far the input gets is found where micro-batches are planned, by running the mapping there too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from streamer.connectors.generated.message_generator import (
    UNPACED_MESSAGES,
    MessageGenerator,
    RepeatableGenerator,
    group_into_chunks,
)
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.input.replayable import Chunk, LatestOffset, Limit, Offset

_MAX_TRIES_FACTOR: Final = 100
"""How many times as many messages are tried as when planned, until random ones are enough."""

_FILTERING_WORDS: Final = re.compile(r"\b(deleted|throw|import|from)\b")


def may_filter(mapping: str) -> bool:
    """Return whether a mapping may delete messages on purpose; others may at most fail."""
    return _FILTERING_WORDS.search(mapping) is not None


class GenerationProgress(NamedTuple):
    """The position of the input.

    Attributes:
        made: messages made.
        tried: how often the mapping ran, also where it made none.
        batches: how many batches that was; each has its moment.
    """

    made: int
    tried: int
    batches: int


class CountedPiece(NamedTuple):
    """The messages between two offsets.

    Attributes:
        first: how far the input has got before.
        last: and after.
        base: how many batches there were at the start whose clock this is.
        began: that start, in Unix ns.
    """

    first: GenerationProgress
    last: GenerationProgress
    base: int
    began: int


@dataclass
class CountedInput(RepeatableGenerator):
    """Generated messages up to a number of them, as a replayable source.

    Attributes:
        mapping: makes a message out of nothing, or leaves it out.
        interval: ns between batches; 0 for no pause.
        count: messages in all, 1 or more.
        batch_size: how often the mapping runs for a batch.
    """

    mapping: str
    interval: int
    count: int
    batch_size: int
    _began: int | None = field(default=None, init=False)
    _base: int = field(default=0, init=False)
    _known: tuple[GenerationProgress, GenerationProgress] | None = field(default=None, init=False)

    def initial_offset(self) -> Offset:
        """Return the offset before the first message."""
        return self._offset(GenerationProgress(0, 0, 0))

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Return how far the batches go that are due by the clock."""
        first = self._parse_offset(start)
        if self._began is None:
            self._began, self._base = now, first.batches
        if self.interval:
            due = self._base + (now - self._began) // self.interval + 1
        else:
            due = first.batches + max(UNPACED_MESSAGES // self.batch_size, 1)
        max_batches = first.batches + max(limit.messages // self.batch_size, 1)
        # What was found out before for the same start is not made again.
        at = self._known[1] if self._known is not None and self._known[0] == first else first
        maker = MessageGenerator(self.mapping, Execution(lambda: now))
        while at.batches < min(due, max_batches) and at.made < self.count:
            at, _ = self._make_next(
                maker, at, self._began + (at.batches - self._base) * self.interval
            )
        self._known = first, at
        ended = at.made >= self.count
        if at == first:
            return LatestOffset(start, 0, ended)
        more = due > max_batches and not ended
        return LatestOffset(self._offset(at), at.tried - first.tried, ended, more)

    def next_poll(self, start: Offset, now: int) -> int | None:
        """Return when the next batch is due; None when no more follows."""
        # The mapping may have left out what was due: what was tried since then counts.
        first = self._parse_offset(start)
        at = self._known[1] if self._known is not None and self._known[0] == first else first
        if self._began is None or at.made >= self.count:
            return None
        return self._began + (at.batches - self._base) * self.interval

    def _make_next(
        self, maker: MessageGenerator, at: GenerationProgress, moment: int
    ) -> tuple[GenerationProgress, Batch]:
        """Make one more batch; as in Benthos, it tries no more than are still to come."""
        size = min(self.batch_size, max(self.count - at.made, 1))
        batch = maker.make_batch(range(at.tried, at.tried + size), moment)
        return GenerationProgress(at.made + len(batch), at.tried + size, at.batches + 1), batch

    def _offset(self, at: GenerationProgress) -> Offset:
        rest = {"tried": at.tried, "batches": at.batches}
        return {"n": at.made, **rest, "base": self._base, "began": self._began or 0}

    def _parse_offset(self, offset: Offset) -> GenerationProgress:
        """Read an offset; one of a mapping that left nothing out says no more than a number."""
        made: int = offset["n"]
        batches = -(-made // self.batch_size)
        return GenerationProgress(made, offset.get("tried", made), offset.get("batches", batches))

    def split(self, start: Offset, end: Offset, parts: int) -> list[CountedPiece]:
        """Return all as one piece: how far its messages get is known of the whole alone."""
        first, last = self._parse_offset(start), self._parse_offset(end)
        return [] if first == last else [CountedPiece(first, last, end["base"], end["began"])]

    def read(self, piece: CountedPiece, ex: Execution) -> Iterator[Chunk]:
        """Make the messages of one piece, a thousand batches at a time.

        A random mapping may leave out others than it did when the piece was planned. It goes on
        until there are as many, so that the count holds all the same.
        """
        return group_into_chunks(self._batches(piece, ex))

    def _batches(self, piece: CountedPiece, ex: Execution) -> Iterator[Batch]:
        maker, at, last = MessageGenerator(self.mapping, ex), piece.first, piece.last
        max_batches = last.batches + _MAX_TRIES_FACTOR * (last.batches - at.batches)
        while at.made < last.made or at.batches < last.batches:
            if at.batches >= max_batches:
                missing = f"{last.made - at.made} messages fewer than when it was planned"
                ex.log("ERROR", f"The mapping makes {missing}", {"path": "input.generate"})
                return
            number = min(at.batches, last.batches - 1) - piece.base
            at, batch = self._make_next(maker, at, piece.began + number * self.interval)
            over = max(at.made - last.made, 0)
            at = at._replace(made=at.made - over)
            yield batch[: len(batch) - over]
