"""The source of a stream: an input's pieces and the clock's ticks, as one Python data source.

An offset has the input's own, and beside it what a replay must see again
(`streamer.engine.planner.planner_channels`).
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.datasource_internal import _SimpleStreamReaderWrapper
from pyspark.sql.streaming.datasource import ReadLimit

from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.connectors.kafka.input.positions import list_kafka_ends
from streamer.core.durations import MILLISECOND, SECOND
from streamer.core.json.checksums import add_checksum
from streamer.core.limits import DEFAULT_LIMITS, Limits, set_limits
from streamer.engine.planner.followed_stream import (
    FOLLOW_INTERVAL_S,
    FollowedStream,
    read_follower_position,
)
from streamer.engine.planner.kafka_inputs import list_range_sources
from streamer.engine.planner.kafka_outage import KafkaOutage
from streamer.engine.planner.pacing import PacingPolicy, PacingSettings, PendingData
from streamer.engine.planner.planner_channels import (
    DriverHints,
    MicroBatchOffset,
    PlannerChannel,
    is_before,
    next_aggregates_from,
)
from streamer.engine.planner.trigger import (
    BatchClock,
    measure_pressure,
    next_tick,
    standstill_between,
)
from streamer.engine.planner.wake_ups import MAX_WAIT_S, WakeUpReceiver
from streamer.sdk.input.replayable import (
    LatestOffset,
    Limit,
    MeasurableSource,
    Offset,
    ReplayableSource,
    earliest_poll,
    extent_of,
    next_poll_of,
    watch_all,
)
from streamer.window.settings.back_pressure import BackPressure
from streamer.window.settings.window import Window

SOURCE_SCHEMA = "number int, piece binary, offset string"
_FIRST_BATCH_LIMIT = Limit(messages=100_000, size=16 << 20)
"""What the first micro-batch of a start takes at most: about a second's work, so that results come
soon, and what cannot work shows at once. Its end is in Spark's log, like any other's.
"""

_ANSWER_AFTER = 2 * SECOND
"""ns after which Spark has its answer though there is nothing: it can end a query only then."""

_REST_STEP = 50 * MILLISECOND
"""ns between two polls while data waits for its micro-batch, whatever wakes the planner: each of a
thousand messages a second does."""

_MAX_TASKS_PER_SLOT = 8
"""Spark's tasks in a micro-batch for each one that can run at once, at most."""

_KAFKA_TASKS_PER_SLOT = 2
"""The same of an input with partitions of Kafka, which are of about one size."""

_ARROW_SCHEMA = pa.schema([("number", pa.int32()), ("piece", pa.binary()), ("offset", pa.string())])


@dataclass(frozen=True)
class SourcePlan:
    """The stream as the process sees it that plans micro-batches.

    Attributes:
        source: the input.
        windows: the settings of the windows of each buffer, for ticks.
        start_id: differs for every start of the program.
        signals: how the driver talks to it.
        limit: what a micro-batch may take on this machine; on a cluster more, by its cores.
        pacing: how long data may wait.
        pieces: how many tasks share a micro-batch, as long as the driver has not said otherwise.
        aggregation_id: the identity of the mapping that windows fold for; empty when they do not.
        limits: what one message may come to.
        start_offset: the offset that a fresh checkpoint goes on from; None for the input's
            beginning.
        follows: the stream whose micro-batches are repeated; None for a stream of its own.
    """

    source: ReplayableSource
    windows: tuple[Window, ...]
    start_id: str
    signals: PlannerChannel
    limit: Limit
    pacing: PacingSettings
    pieces: int
    aggregation_id: str = ""
    limits: Limits = DEFAULT_LIMITS
    start_offset: MicroBatchOffset | None = None
    follows: FollowedStream | None = None


