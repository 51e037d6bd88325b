"""The contract of the kernel and its callers: rows go in, emissions and a status come out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import IntEnum
from typing import Any, Final, Literal, NamedTuple

import orjson

from streamer.core.errors import StreamerError
from streamer.core.message import Batch, Message
from streamer.window.settings.back_pressure import BackPressure

_MAX_SHOWN_BYTES: Final = 1_000

PIECE_BITS: Final = 40
"""An arrival number is the number of the piece, then so many bits for the message in it."""


class RowKind(IntEnum):
    """Content of a row; the numbers are part of the format."""

    PACK = 0
    """Messages of one pane; `pane` is its id."""
    NOW = 1
    """Messages whose mapping said now(): the shard, which knows the time, gives them their pane."""
    EXACT = 2
    """Messages whose own time is exactly the micro-batch's, which is in `pane`."""
    CLOCK = 3
    """The micro-batch's time and what the driver knows (`MicroBatchInfo`), one for every shard."""
    COUNT = 4
    """Counters of stage 1 as JSON, for shard 0."""
    FAILED = 5
    """Messages that were marked as failed upstream: they pass by."""
    DROPPED = 6
    """Messages that stage 1 dropped, for `late_output`."""
    NEWEST_PANE = 7
    """The newest pane of stage 1, for every shard: a flush must move `closed_until` alike. `body`
    is one byte, the kind by which `pane` is to be read."""
    PIECE = 8
    """What a piece of an event-time stream did to its clock, for every shard: `pane` is the largest
    event time that it took, `arrival` its smallest arrival number, `body` names its partition."""
    DISORDERED = 9
    """Messages of one pane as in `PACK`, of which the clock of their piece had closed a window
    before they came; the pack has their event times and lags."""
    RIGHT = 10
    """Messages of one pane as in `PACK`, of the right side of a join."""
    FIRST_TIME = 11
    """For every shard where keys are listed: `pane` is the event time of the first message that a
    piece took, `arrival` its smallest arrival number."""


class ShuffleRow(NamedTuple):
    """One row of the shuffle.

    Attributes:
        shard: the shard that takes it, from 0.
        kind: a `RowKind`.
        pane: the pane's id, or what the kind says.
        arrival: the smallest arrival number in the body; 0 where the kind has none.
        body: a pack (`encode_pack`), JSON, or nothing.
    """

    shard: int
    kind: int
    pane: int
    arrival: int
    body: bytes


@dataclass(frozen=True, slots=True)
class UpstreamInfo:
    """Facts about the windows whose results other windows take.

    Attributes:
        time: the least event time of what they have yet to give, ns: the clock of those that take
            it. None while it may be any.
        input_ended: the input has ended, though they may have something left to give.
    """

    time: int | None
    input_ended: bool = False

    @classmethod
    def combine(cls, shards: Iterable[UpstreamInfo]) -> UpstreamInfo:
        """Return what holds for all of their shards."""
        known = list(shards)
        times = [one.time for one in known if one.time is not None]
        return cls(
            min(times) if len(times) == len(known) else None,
            any(one.input_ended for one in known),
        )


