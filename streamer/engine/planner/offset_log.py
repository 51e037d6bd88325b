"""Spark's logs of the micro-batches that are planned, and of those that are committed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.connectors.kafka.input.positions import list_kafka_ends
from streamer.core.errors import StreamerError
from streamer.engine.planner.checkpoint_path import Location, list_batch_numbers
from streamer.engine.planner.planner_channels import MicroBatchOffset

_OFFSET_LOG_VERSION: Final = "v1"
"""Of Spark's log of offsets."""

NO_OFFSET: Final = "-"
"""Stands in the line of a source that has no offset yet."""


class PlannedBatch(NamedTuple):
    """A micro-batch as Spark's log describes it.

    Attributes:
        number: the micro-batch's.
        offset: where it ends, without what Spark's own source of Kafka has read.
        ends: where it ends in Kafka, for each of the inputs.
    """

    number: int
    offset: MicroBatchOffset
    ends: Sequence[Offsets]


def read_planned(spark: Location, number: int, has_kafka: bool = True) -> PlannedBatch:
    """Read where a micro-batch ends from Spark's checkpoint.

    Args:
        spark: Spark's checkpoint directory.
        number: the micro-batch's.
        has_kafka: whether the stream must have Kafka inputs; else it may.

    Raises:
        FileNotFoundError: the log does not have it.
        StreamerError: the log has another form than it is known to have.
    """
    path = spark / "offsets" / str(number)
    content = path.read_bytes()
    try:
        version, settings, *offsets = content.decode().split("\n")
        if (
            version == _OFFSET_LOG_VERSION
            and (len(offsets) > has_kafka or any("kafka:at" in text for text in offsets))
            and "batchTimestampMs" in json.loads(settings)
        ):
            ours, *kafka = [{} if text == NO_OFFSET else json.loads(text) for text in offsets]
            offset = MicroBatchOffset.from_fields(ours)
            return PlannedBatch(number, offset, kafka or list_kafka_ends(offset.data))
    except (ValueError, TypeError):
        version = ""
    if re.fullmatch(r"v\d+", version) and version != _OFFSET_LOG_VERSION:
        raise StreamerError(
            f"{path} has the form {version}, expected {_OFFSET_LOG_VERSION}: another version of "
            "Spark wrote it; run the streamer that did, or start again with another checkpoint"
        )
    how = "is empty" if not content else f"ends too soon or was written over ({len(content)} bytes)"
    raise StreamerError(
        f"{path} {how}: expected {_OFFSET_LOG_VERSION}, the micro-batch's settings and a line of "
        "offsets for each input; restore the checkpoint from a backup, or start again with "
        "another one"
    )


def newest_number(log: Location) -> int | None:
    """Return the newest number in one of Spark's logs; None where it is empty."""
    return max(list_batch_numbers(log), default=None)


def read_newest_planned(
    spark: Location, log: str = "offsets", has_kafka: bool = True
) -> PlannedBatch | None:
    """Read where the newest micro-batch of a checkpoint ends; None before there is any.

    Args:
        spark: Spark's checkpoint directory.
        log: `commits` for the newest one that is committed.
        has_kafka: see `read_planned`.
    """
    newest = newest_number(spark / log)
    return None if newest is None else read_planned(spark, newest, has_kafka)


def is_committed(spark: Location, number: int) -> bool:
    """Return whether all of a micro-batch is done, as Spark's checkpoint has it."""
    return (spark / "commits" / str(number)).exists()
