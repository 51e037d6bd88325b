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

from streamer.core.durations import MILLISECOND, SECOND
from streamer.engine.driver.delivery import DeliveryStoppedError
from streamer.engine.report.result_frame import Frame
from streamer.engine.report.undelivered import (
    UndeliveredBatches,
    decode_undelivered,
    encode_undelivered,
)
from streamer.engine.stage.resend import resend_undelivered
from streamer.plan import Plan
from streamer.plan.plan import count_cores
from streamer.spark.tasks.stages import (
    FRAME_ARROW_SCHEMA,
    FRAME_SCHEMA,
    current_micro_batch,
    prepare_task,
    to_record_batches,
)

WAIT_BUDGET_NS: Final = 2 * SECOND
"""How long a task waits for outputs in all before what is unsent goes to the driver, ns."""

_PROBE_WAIT_BUDGET_NS: Final = MILLISECOND
"""How long a try waits that is to find out whether an output is there again, ns: it is one."""

_MAX_REST_S: Final = 5.0
CORES_PER_TURN: Final = 4
"""Of how many cores one may be taken by tries of streams that are blocked."""

_BODY: Final = pa.schema([("body", pa.binary())])


class TurnQueue:
    """Lets a few at a time have what they all want, in the order in which they came."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin with nobody.

        Args:
            now: a clock that never runs backwards, seconds.
        """
        self._now = now
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._active_turns = 0
        self._free_at = 0.0

    @contextmanager
    def turn(self, max_turns: int, stopping: Callable[[], bool]) -> Iterator[None]:
        """Wait for a turn, and have it while the block runs.

        After it there is a rest as long as it took: those who have nothing to wait for go first.

        Args:
            max_turns: how many may have a turn at once.
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
                    or self._active_turns >= max_turns
                    or self._now() < self._free_at
                ):
                    if stopping():
                        raise DeliveryStoppedError("an output has not accepted all messages")
                    self._changed.wait(0.1)
                self._active_turns += 1
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
        began = self._now()
        try:
            yield
        finally:
            with self._changed:
                self._active_turns -= 1
                self._free_at = self._now() + min(self._now() - began, _MAX_REST_S)
                self._changed.notify_all()


TURNS: Final = TurnQueue()
"""Those of all streams of this process."""


class Redelivery:
    """Sends batches from the driver through outputs in workers, by a small job of Spark's."""

    def __init__(self, plan: Plan, session: SparkSession | None, stopping: threading.Event) -> None:
        """Take the stream's plan, its session, and what is set when the stream is to stop."""
        self._plan = plan
        self._session = session
        self._stopping = stopping

    def send(self, undelivered: Sequence[UndeliveredBatches], batch: int) -> list[Frame]:
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
        is_probe = len(undelivered) == 1 and len(undelivered[0].batches) == 1
        plan = replace(self._plan, wait_budget=_PROBE_WAIT_BUDGET_NS) if is_probe else self._plan
        bodies = pa.array([encode_undelivered(one) for one in undelivered], pa.binary())
        with TURNS.turn(max(count_cores(plan.master) // CORES_PER_TURN, 1), self._stopping.is_set):
            rows = self._session.createDataFrame(pa.Table.from_arrays([bodies], schema=_BODY))
            job = rows.coalesce(1).mapInArrow(_resend_stage(plan), FRAME_SCHEMA)
            table = job.toArrow()
        columns = [column.to_pylist() for column in table.columns]
        return [Frame(*row) for row in zip(*columns, strict=True)]


def _resend_stage(
    plan: Plan,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def bodies(batches: Iterable[pa.RecordBatch]) -> Iterator[UndeliveredBatches]:
        for batch in batches:
            for body in batch.column(0).to_pylist():
                yield decode_undelivered(body)

    def stage(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_task(plan)
        yield from to_record_batches(
            resend_undelivered(plan, bodies(batches), current_micro_batch()), FRAME_ARROW_SCHEMA
        )

    return stage