@dataclass(frozen=True, slots=True)
class MicroBatchInfo:
    """Facts about one micro-batch from the driver; a replay reads the same ones in Spark's log.

    Attributes:
        batch_time: the micro-batch's time, ns.
        start_id: differs for every start of the program.
        backlog: the input is still behind where it was at the start.
        lag: the input is behind, at any time: nothing is idle meanwhile.
        pressure: what the micro-batch before took of the stream's own time, where that may be long.
        suspended: how much of the time since the micro-batch before the machine was suspended, or
            its clock was set forward by, ns: nothing is idle for it.
        ended: a bounded input has come to its end, and this micro-batch holds the last of it. Of
            windows behind others: these have nothing left to give.
        sources: the names of the partitions or inputs that the clock waits for, where it waits.
        upstream: of the windows before these; None behind the input.
    """

    batch_time: int
    start_id: str
    backlog: bool = False
    ended: bool = False
    lag: bool = False
    pressure: BackPressure | None = None
    suspended: int = 0
    sources: tuple[str, ...] = ()
    upstream: UpstreamInfo | None = None

    @property
    def input_ended(self) -> bool:
        """Whether the stream's input has ended."""
        return self.ended if self.upstream is None else self.upstream.input_ended

    def to_row(self, shard: int) -> ShuffleRow:
        """Make the row that tells this to a shard."""
        fields: dict[str, Any] = {"t": self.batch_time, "start": self.start_id}
        fields |= {"backlog": self.backlog}
        fields |= {"ended": self.ended, "lag": self.lag}
        if self.suspended:
            fields["stood"] = self.suspended
        if self.pressure is not None:
            fields["pressure"] = self.pressure.to_fields()
        if self.sources:
            fields["sources"] = self.sources
        if self.upstream is not None:
            fields["upstream"] = [self.upstream.time, self.upstream.input_ended]
        return ShuffleRow(shard, RowKind.CLOCK, 0, 0, orjson.dumps(fields))

    @classmethod
    def from_rows(cls, bodies: Iterable[bytes]) -> MicroBatchInfo:
        """Read the clock rows of one micro-batch; several say the same, or the latest counts.

        Those of windows before these are from each of their shards: of what they have yet to give,
        the least counts, and it is all given when all have given theirs.

        Raises:
            StreamerError: there is none, or one that cannot be read.
        """
        readings = [cls._parse(body) for body in bodies]
        if not readings:
            raise StreamerError(
                "a micro-batch reached a window shard without a clock row: this is a bug in the "
                "program; the micro-batch is not lost, a restart replays it"
            )
        latest = max(readings, key=lambda reading: (reading.batch_time, reading.start_id))
        upstream = [one.upstream for one in readings if one.upstream is not None]
        ended = [reading.ended for reading in readings]
        return replace(
            latest,
            backlog=any(reading.backlog for reading in readings),
            sources=tuple(dict.fromkeys(name for one in readings for name in one.sources)),
            ended=all(ended) if upstream else any(ended),
            lag=any(reading.lag for reading in readings),
            upstream=UpstreamInfo.combine(upstream) if upstream else None,
        )

    @classmethod
    def _parse(cls, body: bytes) -> MicroBatchInfo:
        try:
            fields = orjson.loads(body)
            pressure, upstream = fields.get("pressure"), fields.get("upstream")
            return cls(
                int(fields["t"]),
                str(fields["start"]),
                bool(fields.get("backlog", False)),
                bool(fields.get("ended", False)),
                bool(fields.get("lag", False)),
                None if pressure is None else BackPressure.from_fields(pressure),
                int(fields.get("stood", 0)),
                tuple(fields.get("sources", ())),
                None if upstream is None else UpstreamInfo(*upstream),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise StreamerError(f"a window shard got a clock row it cannot read: {e!r}") from None


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The clock as a shard keeps it between micro-batches.

    Attributes:
        now: T, ns; None before the first micro-batch.
        start_id: the start that the last micro-batch belonged to.
        backlog: whether the last micro-batch was still working off a backlog.
    """

    now: int | None = None
    start_id: str = ""
    backlog: bool = False

    def advance(self, info: MicroBatchInfo) -> tuple[int, bool, SystemClock]:
        """Move to a micro-batch.

        Returns:
            T; whether windows that are overdue now may be so for back pressure, that is, whether
            the previous micro-batch of the same start could have closed them; and the clock after
            it.
        """
        now = info.batch_time if self.now is None else max(self.now, info.batch_time)
        running = self.now is not None and self.start_id == info.start_id
        pressed = running and not self.backlog and not info.backlog
        return now, pressed, SystemClock(now, info.start_id, info.backlog)


WindowReason = Literal[
    "final",
    "changes",
    "each",
    "event",
    "forward",
    "count",
    "idle",
    "flush",
    "deleted",
    "empty",
    "early",
    "on_time",
    "late",
    "retracted",
]
"""Why a window's batch comes: the values of `window_emit`."""


class EmptyWindow(list[Message]):
    """The batch of a window without messages.

    It has no length and nothing to iterate over, so that a mapping that asks for all messages finds
    none. `this` and the metadata of the mapping are those of a message that is not one of them.

    Attributes:
        message: the message that the mapping looks at: null, with the window's metadata.
    """

    def __init__(self, message: Message) -> None:
        """Take the message."""
        super().__init__()
        self.message = message

    def __getitem__(self, index: Any) -> Any:
        return self.message


@dataclass(slots=True)
class Emission:
    """A batch that goes on.

    Attributes:
        end: of its window, ns; None for messages that are not in one, or in one without bounds.
        messages: the batch.
        reason: why a window's batch comes; `failed` for a message that was marked upstream and
            passes by, a batch of its own; `dropped` for messages that only `late_output` gets.
        key: the group's key, when the window is emitted group by group.
        start: of its window, ns; None where the kind's messages are not told of it.
        is_per_message: each message is a batch by itself, in a window of its own, of which its
            metadata say all that there is to say.
        replaced: the bounds of earlier results that it takes the place of, ns.
    """

    end: int | None
    messages: Batch
    reason: WindowReason | Literal["failed", "dropped"]
    key: bytes | None = None
    start: int | None = None
    is_per_message: bool = False
    replaced: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class KeyedEmission(Emission):
    """Messages of which each is a batch by itself, each with a key and a time.

    Attributes:
        keys: by message, its key.
        times: by message, the clock after it, ns.
    """

    keys: Sequence[bytes] = ()
    times: Sequence[int] = ()

    @classmethod
    def of_messages(
        cls, messages: Batch, keys: Sequence[bytes], times: Sequence[int]
    ) -> KeyedEmission:
        """Return messages that go on at once."""
        return cls(None, messages, "forward", is_per_message=True, keys=keys, times=times)


@dataclass(slots=True)
class Counters:
    """Messages and windows since the checkpoint began; exact, since they are part of the state.

    They add up: what entered is failed + filtered + the drops for all reasons but those of messages
    that were taken (`expired`, `incomplete`) + taken, and taken is released + held +
    passed_over + these drops.

    Attributes:
        taken: messages that went into a window.
        failed: messages that were marked as failed upstream and passed by.
        dropped: messages dropped, by reason.
        released: messages given back after they had been in every window that they belong to, and
            emitted with one at least, or suppressed.
        emitted_windows: windows emitted by this shard; a window of each key where there are keys.
        emitted_messages: messages emitted, counted once for every window.
        expired_windows: windows dropped under back pressure.
        filtered: messages that a filter did not keep.
        suppressed: messages of windows that a `having` suppressed, counted once for every window.
        passed_over: of a join, messages that were given back without having been in a window; of
            count windows of older versions, those that now are dropped as `incomplete`.
    """

    taken: int = 0
    failed: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    released: int = 0
    emitted_windows: int = 0
    emitted_messages: int = 0
    expired_windows: int = 0
    filtered: int = 0
    suppressed: int = 0
    passed_over: int = 0

    def count_dropped(self, reason: str, count: int) -> None:
        """Count dropped messages."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """A window that holds messages and has not closed.

    Attributes:
        start: ns, as the kind's rules name it.
        end: ns, as the kind's rules name it.
        messages: how many this shard holds of it.
        size: bytes of their payloads.
    """

    start: int
    end: int
    messages: int
    size: int


@dataclass(frozen=True, slots=True)
class ClosedWindow:
    """A window that closed in this micro-batch, or of which a result was emitted or taken back.

    Attributes:
        end: ns.
        messages: how many this shard had of it; 0 where a result was taken back.
        reason: `expired`, or a `WindowReason`.
        start: ns; None for windows whose messages are not told of it.
        key: its key as JSON, where each key has windows of its own; else None.
    """

    end: int
    messages: int
    reason: str
    start: int | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ClockHolder:
    """The source that a clock waits for, see `clock_scope`.

    Attributes:
        source: its name.
        time: the largest event time that it had, ns; None before the first.
        ahead: how far the source that is the furthest is beyond the clock, ns.
        part: what of it was read last in this micro-batch: of files the path; else empty.
    """

    source: str
    time: int | None
    ahead: int
    part: str = ""


@dataclass(frozen=True, slots=True)
class DroppedSample:
    """A message that was dropped.

    Attributes:
        payload: the beginning of its payload, as a text.
        key: its key, as it is shown; None without keys.
        event_time: ns; None where it is not known any more.
        watermark: the clock before it, ns; None where it is not known, or there was none.
        window_end: the end of its newest window, ns; None where the step does not know it.
        source: the partition that it is from, as the input names it; empty where it has no name.
        detail: what was found in it, where stage 1 dropped it; else empty.
    """

    payload: str
    key: str | None = None
    event_time: int | None = None
    watermark: int | None = None
    window_end: int | None = None
    source: str = ""
    detail: str = ""


def show_payload(payload: bytes) -> str:
    """Return what is shown of a payload: the beginning of a long one."""
    text = payload[:_MAX_SHOWN_BYTES].decode(errors="replace")
    return text if len(payload) <= _MAX_SHOWN_BYTES else f"{text}…"


DroppedEntry = tuple[str, DroppedSample]
"""Why a message was dropped (`late`, `future`, …), and the message."""

MAX_DROPPED_SAMPLES: Final = 8
"""Dropped messages that a shard reports after a micro-batch, for each reason."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line for the log: level (`WARN`, …), text and fields.

    Attributes:
        sample: one of the messages that it is about, for people and not for the log; None for none.
    """

    level: str
    text: str
    fields: dict[str, Any]
    sample: DroppedSample | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """A shard after a micro-batch.

    Attributes:
        now: T, ns.
        closed_until: every window that ends at or before it has closed, ns; None before the first.
        counters: since the checkpoint began.
        held: messages in the state.
        held_bytes: their payloads' bytes; of aggregated ones, those of the aggregates.
        open: open windows, oldest first; no more than the shard cares to list.
        next_due: when the system clock closes the next window, ns; None when nothing is held, or
            another clock does.
        newest_end: the last instant of the newest window that holds messages, ns; None when none
            does.
        closed: the windows that closed in this micro-batch, in order.
        log: lines to be logged.
        open_windows: how many windows are open, where that is not to be told from `open`.
        clock_holder: the source that the clock waits for; None where it waits for none.
        next_end: every window that comes out later ends at this time or after it, by the end that
            its metadata name, ns; None where that is not known.
        due_clock: the event time at which the clock of the stream closes the next window, ns; None
            when nothing is held, or another clock does.
        watermark: the clock of the stream after the micro-batch, ns; None where there is none, or
            each key has its own.
        dropped: the first messages that were dropped in this micro-batch.
        table_rows: how many rows the table of a join has; None for other kinds.
    """

    now: int
    closed_until: int | None
    counters: Counters
    held: int
    held_bytes: int
    open: tuple[OpenWindow, ...]
    next_due: int | None
    newest_end: int | None
    closed: tuple[ClosedWindow, ...]
    log: tuple[LogLine, ...]
    open_windows: int | None = None
    clock_holder: ClockHolder | None = None
    next_end: int | None = None
    due_clock: int | None = None
    watermark: int | None = None
    dropped: tuple[DroppedEntry, ...] = ()
    table_rows: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the status as plain values, for JSON."""
        return asdict(self)
