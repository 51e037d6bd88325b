"""Put together an output of what a config asks for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamer.durations import MILLISECOND
from streamer.kafka.connection import Connection
from streamer.kafka.creating import Creating
from streamer.kafka.dedupe import Deduping
from streamer.kafka.guarantees import (
    DEDUPE_HEADERS,
    TOPIC,
    TRANSACTION_TIMEOUT,
    TRANSACTIONAL,
)
from streamer.kafka.output import KafkaOutput, Retries, Worker
from streamer.kafka.partitioning import Partitions, chooser, partitioner
from streamer.kafka.producing import Producing
from streamer.kafka.record import RecordMaker
from streamer.kafka.sasl import token_source
from streamer.kafka.transactions import Transactions
from streamer.message import Execution
from streamer.pipeline.batching import output_policy
from streamer.sending import MAX_IN_FLIGHT
from streamer.spec import BuildContext, Parsed

_AGE = 300.0
_NEVER = 2**31 - 1


@dataclass(frozen=True)
class Asked:
    """What a config asks for beside the connection and what a record is made of.

    Attributes:
        settings: librdkafka's settings of a producer.
        partitioner: the name of the partitioner, as the config has it.
        creates: whether brokers may create topics.
        retries: how failures are sent again; None to leave that to others.
        new_topics: partitions and replication of topics that are created; None to create none.
    """

    settings: Mapping[str, Any]
    partitioner: str
    creates: bool = True
    retries: Retries | None = None
    new_topics: tuple[int, int] | None = None


def make_output(
    parsed: Parsed, context: BuildContext, connection: Connection, maker: RecordMaker, asked: Asked
) -> KafkaOutput:
    """Make an output; its clients are made when something is sent."""
    if parsed[DEDUPE_HEADERS]:
        maker = replace(maker, deduping=Deduping())
    source = token_source(parsed, context)
    token = None if source is None else lambda: source(Execution(time.time_ns))
    worker = context.lasting("kafka", lambda: _worker(parsed, connection, asked, token))
    return KafkaOutput(
        worker,
        maker,
        parsed[MAX_IN_FLIGHT],
        output_policy(parsed, context),
        asked.retries,
        asked.creates,
    )


def _worker(
    parsed: Parsed, connection: Connection, asked: Asked, token: Callable[[], str] | None
) -> Worker:
    def connecting() -> dict[str, Any]:
        return connection.librdkafka(token)

    def settings() -> dict[str, Any]:
        return {
            **connecting(),
            **asked.settings,
            "partitioner": partitioner(asked.partitioner),
            "allow.auto.create.topics": asked.creates,
            # A topic that is not there is given up after this, and has not come by itself.
            "topic.metadata.propagation.max.ms": 10_000,
            "reconnect.backoff.max.ms": 1_000,
        }

    def in_transactions() -> dict[str, Any]:
        within = parsed[TRANSACTION_TIMEOUT] // MILLISECOND
        return {
            **settings(),
            "enable.idempotence": True,
            "acks": "all",
            "retries": _NEVER,
            "transaction.timeout.ms": within,
            # A record that is given up takes the whole transaction back.
            "message.timeout.ms": within,
            "max.in.flight.requests.per.connection": 5,
        }

    producing = Producing(settings)
    transactions = None
    if parsed[TRANSACTIONAL]:
        transactions = Transactions(in_transactions, connecting, parsed[TOPIC])
    age = connection.metadata_max_age
    partitions = Partitions(producing.producer, _AGE if age is None else age / 1e9)
    creating = None
    if asked.new_topics is not None:
        creating = Creating(connecting, *asked.new_topics)
    choosing = chooser(asked.partitioner, partitions.count)
    return Worker(connection, token, producing, transactions, choosing, creating)
