"""The source of a stream: an input's pieces and the clock's ticks, as one Python data source.

An offset is the input's own, and beside it what a replay must see again: the micro-batch's time,
the tick (so that windows close without data), the start of the program, whether the input has ended
or is behind, where Kafka ended at the start, which windows fold, and how long the stream's own
processors and outputs had the micro-batch before in hand.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.core.durations import SECOND
from streamer.core.json.checksums import add_checksum
from streamer.core.limits import DEFAULT_LIMITS, Limits, set_limits
from streamer.engine.planner.aggregation_switch import next_aggregates_from, read_aggregates_from
from streamer.engine.planner.batch_clock import BatchClock, measure_pressure, standstill_between
from streamer.engine.planner.kafka_admission import KafkaAdmission, TotalBacklog
from streamer.engine.planner.kafka_inputs import StreamKafkaInput
from streamer.engine.planner.offset_log import is_before
from streamer.engine.planner.planner_channel import PlannerChannel
from streamer.engine.planner.trigger import IdlePause, TriggerPolicy, next_tick
from streamer.sdk.input.replayable import Limit, MeasurableSource, ReplayableSource, extent_of
from streamer.window.settings.back_pressure import BackPressure
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.system_window import SystemWindow

SOURCE_SCHEMA = "number int, piece binary, offset string"
_NO_KAFKA_BACKLOG = TotalBacklog(0, False, [])
_FIRST_BATCH_LIMIT = Limit(messages=100_000, size=16 << 20)
"""What the first micro-batch of a start takes at most: about a second's work, so that results come
soon, and what cannot work shows at once. Its end is in Spark's log, like any other's.
"""

_MAX_TASKS_PER_SLOT = 8
"""Spark's tasks in a micro-batch for each one that can run at once, at most."""

_ARROW_SCHEMA = pa.schema([("number", pa.int32()), ("piece", pa.binary()), ("offset", pa.string())])


@dataclass(frozen=True)
class SourcePlan:
    """The stream as the process sees it that plans micro-batches.

    Attributes:
        source: the input.
        window: the windows' settings, for ticks; None without a window buffer.
        start_id: differs for every start of the program.
        signals: how the driver talks to it.
        limit: what a micro-batch may take on this machine; on a cluster more, by its cores.
        interval: how long data may wait, ns.
        pieces: how many tasks share a micro-batch, as long as the driver has not said otherwise.
        aggregation_id: the identity of the mapping that windows fold for; empty when they do not.
        kafka: the inputs that Spark reads with its own source.
        reports_lag: whether tasks are told where Kafka's partitions end.
        limits: what one message may come to.
        start_offset: the offset that a fresh checkpoint goes on from; None for the input's
            beginning.
    """

    source: ReplayableSource
    window: SystemWindow | EventWindow | None
    start_id: str
    signals: PlannerChannel
    limit: Limit
    interval: int
    pieces: int
    aggregation_id: str = ""
    kafka: tuple[StreamKafkaInput, ...] = ()
    reports_lag: bool = False
    limits: Limits = DEFAULT_LIMITS
    start_offset: dict[str, Any] | None = None


