"""Kafka inputs of a backfill: where they are begun, and the metadata that their workers make.

What a consumer group has committed is the live stream's, and does not count here. By a time, a
topic is begun at the first message of that time or later by the message's own timestamp. No message
is written before what it tells of has happened. So all events from that time on are read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.connectors.kafka.input.message_metadata import NeededMetadata
from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.connectors.kafka.input.start_offsets import (
    StartRule,
    choose_start_offsets,
    nest_offsets,
)
from streamer.core.durations import MILLISECOND
from streamer.engine.planner.kafka_inputs import list_range_sources, replace_range_sources
from streamer.plan import Plan
from streamer.plan.metadata_read import find_read_metadata
from streamer.sdk.input.replayable import ReplayableSource

_TIMEOUT_S: Final = 10.0


def prepare_kafka(plan: Plan, source: ReplayableSource, since: int | None) -> ReplayableSource:
    """Return an input whose Kafka inputs begin at a time, and make what a plan reads.

    Args:
        plan: the stream's plan.
        source: the opened input, whose Kafka inputs workers read.
        since: the time of the first messages, Unix ns; None for the beginning of the topics.

    Raises:
        StreamerError: no broker answers.
    """
    needed = NeededMetadata(find_read_metadata(plan))
    ours = [
        replace(
            one,
            needed=needed,
            is_split=plan.window is not None,
            start_offsets=_choose_start(one.input, since),
        )
        for one in list_range_sources(source)
    ]
    return replace_range_sources(source, ours)


def _choose_start(kafka: KafkaSource, since: int | None) -> Offsets:
    rule = kafka.start if kafka.start.at == "time" else StartRule("earliest")
    if since is not None:
        rule = StartRule("time", since // MILLISECOND)
    cluster = ClusterClient(kafka.connection)
    try:
        places = [*kafka.starting]
        offsets = choose_start_offsets(cluster, places, kafka.selection, rule, {}, _TIMEOUT_S)
    finally:
        cluster.close()
    return nest_offsets(offsets)