@dataclass(frozen=True, slots=True)
class _Poll:
    """The result of one poll of the inputs.

    Attributes:
        time: by the stream's clock, ns.
        steady: by the clock that never runs backwards, ns.
        is_first: it is the first of a start.
        hints: those of the driver.
        latest: the end of the input.
        ends: where Kafka ends now, for each of the inputs.
    """

    time: int
    steady: int
    is_first: bool
    hints: DriverHints
    latest: LatestOffset
    ends: Sequence[Offsets]

    @property
    def waiting(self) -> int:
        """Number of messages that wait."""
        return self.latest.waiting

    @property
    def has_more(self) -> bool:
        """Whether more waits than one micro-batch takes."""
        return self.latest.has_more


class StreamReader(_SimpleStreamReaderWrapper):
    """Plans micro-batches on the driver, and hands out pieces to the workers.

    By its base Spark takes the rows of a single partition with the plan (`getCache`), so that no
    task starts a Python worker only to hand them out: 3 ms of CPU of a small micro-batch.
    """

    simple_reader = None

    def __init__(
        self,
        plan: SourcePlan,
        clock: BatchClock | None = None,
        answer_after: int = _ANSWER_AFTER,
    ) -> None:
        """Take the plan.

        Args:
            plan: what is planned.
            clock: by which micro-batches have their times.
            answer_after: ns after which Spark has its answer though there is nothing.
        """
        set_limits(plan.limits)
        self._plan = plan
        self._answer_after = answer_after
        self._pacing = PacingPolicy(plan.pacing, plan.windows)
        # When the data that the newest poll has found is taken, by the steady clock, ns.
        self._starts_at: int | None = None
        self._clock = clock or BatchClock()
        # Spark makes readers in tasks too, which wait for nothing.
        self._wake_ups: WakeUpReceiver | None = None
        self._kafka_sources = list_range_sources(plan.source)
        self._outage = KafkaOutage(plan.signals)
        # The newest micro-batch's time, and what the steady clock said then.
        self._planned: tuple[int, int] | None = None
        self._committed: Offset | None = None
        self._single: InputPartition | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return where a stream without a checkpoint begins."""
        plan = self._plan
        begin = plan.start_offset or MicroBatchOffset(plan.source.initial_offset())
        return begin.to_fields()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return where a micro-batch goes to, as soon as one is worth it; `start` where none is.

        Spark would ask again and again: this waits in its place until there is data, a window is
        due, or the driver requests something, and answers now and then all the same.
        """
        before = MicroBatchOffset.from_fields(start)
        self._clock.continue_from(before.batch_time)
        self._open_wake_ups().drain()
        until = self._clock.steady() + self._answer_after
        self._pacing.note_end(self._clock.steady())
        while True:
            end = self._plan_end(before)
            if end is not None:
                return add_checksum(end.to_fields())
            is_over = self._clock.steady() >= until or self._plan.signals.driver.read().is_stopping
            if is_over:
                return start
            self._wait_for_poll(before)

    def _open_wake_ups(self) -> WakeUpReceiver:
        if self._wake_ups is None:
            # The driver knows the port before the first poll, so that nothing comes in between.
            self._wake_ups = self._plan.signals.receive_wake_ups()
            if self._plan.follows is None:
                watch_all([self._plan.source], self._wake_ups.wake)
        return self._wake_ups

    def _wait_for_wake_up(self, seconds: float) -> None:
        self._open_wake_ups().wait(seconds)

    def _wait_for_poll(self, before: MicroBatchOffset) -> None:
        """Wait until the next poll is worth it, after one that was not worth a micro-batch."""
        if self._plan.follows is not None:
            self._wait_for_wake_up(FOLLOW_INTERVAL_S)
            return
        if self._outage.pause_s:
            self._wait_for_wake_up(self._outage.pause_s)
            return
        due, now = self._plan.signals.driver.read().due, self._clock.now()
        if self._starts_at is not None:
            rest = min(self._starts_at - self._clock.steady(), _REST_STEP)
            if due is not None:
                rest = min(rest, due - now)
            # Whatever wakes the planner: all of it may be about data that is to wait.
            time.sleep(max(rest, MILLISECOND) / SECOND)
            return
        polls = [due, next_poll_of(self._plan.source, before.data, now)]
        at = earliest_poll(polls)
        # What has been due for long is nothing that this poll could have found.
        ns = MAX_WAIT_S * SECOND if at is None else at - now if at > now else _REST_STEP
        self._wait_for_wake_up(min(ns / SECOND, MAX_WAIT_S))

    def _plan_end(self, before: MicroBatchOffset) -> MicroBatchOffset | None:
        """Return where a micro-batch goes to, if one is worth it now."""
        plan = self._plan
        hints = plan.signals.driver.read()
        if hints.is_stopping:
            return None
        if plan.follows is not None:
            return plan.follows.plan_next(before, plan.aggregation_id, hints)
        # Spark asks when the micro-batch that ended here is written, and commits it with the next
        # one: where a spool is full there would be none.
        if before.data != self._committed:
            self._commit_input(before.data)
        poll = self._poll(before, hints)
        if poll is None:
            return None
        plan.signals.planner.update(backlog=poll.waiting, is_behind=poll.has_more)
        tick = next_tick(plan.windows, before.tick, hints.due, poll.time)
        requested_at = max(hints.requested_at, before.requested_at)
        is_due = poll.is_first or tick != before.tick or requested_at != before.requested_at
        is_urgent = is_due or poll.has_more or poll.latest.is_ended
        pending = PendingData(
            poll.waiting, poll.steady, poll.time, hints.min_interval, hints.event_lag
        )
        self._starts_at = self._pacing.starts_at(pending)
        is_rested = self._starts_at is not None and self._starts_at <= poll.steady
        should_start = poll.waiting > 0 and (is_urgent or is_rested)
        takes_input = should_start or not poll.latest.waiting
        ended = poll.latest.is_ended and takes_input
        if not (should_start or is_due or ended != before.ended):
            return None
        pressure, suspended = self._measure_last_batch(before, poll)
        self._planned = poll.time, poll.steady
        self._pacing.note_start(pending if takes_input else pending._replace(messages=0))
        return MicroBatchOffset(
            data=poll.latest.offset if takes_input else before.data,
            tick=tick,
            start_id=plan.start_id,
            ended=ended,
            aggregates_from=next_aggregates_from(
                before.aggregates_from,
                plan.aggregation_id,
                hints.newest_end,
                hints.has_newest_end and not poll.is_first,
            ),
            lag=poll.has_more,
            batch_time=poll.time,
            # Wherever it comes again, the tasks are the same.
            pieces=hints.tasks or plan.pieces,
            requested_at=requested_at,
            pressure=pressure,
            suspended=suspended,
            backlog_ends=self._backlog_ends(before, poll),
        )

    def _poll(self, before: MicroBatchOffset, hints: DriverHints) -> _Poll | None:
        """Poll the input; return None when no broker of it answers: the driver is notified."""
        plan = self._plan
        # This, not when Spark has written the micro-batch down, is its time: a window that ends in
        # between has events that come with the next one. The input is asked for all until now, and
        # Spark takes what Kafka has when this returns. It does not run backwards, though the
        # machine's clock may, and goes on meanwhile.
        now, steady = self._clock.now(), self._clock.steady()
        # Without windows all of it may come out at once, and to the driver: its heap does not grow
        # with the cores.
        is_first = before.start_id != plan.start_id
        limit = plan.limit.within(_FIRST_BATCH_LIMIT) if is_first else plan.limit
        if hints.tasks is not None and plan.windows:
            limit = limit.share_of(hints.tasks)
        if not self._kafka_sources:
            latest = plan.source.latest_offset(before.data, now, limit)
            return _Poll(now, steady, is_first, hints, latest, ())
        polled = self._outage.watch(lambda: plan.source.latest_offset(before.data, now, limit))
        if polled is None:
            return None
        ends = [one.newest_ends for one in self._kafka_sources]
        return _Poll(now, steady, is_first, hints, polled, ends)

    def _measure_last_batch(
        self, before: MicroBatchOffset, poll: _Poll
    ) -> tuple[BackPressure | None, int]:
        """Return what the micro-batch that ended at `before` took of the stream's own time.

        Returns:
            That, or None where it is not known, or cannot matter; and by how much time went on by
            itself since then, ns.
        """
        planned, work = self._planned, poll.hints.work
        if poll.is_first or planned is None or planned[0] != before.batch_time:
            return None, 0
        pressure = None
        if work is not None and work.time == before.batch_time:
            pressure = measure_pressure(planned, poll.time, work)
        return pressure, standstill_between(planned, poll.time, poll.steady)

    def _backlog_ends(self, before: MicroBatchOffset, poll: _Poll) -> Sequence[Offsets]:
        """Return where Kafka ended at the start of the program until all before it is planned.

        What waited meanwhile is not late: no window closes by the clock on the wall before then.
        """
        # Where a topic has become shorter, that place is never reached: when nothing waits it is
        # over.
        if not self._plan.windows or not poll.waiting:
            return ()
        if poll.is_first:
            return poll.ends
        ends = before.backlog_ends
        return ends if is_before(list_kafka_ends(before.data), ends) else ()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the pieces of a micro-batch; the first brings the clock with it."""
        source, since = self._plan.source, MicroBatchOffset.from_fields(start).data
        until = MicroBatchOffset.from_fields(end)
        tasks = until.pieces or self._plan.pieces
        if isinstance(source, MeasurableSource):
            extent = extent_of(source, since, until.data)
            # It is shown and nothing else: no micro-batch fails for it.
            with suppress(OSError):
                self._plan.signals.planner.update(extent=extent)
        pieces = source.split(since, until.data, tasks)
        rows: list[tuple[int, bytes | None]] = [(0, None)]
        if pieces:
            rows = [(number, pickle.dumps(piece)) for number, piece in enumerate(pieces)]
        # A directory of many small files has a piece for each; a task of Spark's costs more than
        # most of these.
        per_slot = _KAFKA_TASKS_PER_SLOT if self._kafka_sources else _MAX_TASKS_PER_SLOT
        share = -(-len(rows) // max(tasks * per_slot, 1))
        offset = until.to_json()
        made = [
            InputPartition((rows[first : first + share], offset))
            for first in range(0, len(rows), share)
        ]
        self._single = made[0] if len(made) == 1 and start != end else None
        return made

    def getCache(self, start: dict[str, Any], end: dict[str, Any]) -> Any:
        """Return the rows of the micro-batch planned last, if they are a single partition's.

        None lets tasks ask for them by `read`, as they also do when Spark has lost what it took.
        """
        single, self._single = self._single, None
        return None if single is None else self.read(single)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Hand pieces to stage 1, which reads them one after the other."""
        rows, offset = partition.value
        numbers, pieces = zip(*rows, strict=True)
        columns = (numbers, pieces, [offset] * len(rows))
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(column, field.type)
                for column, field in zip(columns, _ARROW_SCHEMA, strict=True)
            ],
            schema=_ARROW_SCHEMA,
        )

    def commit(self, end: dict[str, Any]) -> None:
        """Let the input forget what the checkpoint has."""
        self._commit_input(MicroBatchOffset.from_fields(end).data)

    def stop(self) -> None:
        """Receive no more wake-ups."""
        if self._wake_ups is not None:
            self._wake_ups.close()

    def _commit_input(self, data: Offset) -> None:
        if self._plan.follows is not None:
            return  # The input is that of the stream, which forgets what both have read.
        self._committed = data
        if follower := self._plan.signals.driver.read().follower:
            needed = read_follower_position(follower)
            if needed is None:
                return
            data = needed
        self._plan.source.on_committed(data)


def stream_source(plan: SourcePlan) -> type[DataSource]:
    """Return a data source class for one stream; it carries the plan with it."""

    class StreamSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "streamer"

        def schema(self) -> str:
            return SOURCE_SCHEMA

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            return StreamReader(plan)

    return StreamSource
