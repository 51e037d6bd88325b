"""The `generate` input: messages made by a mapping, on an interval or as fast as possible.

Message number i belongs to a fixed moment, and its mapping sees that moment as `now()` and i in
`count()`, so that a micro-batch that is replayed makes the same messages (but for random values).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from streamer.connectors.generated.counted_input import CountedInput, may_filter
from streamer.connectors.generated.cron import parse_cron
from streamer.connectors.generated.message_generator import (
    UNPACED_MESSAGES,
    MessageGenerator,
    RepeatableGenerator,
    SizeEstimate,
    group_into_chunks,
)
from streamer.connectors.generated.scheduled_input import ScheduledInput
from streamer.core.durations import parse_duration
from streamer.core.execution import Execution
from streamer.sdk.input.replayable import Chunk, LatestOffset, Limit, Offset
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

FIELD_MAPPING = "mapping"
FIELD_INTERVAL = "interval"
FIELD_COUNT = "count"
FIELD_BATCH_SIZE = "batch_size"


def _interval_problem(text: str) -> str | None:
    if not text:
        return None
    try:
        parse_duration(text)
    except ValueError as no_duration:
        # What begins like a number is meant as a duration, unless it has fields.
        try:
            if parse_cron(text).next_after(0) is None:
                return f"{text!r} is a cron expression that no time fits"
        except ValueError as no_cron:
            if len(text.split()) == 1 and not text.startswith(("@", "TZ=", "CRON_TZ=")):
                return f"{no_duration}, or an empty string for no pause, or a cron expression"
            return f"is no cron expression: {no_cron}"
    return None


SPEC = Spec(
    kind=Kind.INPUT,
    name="generate",
    summary="Makes messages with a Bloblang mapping, on an interval.",
    description=(
        "With a duration the first message comes at once, then one batch every `interval`; "
        "with a cron expression one batch at each of its times. Batches for the time in which "
        "the program is down are not made later. Batches for the time of a blocked output "
        "are, about 64 MiB per micro-batch."
    ),
    fields=(
        Field(
            FIELD_MAPPING,
            "string",
            "Makes each message.",
            mapping=True,
            examples=('root = {"id": uuid_v4(), "at": now()}',),
        ),
        Field(
            FIELD_INTERVAL,
            "string",
            "Time between batches, or a cron expression: five fields or, with seconds, six; "
            "`@every 1m`, `@daily` and the like. Its times are UTC's unless `TZ=` and the name of "
            "a zone stand before it. An empty string or `0s` means as fast as possible.",
            default="1s",
            check=_interval_problem,
            examples=("5s", "", "@every 1s", "TZ=Europe/London 30 3-6,20-23 * * *"),
        ),
        Field(
            FIELD_COUNT,
            "int",
            "Messages to make before the input ends; 0: no end. Messages that the mapping "
            "deletes, or fails on, do not count.",
            default=0,
            check=lambda count: None if count >= 0 else f"is {count}; expected 0 or more",
        ),
        Field(
            FIELD_BATCH_SIZE,
            "int",
            "Messages in each batch.",
            default=1,
            check=lambda size: None if size >= 1 else f"is {size}; expected 1 or more",
        ),
        AUTO_REPLAY_NACKS_FIELD,
    ),
    runs="worker",
    delivery="the same messages again, but for random values",
)


class NumberRange(NamedTuple):
    """Messages number `first` (included) to `last` (excluded).

    Attributes:
        base: number of the first message after the start whose clock this is.
        began: that start, in Unix ns.
    """

    first: int
    last: int
    base: int
    began: int


@dataclass
class GenerateInput(RepeatableGenerator):
    """Generated messages as a replayable source; an offset counts messages.

    Attributes:
        mapping: makes a message out of nothing.
        interval: ns between batches; 0 for no pause.
        count: messages in all; 0 for no end.
        batch_size: messages in a batch.
    """

    mapping: str
    interval: int
    count: int
    batch_size: int
    _began: int | None = field(default=None, init=False)
    _base: int = field(default=0, init=False)
    _estimate: SizeEstimate = field(init=False)

    def __post_init__(self) -> None:
        """Begin with no size known."""
        self._estimate = SizeEstimate(self.mapping)

    def initial_offset(self) -> Offset:
        """Return the offset before the first message."""
        return {"n": 0, "base": 0, "began": 0}

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Return how many messages are due by the clock."""
        if self._began is None:
            self._began, self._base = now, start["n"]
        if self.interval:
            batches = (now - self._began) // self.interval + 1
            target = self._base + batches * self.batch_size
        else:
            target = start["n"] + max(UNPACED_MESSAGES // self.batch_size, 1) * self.batch_size
        if self.count:
            target = min(target, self.count)
        due = target - start["n"]
        fitting = limit.messages
        if due > self.batch_size:
            numbers = range(start["n"], target)
            fitting = self._estimate.count_fitting(numbers, now, limit)
        max_messages = max(fitting // self.batch_size, 1) * self.batch_size
        more = due > max(fitting, max_messages)
        if more:
            target = start["n"] + max_messages
        # A clock that was set back, or a count that was made smaller, takes nothing back.
        target = max(target, start["n"])
        ended = bool(self.count) and target >= self.count
        if target == start["n"]:
            return LatestOffset(start, 0, ended)
        offset = {"n": target, "base": self._base, "began": self._began}
        return LatestOffset(offset, target - start["n"], ended, more)

    def next_poll(self, start: Offset, now: int) -> int | None:
        """Return when the next batch is due; None when no more follows."""
        if self._began is None or (self.count and start["n"] >= self.count):
            return None
        batches: int = (start["n"] - self._base) // self.batch_size
        return self._began + batches * self.interval

    def split(self, start: Offset, end: Offset, parts: int) -> list[NumberRange]:
        """Cut a range of message numbers at the ends of batches."""
        first, last = start["n"], end["n"]
        batches = -(-(last - first) // self.batch_size)
        share = max(-(-batches // parts), 500 // self.batch_size + 1) * self.batch_size
        return [
            NumberRange(at, min(at + share, last), end["base"], end["began"])
            for at in range(first, last, share)
        ]

    def read(self, piece: NumberRange, ex: Execution) -> Iterator[Chunk]:
        """Make the messages of one piece, a thousand batches at a time."""
        maker, size = MessageGenerator(self.mapping, ex), self.batch_size
        batches = (
            maker.make_batch(
                range(first, min(first + size, piece.last)),
                piece.began + (first - piece.base) // size * self.interval,
            )
            for first in range(piece.first, piece.last, size)
        )
        return group_into_chunks(batches)


def _is_duration(text: str) -> bool:
    try:
        parse_duration(text)
    except ValueError:
        return False
    return True


def build(
    parsed: ParsedFields, context: BuildContext
) -> GenerateInput | CountedInput | ScheduledInput:
    """Make the input."""
    text = parsed[FIELD_INTERVAL]
    mapping, count = parsed[FIELD_MAPPING], parsed[FIELD_COUNT]
    if text and not _is_duration(text):
        return ScheduledInput(mapping, text, count, parsed[FIELD_BATCH_SIZE])
    made = CountedInput if count and may_filter(mapping) else GenerateInput
    # As in Benthos, no time and a negative one mean no pause.
    interval = max(parse_duration(text), 0) if text else 0
    return made(mapping, interval, count, parsed[FIELD_BATCH_SIZE])
