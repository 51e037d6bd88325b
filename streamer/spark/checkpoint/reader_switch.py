"""A checkpoint of Spark's own source of Kafka, as earlier versions have it, goes on with workers.

Where Spark read Kafka, its log has a line of offsets for each input behind ours; where workers do,
they are in ours, in the position of the stream. Spark starts from the newest micro-batch and the
one before it, so these two are written anew. State, and all else of a checkpoint, is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.connectors.kafka.input.positions import KafkaPosition
from streamer.connectors.kafka.input.start_offsets import flatten_offsets
from streamer.connectors.merged_source import MergedSource
from streamer.core.errors import StreamerError
from streamer.core.json.checksums import add_checksum
from streamer.engine.planner.checkpoint_path import CheckpointPath, remove_file, replace_file
from streamer.engine.planner.kafka_inputs import StreamKafkaInput, is_range_source
from streamer.engine.planner.offset_log import (
    PlannedBatch,
    is_committed,
    newest_number,
    read_planned,
)
from streamer.plan import Plan
from streamer.plan.component_lookup import is_transactional


def take_over_kafka(
    spark: CheckpointPath, plan: Plan, source: Any, inputs: Sequence[StreamKafkaInput]
) -> bool:
    """Let the log of a checkpoint be that of workers that read Kafka.

    Args:
        spark: Spark's checkpoint directory; no query runs on it.
        plan: the stream's plan.
        source: the stream's input, as it is read.
        inputs: its Kafka inputs.

    Returns:
        Whether it was that of Spark's own source.

    Raises:
        StreamerError: a micro-batch that was begun can be ended by that source only; or a broker
            does not tell where partitions begin.
    """
    newest = newest_number(spark / "offsets")
    if newest is None or not inputs or _is_by_workers(spark, newest):
        return False
    is_replayed = not is_committed(spark, newest)
    in_transactions = any(is_transactional(one, plan.resources) for one in plan.outputs)
    if is_replayed and plan.window is None and in_transactions:
        raise StreamerError(
            f"micro-batch {newest} was begun by Spark's own source of Kafka, whose tasks' "
            "transactions this version cannot tell from its own; start the stream once with the "
            "streamer that began it, stop it when it has caught up, and start it again"
        )
    before = _read_before(spark, newest)
    for planned in filter(None, (before, read_planned(spark, newest))):
        since = before.ends if before is not None and planned is not before else None
        begun = [
            _first_offsets(one, ends, since[number] if since else one.start_offsets)
            for number, (one, ends) in enumerate(zip(inputs, planned.ends, strict=True))
        ]
        _write(spark, _for_workers(planned, source, begun))
    return True


def _is_by_workers(spark: CheckpointPath, number: int) -> bool:
    return len((spark / "offsets" / str(number)).read_bytes().split(b"\n")) == 3


def _read_before(spark: CheckpointPath, newest: int) -> PlannedBatch | None:
    try:
        return read_planned(spark, newest - 1)
    except FileNotFoundError:
        return None


def _first_offsets(
    one: StreamKafkaInput, ends: Offsets, since: Offsets
) -> Mapping[PartitionRef, int]:
    """Return where partitions begin that a micro-batch is the first to read."""
    known = flatten_offsets(since)
    begun = {place: one.input.starting.get(place, -1) for place in flatten_offsets(ends)}
    new = {place: at for place, at in begun.items() if place not in known}
    oldest = one.input.first_offsets([place for place, at in new.items() if at < 0])
    return {**new, **oldest}


def _for_workers(
    planned: PlannedBatch, source: Any, begun: Sequence[Mapping[PartitionRef, int]]
) -> PlannedBatch:
    positions = (
        KafkaPosition(flatten_offsets(ends), first).to_offset()
        for ends, first in zip(planned.ends, begun, strict=True)
    )
    data = _replace_positions(source, planned.offset.data, lambda _: next(positions))
    return planned._replace(offset=replace(planned.offset, data=data))


def _replace_positions(source: Any, data: Any, position: Callable[[Any], Any]) -> Any:
    """Return the position of a stream with those of its Kafka inputs replaced, in their order."""
    if is_range_source(source):
        return position(data)
    if not isinstance(source, MergedSource):
        return data
    return dict(_replace_inside(source, data, position))


def _replace_inside(
    source: MergedSource, data: Mapping[str, Any], position: Callable[[Any], Any]
) -> Iterator[tuple[str, Any]]:
    for name, child in source.sources.items():
        after = _replace_positions(child, data.get(name, {}), position)
        if name in data or after:
            yield name, after


def _write(spark: CheckpointPath, planned: PlannedBatch) -> None:
    """Write where a micro-batch ends into Spark's log."""
    path = spark / "offsets" / str(planned.number)
    version, settings, *_ = path.read_bytes().decode().split("\n")
    ours = add_checksum(planned.offset.to_fields())
    lines = [version, settings, json.dumps(ours)]
    if isinstance(path, Path):
        # The check sum is that of the former text, and is not asked for where there is none.
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    else:
        remove_file(spark / "offsets" / f".{path.name}.crc")
    replace_file(path, "\n".join(lines).encode())
