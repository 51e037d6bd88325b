"""The Kafka inputs of a config, with their brokers and the positions of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamer.cli.offset_options import OffsetOptions
from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.cluster.topic_selection import EARLIEST
from streamer.connectors.kafka.input.input_preflight import places_of
from streamer.connectors.kafka.input.kafka_input import KafkaInput
from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.connectors.kafka.input.offset_moves import (
    OffsetMove,
    PartitionState,
    copy_offsets,
    shift_offsets,
)
from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.connectors.kafka.input.start_offsets import flatten_offsets, nest_offsets, read_start
from streamer.connectors.merged_source import MergedSource
from streamer.core.errors import StreamerError
from streamer.plan import Plan

_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True)
class NamedInput:
    """A Kafka input of a config.

    Attributes:
        name: its name in the checkpoint's record; empty for the only input.
        input: the input.
        cluster: asks its brokers.
    """

    name: str
    input: KafkaSource
    cluster: ClusterClient


@dataclass(frozen=True)
class PositionedInput(NamedInput):
    """The same with what brokers and the checkpoint say.

    Attributes:
        states: its partitions, those that came since the last run among them.
        identities: of its topics.
        others: positions of partitions that are gone, which stay as they are.
    """

    states: Mapping[PartitionRef, PartitionState]
    identities: Mapping[str, str]
    others: Mapping[PartitionRef, int]

    def moved(self, moves: Sequence[OffsetMove]) -> Offsets:
        """Return all positions after some moves."""
        positions = dict(self.others)
        # What was never read begins at its oldest message, however old that is by then.
        positions |= {
            place: state.position
            for place, state in self.states.items()
            if state.position != EARLIEST
        }
        return nest_offsets(positions | {move.place: move.after for move in moves})


@contextmanager
def open_inputs(plan: Plan) -> Iterator[list[NamedInput]]:
    """Give the Kafka inputs of a config; nothing is connected yet.

    Raises:
        StreamerError: it has none.
    """
    inputs_by_name = list(_find_inputs(plan.context().build(plan.input), ""))
    if not inputs_by_name:
        raise StreamerError(
            f"the input {plan.input.name} reads no Kafka topics, so it has no offsets"
        )
    with ExitStack() as clients:
        inputs = []
        for name, built in inputs_by_name:
            built.check_token()
            cluster = ClusterClient(built.source.connection)
            clients.callback(cluster.close)
            inputs.append(NamedInput(name, built.source, cluster))
        yield inputs


def _find_inputs(built: Any, name: str) -> Iterator[tuple[str, KafkaInput]]:
    """Find Kafka inputs in brokers, in the order and by the names that a checkpoint has."""
    if isinstance(built, KafkaInput):
        yield name, built
    elif isinstance(built, MergedSource):
        for inner, child in built.sources.items():
            yield from _find_inputs(child, f"{name}/{inner}")


def place_inputs(
    inputs: Sequence[NamedInput], positions: Sequence[Offsets]
) -> list[PositionedInput]:
    """Query brokers for the partitions of inputs.

    Args:
        inputs: the inputs.
        positions: of each, from the checkpoint.

    Raises:
        StreamerError: no broker answers.
    """
    placed = []
    for one, offsets in zip(inputs, positions, strict=True):
        known, selection = flatten_offsets(offsets), one.input.selection
        listed = one.cluster.list_topics(_TIMEOUT_S, selection.required_topics or None)
        topics = {name: listed[name] for name in selection.select_topics(listed)}
        places = list(places_of(topics, selection))
        firsts = one.cluster.begin_offsets(places, _TIMEOUT_S)
        lasts = one.cluster.end_offsets(places, _TIMEOUT_S, one.input.read_committed)
        described = one.cluster.describe_topics(topics, _TIMEOUT_S)
        placed.append(
            PositionedInput(
                one.name,
                one.input,
                one.cluster,
                {
                    place: PartitionState(known.get(place, EARLIEST), firsts[place], lasts[place])
                    for place in places
                    if place in firsts and place in lasts
                },
                {
                    name: topic.identity
                    for name, topic in described.items()
                    if not isinstance(topic, int)
                },
                {place: at for place, at in known.items() if place not in set(places)},
            )
        )
    return placed


def choose_offsets(
    one: PositionedInput, places: Sequence[PartitionRef], own: OffsetOptions, plan: Plan
) -> dict[PartitionRef, int]:
    """Return the offsets that the options choose for some partitions of an input.

    Raises:
        StreamerError: they choose none, or no broker answers.
    """
    states = one.states
    if own.to_earliest:
        return {place: states[place].first for place in places}
    if own.to_latest:
        return {place: states[place].last for place in places}
    if own.to_offset is not None:
        return dict.fromkeys(places, own.to_offset)
    if own.shift_by is not None:
        return shift_offsets(states, places, own.shift_by)
    if own.to_datetime is not None:
        start = read_start(own.to_datetime)
        if start is None or start.at != "time":
            raise StreamerError(
                f"--to-datetime {own.to_datetime}: expected a time such as 2026-11-26T08:00:00Z, "
                "or Unix milliseconds"
            )
        offsets = one.cluster.offsets_at(places, start.ms, _TIMEOUT_S)
        # Behind the newest message there is only the end.
        return {
            place: at if (at := offsets.get(place, -1)) >= 0 else states[place].last
            for place in places
        }
    if own.from_group is not None:
        committed = one.cluster.committed_offsets(own.from_group, places, _TIMEOUT_S)
        return copy_offsets(states, places, committed, f"the group {own.from_group!r}")
    assert own.from_checkpoint is not None
    return copy_offsets(
        *(states, places, _positions_of_checkpoint(own.from_checkpoint)),
        f"the checkpoint {own.from_checkpoint}",
    )


def _positions_of_checkpoint(named: str) -> dict[PartitionRef, int]:
    """Return the positions of another stream, over all its inputs; its checkpoint is taken.

    Raises:
        StreamerError: there is none, it is in use, or not on this machine.
    """
    from streamer.spark.checkpoint.checkpoint import Checkpoint
    from streamer.spark.checkpoint.kafka_positions import kafka_input_names, read_kafka_positions

    if not Path(named.removeprefix("file://")).is_dir():
        raise StreamerError(f"--from-checkpoint {named}: there is no such directory")
    checkpoint = Checkpoint(named, wait=0.0)
    try:
        positions = read_kafka_positions(checkpoint, kafka_input_names(checkpoint))
    finally:
        checkpoint.close()
    return {place: at for one in positions for place, at in flatten_offsets(one).items()}
