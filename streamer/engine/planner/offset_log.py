"""Spark's log of offsets: where each micro-batch ends, and whether all of it is done."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.core.errors import StreamerError
from streamer.engine.planner.checkpoint_path import Location, list_batch_numbers

_OFFSET_LOG_VERSION: Final = "v1"


class PlannedBatch(NamedTuple):
    """A micro-batch as Spark's log describes it.

    Attributes:
        number: the micro-batch's.
        offset: where our source's part of it ends.
        ends: where it ends in Kafka, for each of the inputs.
    """

    number: int
    offset: Mapping[str, Any]
    ends: Sequence[Offsets]

    def to_json(self) -> str:
        """Return the micro-batch as JSON, for tasks."""
        return json.dumps(self)

    @classmethod
    def from_json(cls, text: str) -> PlannedBatch:
        """Return the micro-batch that `to_json` has written."""
        return cls(*json.loads(text))


def is_before(ends: Sequence[Offsets], later: Sequence[Offsets]) -> bool:
    """Return whether anything lies between two positions in the Kafka inputs of a stream.

    What only one of them knows does not count: a partition has come meanwhile, or is gone.

    Args:
        ends: the one, for each of the inputs.
        later: the other.
    """
    return any(
        at < beyond.get(topic, {}).get(partition, at)
        for known, beyond in zip(ends, later, strict=False)
        for topic, partitions in known.items()
        for partition, at in partitions.items()
    )


def read_planned(spark: Location, number: int) -> PlannedBatch:
    """Read where a micro-batch ends from Spark's checkpoint.

    Args:
        spark: Spark's checkpoint directory.
        number: the micro-batch's.

    Raises:
        StreamerError: the log has another form than it is known to have.
    """
    path = spark / "offsets" / str(number)
    content = path.read_bytes()
    try:
        version, settings, *offsets = content.decode().split("\n")
        if (
            version == _OFFSET_LOG_VERSION
            and len(offsets) > 1
            and "batchTimestampMs" in json.loads(settings)
        ):
            ours, *kafka = [{} if text == "-" else json.loads(text) for text in offsets]
            return PlannedBatch(number, ours, kafka)
    except (ValueError, TypeError):
        version = ""
    if re.fullmatch(r"v\d+", version) and version != _OFFSET_LOG_VERSION:
        raise StreamerError(
            f"{path} has the form {version}, expected {_OFFSET_LOG_VERSION}: another version of "
            "Spark wrote it; run the streamer that did, or start anew with another checkpoint"
        )
    how = "is empty" if not content else f"ends too soon or was written over ({len(content)} bytes)"
    raise StreamerError(
        f"{path} {how}: expected {_OFFSET_LOG_VERSION}, the micro-batch's settings and a line of "
        "offsets for each input; restore the checkpoint from a backup, or start anew with another "
        "one"
    )


def read_newest_planned(spark: Location) -> PlannedBatch | None:
    """Read where the newest micro-batch of a checkpoint ends; None before there is any."""
    newest = max(list_batch_numbers(spark / "offsets"), default=None)
    return None if newest is None else read_planned(spark, newest)


def is_committed(spark: Location, number: int) -> bool:
    """Return whether all of a micro-batch is done, as Spark's checkpoint has it."""
    return (spark / "commits" / str(number)).exists()