class StreamReader(DataSourceStreamReader):
    """Plans micro-batches on the driver, and hands out pieces to the workers."""

    def __init__(self, plan: SourcePlan, clock: BatchClock | None = None) -> None:
        """Take the plan, and the clock by which micro-batches have their times."""
        set_limits(plan.limits)
        self._plan = plan
        self._trigger = TriggerPolicy(plan.interval)
        self._clock = clock or BatchClock()
        self._idle_pause = IdlePause(plan.signals, clock=self._clock.now)
        self._kafka_admission = (
            KafkaAdmission(plan.kafka, plan.signals, clock=self._clock.now) if plan.kafka else None
        )
        # The newest micro-batch's time, and what the steady clock said then.
        self._planned: tuple[int, int] | None = None
        self._committed: dict[str, Any] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return where a stream without a checkpoint begins."""
        begins = {
            "data": self._plan.source.initial_offset(),
            "tick": 0,
            "start": "",
            "ended": False,
        }
        return begins | (self._plan.start_offset or {})

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return `start` when nothing is worth a micro-batch now, or where it goes to.

        Beside Kafka inputs it returns only when a micro-batch is worth it
        (`streamer.engine.planner.kafka_admission`).
        """
        self._clock.continue_from(start.get("time", 0))
        while True:
            self._idle_pause.wait()
            end = self._plan_end(start)
            self._idle_pause.note_poll(end is not start)
            if self._kafka_admission is None or end is not start:
                return end if end is start else add_checksum(end)
            self._kafka_admission.wait()

    def _plan_end(self, start: dict[str, Any]) -> dict[str, Any]:
        plan = self._plan
        if self._kafka_admission is None and plan.signals.is_stopping():
            return start
        # Spark asks when the micro-batch that ended here is written, and commits it with the next
        # one: where a spool is full there would be none.
        if start["data"] != self._committed:
            self.commit(start)
        # This, not when Spark has written the micro-batch down, is its time: a window that ends in
        # between has events that come with the next one. The input is asked for all until now, and
        # Spark takes what Kafka has when this returns. While no broker answers, time passes.
        kafka = (
            _NO_KAFKA_BACKLOG
            if self._kafka_admission is None
            else self._kafka_admission.read_backlog()
        )
        # It does not run backwards, though the machine's clock may, and goes on meanwhile.
        now, steady = self._clock.now(), self._clock.steady()
        ticked = next_tick(plan.window, start["tick"], plan.signals.due(), now)
        tasks = plan.signals.tasks()
        # Without windows all of it may come out at once, and to the driver: its heap does not grow
        # with the cores.
        is_first = start["start"] != plan.start_id
        limit = plan.limit.within(_FIRST_BATCH_LIMIT) if is_first else plan.limit
        if tasks is not None and plan.window is not None:
            limit = limit.share_of(tasks)
        latest = plan.source.latest_offset(start["data"], now, limit)
        waiting, more = latest.waiting + kafka.messages, latest.has_more or kafka.more
        plan.signals.set_backlog(waiting)
        ended = latest.is_ended
        woken = max(plan.signals.requested_at(), start.get("woken", 0))
        is_woken = woken != start.get("woken", 0)
        urgent = ticked != start["tick"] or more or ended or is_first or is_woken
        min_wait = round(plan.signals.min_wait() * SECOND) if waiting and not urgent else 0
        should_start = self._trigger.should_start(waiting, urgent, now, min_wait)
        if not should_start and latest.waiting:
            ended = False
        if (
            should_start
            or ticked != start["tick"]
            or is_first
            or is_woken
            or ended != start["ended"]
        ):
            data = latest.offset if should_start or not latest.waiting else start["data"]
            known, newest = plan.signals.newest_end()
            aggregates_from = next_aggregates_from(
                read_aggregates_from(start), plan.aggregation_id, newest, known and not is_first
            )
            pressure = None if is_first else self._pressure(start, now)
            suspended = 0
            if not is_first and self._planned is not None and self._planned[0] == start.get("time"):
                suspended = standstill_between(self._planned, now, steady)
            self._planned = now, steady
            return {
                "data": data,
                "tick": ticked,
                "start": plan.start_id,
                "ended": ended,
                "folded": aggregates_from,
                "lag": more,
                "time": now,
                # Wherever it comes again, the tasks are the same.
                "pieces": tasks or plan.pieces,
                **({"woken": woken} if woken else {}),
                **({} if pressure is None else {"pressure": pressure.to_fields()}),
                **({"stood": suspended} if suspended else {}),
                **self._kafka_fields(start, kafka, is_first),
            }
        return start

    def _pressure(self, start: dict[str, Any], now: int) -> BackPressure | None:
        """Return what the micro-batch that ended at `start` took of the stream's own time.

        None where that is not known, or cannot matter.
        """
        work = self._plan.signals.work()
        if work is None or self._planned is None or work.time != start.get("time"):
            return None
        if self._planned[0] != work.time:
            return None
        return measure_pressure(self._planned, now, work)

    def _kafka_fields(
        self, start: dict[str, Any], kafka: TotalBacklog, is_first: bool
    ) -> dict[str, Any]:
        """Return what an offset has besides when Kafka is read too."""
        if self._kafka_admission is None:
            return {}
        # An offset that is not new would bring no clock.
        fields: dict[str, Any] = {"step": start.get("step", 0) + 1}
        if self._plan.reports_lag:
            fields["ends"] = kafka.ends
        if backlog := self._backlog_ends(start, kafka, is_first):
            fields["backlog_ends"] = backlog
        return fields

    def _backlog_ends(
        self, start: dict[str, Any], kafka: TotalBacklog, is_first: bool
    ) -> Sequence[Offsets]:
        """Return where Kafka ended at the start of the program until all before it is planned.

        What waited meanwhile is not late: no window closes by the clock on the wall before then.
        """
        # Where a topic has become shorter, that place is never reached: when nothing waits it is
        # over.
        if self._plan.window is None or not kafka.messages:
            return ()
        if is_first:
            return kafka.ends
        ends: Sequence[Offsets] = start.get("backlog_ends", ())
        return ends if is_before(self._plan.signals.planned_ends(), ends) else ()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the pieces of a micro-batch; the first brings the clock with it."""
        offset = json.dumps(end)
        tasks = end.get("pieces", self._plan.pieces)
        if isinstance(self._plan.source, MeasurableSource):
            extent = extent_of(self._plan.source, start["data"], end["data"])
            # It is shown and nothing else: no micro-batch fails for it.
            with suppress(OSError):
                self._plan.signals.set_extent(extent)
        pieces = self._plan.source.split(start["data"], end["data"], tasks)
        rows: list[tuple[int, bytes | None]] = [(0, None)]
        if pieces:
            rows = [(number, pickle.dumps(piece)) for number, piece in enumerate(pieces)]
        # A directory of many small files has a piece for each; a task of Spark's costs more than
        # most of these.
        share = -(-len(rows) // max(tasks * _MAX_TASKS_PER_SLOT, 1))
        return [
            InputPartition((rows[first : first + share], offset))
            for first in range(0, len(rows), share)
        ]

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
        self._plan.source.on_committed(end["data"])
        self._committed = end["data"]


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
