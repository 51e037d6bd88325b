"""How tasks hear which micro-batch they work on: by a local property of Spark's."""

from __future__ import annotations

from typing import Final

from pyspark import TaskContext
from pyspark.sql import DataFrame

from streamer.engine.beside import Planned
from streamer.engine.crash_search import CrashOrder, any_order
from streamer.engine.reading import ReadingReporter
from streamer.message import MicroBatch

_PROPERTY: Final = "streamer.micro_batch"
_PLANNED: Final = "streamer.planned"
_SAMPLES: Final = "streamer.samples"
_CRASHES: Final = "streamer.crashes"


def tell(batch: DataFrame, stream: str, number: int, samples: int = 0, crashes: str = "") -> None:
    """Tell the tasks of a micro-batch, from the thread that is about to run them.

    Args:
        batch: the micro-batch.
        stream: names the checkpoint; without blanks.
        number: the micro-batch's.
        samples: how many samples tasks take of each component's messages.
        crashes: what is known of messages that end a worker (`CrashOrder.text`).
    """
    context = batch.sparkSession.sparkContext
    context.setLocalProperty(_PROPERTY, f"{stream} {number}")
    context.setLocalProperty(_SAMPLES, str(samples))
    context.setLocalProperty(_CRASHES, crashes)


def heard(part: str = "") -> MicroBatch | None:
    """Return which micro-batch the task works on; None when nobody has told.

    Args:
        part: names the part of it; without one it is the task itself, whose number is the same
            when the micro-batch comes again.
    """
    context = TaskContext.get()
    told = context.getLocalProperty(_PROPERTY) if context else None
    if context is None or not told:
        return None
    stream, number = told.split(" ")
    return MicroBatch(stream, int(number), part or str(context.partitionId()))


def tell_plan(batch: DataFrame, planned: Planned) -> None:
    """Tell the tasks of a micro-batch what Spark's log says of it, as `tell` does."""
    batch.sparkSession.sparkContext.setLocalProperty(_PLANNED, planned.told())


def heard_plan() -> Planned | None:
    """Return what Spark's log says of the task's micro-batch; None where no Kafka is read."""
    context = TaskContext.get()
    told = context.getLocalProperty(_PLANNED) if context else None
    return Planned.heard(told) if told else None


def samples_wanted() -> int:
    """Return how many samples the task is to take of each component's messages."""
    context = TaskContext.get()
    told = context.getLocalProperty(_SAMPLES) if context else None
    return int(told or 0)


def crash_order() -> CrashOrder | None:
    """Return what the task must know of messages that end a worker; None where none has died."""
    context = TaskContext.get()
    return any_order(context.getLocalProperty(_CRASHES)) if context else None


def reporter(address: str) -> ReadingReporter | None:
    """Return what counts and reports what the task reads; None where nobody listens.

    Args:
        address: where the driver listens; empty where it does not.
    """
    context, micro_batch = TaskContext.get(), heard()
    if context is None or micro_batch is None or not address:
        return None
    return ReadingReporter(address, micro_batch.number, context.partitionId())
