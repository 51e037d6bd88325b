"""Passes the micro-batch's number and instructions to tasks, by local properties of Spark's."""

from __future__ import annotations

from typing import Final

from pyspark import TaskContext
from pyspark.sql import DataFrame

from streamer.core.execution import MicroBatch
from streamer.engine.planner.offset_log import PlannedBatch
from streamer.engine.report.reading_reporter import ReadingReporter
from streamer.engine.stage.crash_search import CrashInstructions, parse_instructions

_MICRO_BATCH_PROPERTY: Final = "streamer.micro_batch"
_PLANNED_PROPERTY: Final = "streamer.planned"
_SAMPLES_PROPERTY: Final = "streamer.samples"
_CRASHES_PROPERTY: Final = "streamer.crashes"
_TABLES_PROPERTY: Final = "streamer.tables"


def set_micro_batch(
    batch: DataFrame, stream: str, number: int, samples: int = 0, crashes: str = ""
) -> None:
    """Set the properties of a micro-batch's tasks, from the thread that is about to run them.

    Args:
        batch: the micro-batch.
        stream: names the checkpoint; without blanks.
        number: the micro-batch's.
        samples: how many samples tasks take of each component's messages.
        crashes: what is known of messages that end a worker (`CrashInstructions.text`).
    """
    context = batch.sparkSession.sparkContext
    context.setLocalProperty(_MICRO_BATCH_PROPERTY, f"{stream} {number}")
    context.setLocalProperty(_SAMPLES_PROPERTY, str(samples))
    context.setLocalProperty(_CRASHES_PROPERTY, crashes)


def current_micro_batch(part: str = "") -> MicroBatch | None:
    """Return which micro-batch the task works on; None where no property is set.

    Args:
        part: names the part of it; without one it is the task itself, whose number is the same
            when the micro-batch comes again.
    """
    context = TaskContext.get()
    text = context.getLocalProperty(_MICRO_BATCH_PROPERTY) if context else None
    if context is None or not text:
        return None
    stream, number = text.split(" ")
    return MicroBatch(stream, int(number), part or str(context.partitionId()))


def set_planned_batch(batch: DataFrame, planned: PlannedBatch) -> None:
    """Pass the planned micro-batch of Spark's log to its tasks, as `set_micro_batch` does."""
    batch.sparkSession.sparkContext.setLocalProperty(_PLANNED_PROPERTY, planned.to_json())


def current_planned_batch() -> PlannedBatch | None:
    """Return what Spark's log says of the task's micro-batch; None where no Kafka is read."""
    context = TaskContext.get()
    text = context.getLocalProperty(_PLANNED_PROPERTY) if context else None
    return PlannedBatch.from_json(text) if text else None


def requested_samples() -> int:
    """Return how many samples the task is to take of each component's messages."""
    context = TaskContext.get()
    text = context.getLocalProperty(_SAMPLES_PROPERTY) if context else None
    return int(text or 0)


def set_tables(batch: DataFrame, text: str) -> None:
    """Set which versions of lookup tables a micro-batch's tasks look up, as `set_micro_batch` does.

    Args:
        batch: the micro-batch.
        text: see `worker_tables.describe_versions`.
    """
    batch.sparkSession.sparkContext.setLocalProperty(_TABLES_PROPERTY, text)


def current_tables_text() -> str:
    """Return the versions of lookup tables that the task looks up; empty without tables."""
    context = TaskContext.get()
    return (context.getLocalProperty(_TABLES_PROPERTY) if context else None) or ""


def current_crash_order() -> CrashInstructions | None:
    """Return what the task must know of messages that end a worker; None where none has died."""
    context = TaskContext.get()
    return parse_instructions(context.getLocalProperty(_CRASHES_PROPERTY)) if context else None


def make_reading_reporter(address: str) -> ReadingReporter | None:
    """Return what counts and reports what the task reads; None where nobody listens.

    Args:
        address: where the driver listens; empty where it does not.
    """
    context, micro_batch = TaskContext.get(), current_micro_batch()
    if context is None or micro_batch is None or not address:
        return None
    return ReadingReporter(address, micro_batch.number, context.partitionId())
