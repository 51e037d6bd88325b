"""Positions of Kafka inputs in the checkpoint of a stream that does not run: read and changed.

Changed positions begin a generation (`streamer.spark.checkpoint.generations`): the record of the
checkpoint is replaced at once, and nothing of what ran before is written over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.engine.planner.offset_log import read_newest_planned
from streamer.spark.checkpoint.checkpoint import Checkpoint, CheckpointError
from streamer.spark.checkpoint.generations import begin_moved_generation


def read_kafka_positions(checkpoint: Checkpoint, names: Sequence[str]) -> list[Offsets]:
    """Return the next offsets to be read, by topic and partition, for each Kafka input.

    Args:
        checkpoint: held by this program; no query runs on it.
        names: of the inputs, as they are in the checkpoint's record.

    Raises:
        CheckpointError: there are none; the text says why and what to do.
    """
    record = checkpoint.read_record()
    if record.get("finished") or not record:
        raise CheckpointError(
            f"the checkpoint {checkpoint} has no positions: the stream has not run on it; "
            "start_offset in the config says where its first start begins"
        )
    if "draining" in record:
        raise CheckpointError(
            f"a deploy was letting open windows out of the checkpoint {checkpoint} when it was "
            "broken off: start the stream once, then come back"
        )
    inputs: Mapping[str, Any] = record.get("inputs", {})
    missing = [name for name in names if name not in inputs]
    if missing:
        raise CheckpointError(
            f"the checkpoint {checkpoint} is of other inputs than the config; name the config that "
            "runs on it, or another checkpoint with --checkpoint"
        )
    committed = read_newest_planned(checkpoint.spark, "commits", has_kafka=False)
    ends = checkpoint.kafka_start_offsets if committed is None else [*committed.ends]
    ends = [*ends, *({} for _ in names)][: len(names)]
    return [
        _merge(inputs[name]["starting"], of_input)
        for name, of_input in zip(names, ends, strict=True)
    ]


def kafka_input_names(checkpoint: Checkpoint) -> list[str]:
    """Return the names of the Kafka inputs of a checkpoint, in their order."""
    inputs: Mapping[str, Any] = checkpoint.read_record().get("inputs", {})
    return [
        name
        for name, remembered in inputs.items()
        if isinstance(remembered, dict) and "starting" in remembered
    ]


def write_kafka_positions(
    checkpoint: Checkpoint,
    names: Sequence[str],
    positions: Sequence[Offsets],
    identities: Sequence[Mapping[str, str]],
) -> None:
    """Let the next start read on from other positions, with fresh windows.

    Args:
        checkpoint: held by this program; no query runs on it.
        names: of the inputs, as they are in the checkpoint's record.
        positions: the next offsets to be read, for each input.
        identities: of the topics as they are now, for each input.
    """
    inputs = dict(checkpoint.read_record().get("inputs", {}))
    for name, topics in zip(names, identities, strict=True):
        remembered = inputs[name]
        inputs[name] = {**remembered, "topics": {**remembered["topics"], **topics}}
    begin_moved_generation(checkpoint, positions, inputs)


def _merge(starting: Offsets, ends: Offsets) -> Offsets:
    return {
        topic: {**starting.get(topic, {}), **ends.get(topic, {})}
        for topic in sorted({*starting, *ends})
    }
