"""Send again what tasks could not deliver, by small jobs, with no task slot taken in between."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from streamer.durations import MILLISECOND, SECOND
from streamer.engine.delivery import DeliveryStoppedError
from streamer.engine.frame import Frame
from streamer.engine.resend import resend
from streamer.engine.undelivered import Undelivered, decode_undelivered, encode_undelivered
from streamer.plan import Plan
from streamer.plan.plan import cores
from streamer.spark.micro_batch import heard
from streamer.spark.stages import FRAME, FRAME_SCHEMA, arrow, begin_task

WAIT_BUDGET_NS: Final = 2 * SECOND
"""How long a task waits for outputs in all before what is unsent goes to the driver, ns."""

_PROBE_WAIT_BUDGET_NS: Final = MILLISECOND
"""How long a try waits that is to find out whether an output is there again, ns: it is one."""

_LONGEST_REST_S: Final = 5.0
CORES_A_TURN: Final = 4
"""Of how many cores one may be taken by tries of streams that are blocked."""

_BODY: Final = pa.schema([("body", pa.binary())])


class Turns:
    """Lets a few at a time have what they all want, in the order in which they came."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin with nobody.

        Args:
            now: a clock that never runs backwards, seconds.
        """
        self._now = now
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._taken = 0
        self._free_at = 0.0

    @contextmanager
    def turn(self, most: int, stopping: Callable[[], bool]) -> Iterator[None]:
        """Wait for a turn, and have it while the block runs.

        After it there is a rest as long as it took: those who have nothing to wait for go first.

        Args:
            most: how many may have a turn at once.
            stopping: whether to wait no more.

        Raises:
            DeliveryStoppedError: the program is to stop.
        """
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                while (
                    self._waiting[0] is not ticket
                    or self._taken >= most
                    or self._now() < self._free_at
                ):
                    if stopping():
                        raise DeliveryStoppedError("an output has not taken all messages")
                    self._changed.wait(0.1)
                self._taken += 1
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
        began = self._now()
        try:
            yield
        finally:
            with self._changed:
                self._taken -= 1
                self._free_at = self._now() + min(self._now() - began, _LONGEST_REST_S)
                self._changed.notify_all()


TURNS: Final = Turns()
"""Those of all streams of this process."""


class Redelivery:
    """Sends batches from the driver through outputs in workers, by a small job of Spark's."""

    def __init__(self, plan: Plan, session: SparkSession | None, stopping: threading.Event) -> None:
        """Take the stream's plan, its session, and what is set when the stream is to stop."""
        self._plan = plan
        self._session = session
        self._stopping = stopping

    def send(self, undelivered: Sequence[Undelivered], batch: int) -> list[Frame]:
        """Try once to send batches, in order, from the thread that delivers the micro-batch.

        Args:
            undelivered: what to send.
            batch: the micro-batch's number.

        Returns:
            What the tasks of a micro-batch return, without `STATUS`; what is still not sent is in
            frames of kind `UNDELIVERED`.

        Raises:
            DeliveryStoppedError: the stream is to stop, and it is not its turn yet.
        """
        assert self._session is not None
        probes = len(undelivered) == 1 and len(undelivered[0].batches) == 1
        plan = replace(self._plan, wait_budget=_PROBE_WAIT_BUDGET_NS) if probes else self._plan
        bodies = pa.array([encode_undelivered(one) for one in undelivered], pa.binary())
        with TURNS.turn(max(cores(plan.master) // CORES_A_TURN, 1), self._stopping.is_set):
            rows = self._session.createDataFrame(pa.Table.from_arrays([bodies], schema=_BODY))
            job = rows.coalesce(1).mapInArrow(_resend_stage(plan), FRAME_SCHEMA)
            table = job.toArrow()
        columns = [column.to_pylist() for column in table.columns]
        return [Frame(*row) for row in zip(*columns, strict=True)]


def _resend_stage(
    plan: Plan,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def bodies(batches: Iterable[pa.RecordBatch]) -> Iterator[Undelivered]:
        for batch in batches:
            for body in batch.column(0).to_pylist():
                yield decode_undelivered(body)

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task(plan)
        yield from arrow(resend(plan, bodies(batches), heard()), FRAME)

    return stage
