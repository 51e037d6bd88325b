"""Put together an output of what a config asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.output.dedupe import DedupeHeaders
from streamer.connectors.kafka.output.delivery_fields import (
    DEDUPE_HEADERS,
    TOPIC,
    TRANSACTION_TIMEOUT,
    TRANSACTIONAL,
)
from streamer.connectors.kafka.output.kafka_output import KafkaOutput, RetrySettings, WorkerClients
from streamer.connectors.kafka.output.partitioning import (
    PartitionCounter,
    librdkafka_partitioner,
    make_chooser,
)
from streamer.connectors.kafka.output.producer import WorkerProducer
from streamer.connectors.kafka.output.record import RecordMaker
from streamer.connectors.kafka.output.topic_creation import TopicCreator
from streamer.connectors.kafka.output.transactions import Transactions
from streamer.core.durations import MILLISECOND
from streamer.sdk.output.protocols import MAX_IN_FLIGHT
from streamer.sdk.processing.batching import output_policy
from streamer.sdk.spec import BuildContext, ParsedFields

_PARTITION_COUNT_AGE_S = 300.0
_RETRIES_WITHOUT_END = 2**31 - 1


@dataclass(frozen=True)
class OutputSettings:
    """Settings of an output beside the connection and the record.

    Attributes:
        settings: librdkafka's settings of a producer.
        partitioner: the name of the partitioner, as the config has it.
        creates_topics: whether brokers may create topics.
        retries: how failures are sent again; None to leave that to others.
        new_topics: partitions and replication of topics that are created; None to create none.
    """

    settings: Mapping[str, Any]
    partitioner: str
    creates_topics: bool = True
    retries: RetrySettings | None = None
    new_topics: tuple[int, int] | None = None


def make_output(
    parsed: ParsedFields,
    context: BuildContext,
    connection: Connection,
    maker: RecordMaker,
    settings: OutputSettings,
) -> KafkaOutput:
    """Make an output; its clients are made when something is sent."""
    if parsed[DEDUPE_HEADERS]:
        maker = replace(maker, dedupe_headers=DedupeHeaders())
    worker = context.worker_resource("kafka", lambda: _make_worker(parsed, connection, settings))
    return KafkaOutput(
        worker,
        maker,
        parsed[MAX_IN_FLIGHT],
        output_policy(parsed, context),
        settings.retries,
        settings.creates_topics,
    )


def _make_worker(
    parsed: ParsedFields,
    connection: Connection,
    output_settings: OutputSettings,
) -> WorkerClients:
    def connection_settings() -> dict[str, Any]:
        return connection.librdkafka_settings()

    def producer_settings() -> dict[str, Any]:
        return {
            **connection_settings(),
            **output_settings.settings,
            "partitioner": librdkafka_partitioner(output_settings.partitioner),
            "allow.auto.create.topics": output_settings.creates_topics,
            # A topic that is not there is given up after this, and has not come by itself.
            "topic.metadata.propagation.max.ms": 10_000,
            "reconnect.backoff.max.ms": 1_000,
        }

    def transactional_settings() -> dict[str, Any]:
        within = parsed[TRANSACTION_TIMEOUT] // MILLISECOND
        return {
            **producer_settings(),
            "enable.idempotence": True,
            "acks": "all",
            "retries": _RETRIES_WITHOUT_END,
            "transaction.timeout.ms": within,
            # A record that is given up takes the whole transaction back.
            "message.timeout.ms": within,
            "max.in.flight.requests.per.connection": 5,
        }

    producing = WorkerProducer(producer_settings)
    transactions = None
    if parsed[TRANSACTIONAL]:
        transactions = Transactions(transactional_settings, connection_settings, parsed[TOPIC])
    age = connection.metadata_max_age
    partitions = PartitionCounter(
        producing.get_producer, _PARTITION_COUNT_AGE_S if age is None else age / 1e9
    )
    creating = None
    if output_settings.new_topics is not None:
        creating = TopicCreator(ClusterClient(connection), *output_settings.new_topics)
    choosing = make_chooser(output_settings.partitioner, partitions.count)
    return WorkerClients(connection, producing, transactions, choosing, creating)
