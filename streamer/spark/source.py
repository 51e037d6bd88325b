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

from streamer.durations import SECOND
from streamer.engine.beside import KafkaChild, is_before
from streamer.engine.folding import folded_since, next_folded
from streamer.engine.gate import Gate, Waiting
from streamer.engine.signals import Signals
from streamer.engine.stream_clock import StreamClock, pressure_between, stood_between
from streamer.engine.sums import summed
from streamer.engine.ticks import Pacer, Rest, tick
from streamer.kafka.reading import Offsets
from streamer.limits import DEFAULT_LIMITS, Limits, use_limits
from streamer.source.replayable import Limit, Measurable, Replayable, extent_of
from streamer.window.event import EventWindow
from streamer.window.pressure import Pressure
from streamer.window.system import SystemWindow

SCHEMA = "number int, piece binary, offset string"
_NOTHING = Waiting(0, False, [])
_FIRST = Limit(messages=100_000, size=16 << 20)
"""What the first micro-batch of a start takes at most: about a second's work, so that results come
soon, and what cannot work shows at once. Its end is in Spark's log, like any other's.
"""

_TASKS = 8
"""Spark's tasks in a micro-batch for each one that can run at once, at most."""

_ARROW = pa.schema([("number", pa.int32()), ("piece", pa.binary()), ("offset", pa.string())])


@dataclass(frozen=True)
class SourcePlan:
    """What the process that plans micro-batches needs.

    Attributes:
        source: the input.
        window: the windows' settings, for ticks; None without a window buffer.
        start_id: differs for every start of the program.
        signals: how the driver talks to it.
        limit: what a micro-batch may take on this machine; on a cluster more, by its cores.
        interval: how long data may wait, ns.
        pieces: how many tasks share a micro-batch, as long as the driver has not said otherwise.
        folding: the identity of the mapping that windows fold for; empty when they do not.
        kafka: the inputs that Spark reads with its own source.
        tells_lag: whether tasks are told where Kafka's partitions end.
        limits: what one message may come to.
        begins_at: the offset that a fresh checkpoint goes on from; None for the input's beginning.
    """

    source: Replayable
    window: SystemWindow | EventWindow | None
    start_id: str
    signals: Signals
    limit: Limit
    interval: int
    pieces: int
    folding: str = ""
    kafka: tuple[KafkaChild, ...] = ()
    tells_lag: bool = False
    limits: Limits = DEFAULT_LIMITS
    begins_at: dict[str, Any] | None = None


class StreamReader(DataSourceStreamReader):
    """Plans micro-batches on the driver, and hands out pieces to the workers."""

    def __init__(self, plan: SourcePlan, clock: StreamClock | None = None) -> None:
        """Take the plan, and the clock by which micro-batches have their times."""
        use_limits(plan.limits)
        self._plan = plan
        self._pacer = Pacer(plan.interval)
        self._clock = clock or StreamClock()
        self._rest = Rest(plan.signals, clock=self._clock.now)
        self._gate = Gate(plan.kafka, plan.signals, clock=self._clock.now) if plan.kafka else None
        # The newest micro-batch's time, and what the steady clock said then.
        self._planned: tuple[int, int] | None = None
        self._committed: dict[str, Any] | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return where a stream without a checkpoint begins."""
        begins = {"data": self._plan.source.initial(), "tick": 0, "start": "", "ended": False}
        return begins | (self._plan.begins_at or {})

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return `start` when nothing is worth a micro-batch now, or where it goes to.

        Beside Kafka inputs it returns only when a micro-batch is worth it (`streamer.engine.gate`).
        """
        self._clock.go_on_from(start.get("time", 0))
        while True:
            self._rest.take()
            found = self._latest(start)
            self._rest.looked(found is not start)
            if self._gate is None or found is not start:
                return found if found is start else summed(found)
            self._gate.nap()

    def _latest(self, start: dict[str, Any]) -> dict[str, Any]:
        plan = self._plan
        if self._gate is None and plan.signals.stopping():
            return start
        # Spark asks when the micro-batch that ended here is written, and commits it with the next
        # one: where a spool is full there would be none.
        if start["data"] != self._committed:
            self.commit(start)
        # This, not when Spark has written the micro-batch down, is its time: a window that ends in
        # between has events that come with the next one. The input is asked for all until now, and
        # Spark takes what Kafka has when this returns. While no broker answers, time passes.
        kafka = _NOTHING if self._gate is None else self._gate.waiting()
        # It does not run backwards, though the machine's clock may, and goes on meanwhile.
        now, steady = self._clock.now(), self._clock.steady()
        ticked = tick(plan.window, start["tick"], plan.signals.due(), now)
        tasks = plan.signals.tasks()
        # Without windows all of it may come out at once, and to the driver: its heap does not grow
        # with the cores.
        begins = start["start"] != plan.start_id
        limit = plan.limit.within(_FIRST) if begins else plan.limit
        if tasks is not None and plan.window is not None:
            limit = limit.on(tasks)
        found = plan.source.latest(start["data"], now, limit)
        waiting, more = found.waiting + kafka.messages, found.more or kafka.more
        plan.signals.set_backlog(waiting)
        ended = found.ended
        woken = max(plan.signals.woken(), start.get("woken", 0))
        wakes = woken != start.get("woken", 0)
        urgent = ticked != start["tick"] or more or ended or begins or wakes
        patience = round(plan.signals.patience() * SECOND) if waiting and not urgent else 0
        takes = self._pacer.takes(waiting, urgent, now, patience)
        if not takes and found.waiting:
            ended = False
        if takes or ticked != start["tick"] or begins or wakes or ended != start["ended"]:
            data = found.offset if takes or not found.waiting else start["data"]
            known, newest = plan.signals.newest()
            folded = next_folded(folded_since(start), plan.folding, newest, known and not begins)
            pressure = None if begins else self._pressure(start, now)
            stood = 0
            if not begins and self._planned is not None and self._planned[0] == start.get("time"):
                stood = stood_between(self._planned, now, steady)
            self._planned = now, steady
            return {
                "data": data,
                "tick": ticked,
                "start": plan.start_id,
                "ended": ended,
                "folded": folded,
                "lag": more,
                "time": now,
                # Wherever it comes again, the tasks are the same.
                "pieces": tasks or plan.pieces,
                **({"woken": woken} if woken else {}),
                **({} if pressure is None else {"pressure": pressure.as_fields()}),
                **({"stood": stood} if stood else {}),
                **self._beside(start, kafka, begins),
            }
        return start

    def _pressure(self, start: dict[str, Any], now: int) -> Pressure | None:
        """Return what the micro-batch that ended at `start` took of the stream's own time.

        None where that is not known, or cannot matter.
        """
        work = self._plan.signals.work()
        if work is None or self._planned is None or work.time != start.get("time"):
            return None
        if self._planned[0] != work.time:
            return None
        return pressure_between(self._planned, now, work)

    def _beside(self, start: dict[str, Any], kafka: Waiting, begins: bool) -> dict[str, Any]:
        """Return what an offset has besides when Kafka is read too."""
        if self._gate is None:
            return {}
        # An offset that is not new would bring no clock.
        found: dict[str, Any] = {"step": start.get("step", 0) + 1}
        if self._plan.tells_lag:
            found["ends"] = kafka.ends
        if backlog := self._backlog(start, kafka, begins):
            found["backlog_ends"] = backlog
        return found

    def _backlog(self, start: dict[str, Any], kafka: Waiting, begins: bool) -> Sequence[Offsets]:
        """Return where Kafka ended at the start of the program until all before it is planned.

        What waited meanwhile is not late: no window closes by the clock on the wall before then.
        """
        # Where a topic has become shorter, that place is never reached: when nothing waits it is
        # over.
        if self._plan.window is None or not kafka.messages:
            return ()
        if begins:
            return kafka.ends
        ends: Sequence[Offsets] = start.get("backlog_ends", ())
        return ends if is_before(self._plan.signals.known(), ends) else ()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the pieces of a micro-batch; the first brings the clock with it."""
        offset = json.dumps(end)
        tasks = end.get("pieces", self._plan.pieces)
        if isinstance(self._plan.source, Measurable):
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
        share = -(-len(rows) // max(tasks * _TASKS, 1))
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
            [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)],
            schema=_ARROW,
        )

    def commit(self, end: dict[str, Any]) -> None:
        """Let the input forget what the checkpoint has."""
        self._plan.source.committed(end["data"])
        self._committed = end["data"]


def stream_source(plan: SourcePlan) -> type[DataSource]:
    """Return a data source class for one stream; it carries the plan with it."""

    class StreamSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "streamer"

        def schema(self) -> str:
            return SCHEMA

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            return StreamReader(plan)

    return StreamSource
