"""A transaction that sends nothing and is taken back, to see whether a stream's own will be let in.

Kafka tells of a client's rights to a topic, and of those to groups and transactional ids only when
they are used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from streamer.connectors.kafka.cluster.errors import KafkaError
from streamer.connectors.kafka.output.producer import make_producer
from streamer.connectors.kafka.output.transaction_errors import REFUSED_ERRORS, refusal_error
from streamer.core.errors import StreamerError

_MIN_TIMEOUT_S: Final = 0.5
_UNKNOWN_TOPIC: Final = 3

Settings = Callable[[], Mapping[str, Any]]


def preflight_transaction(
    producing: Settings,
    connection: Settings,
    stream: str,
    topic: str,
    user_text: str,
    timeout_s: float,
) -> None:
    """Go through a transaction under an id of its own, which begins as those of the stream.

    Args:
        producing: returns librdkafka's settings of a producer with transactions.
        connection: the same of a connection alone.
        stream: names the checkpoint; empty where none is known.
        topic: what the stream writes, which may not be there yet.
        user_text: names the user in what is said; may be empty.
        timeout_s: seconds.

    Raises:
        KafkaError: it is refused, which is final; or there was no answer in time.
    """
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    prefix = f"streamer-{stream}" if stream else "streamer-"
    name = f"{prefix.removesuffix('-')}-preflight"
    until = time.monotonic() + timeout_s
    errors: list[Any] = []

    def remaining_s() -> float:
        return max(until - time.monotonic(), _MIN_TIMEOUT_S)

    try:
        producer = make_producer(
            {**producing(), "transactional.id": name, "error_cb": errors.append}
        )
        group = Consumer({**connection(), "group.id": name, "error_cb": errors.append})
    except StreamerError as error:
        raise KafkaError(str(error), is_final=True) from None
    try:
        producer.init_transactions(remaining_s())
        producer.begin_transaction()
        place = [TopicPartition(topic, 0, 0)]
        producer.send_offsets_to_transaction(place, group.consumer_group_metadata(), remaining_s())
        producer.abort_transaction(remaining_s())
    except KafkaException as error:
        cause = error.args[0]
        with suppress(KafkaException):
            producer.abort_transaction(_MIN_TIMEOUT_S)
        refused = next((one for one in (cause, *errors) if one.code() in REFUSED_ERRORS), cause)
        if refused.code() == _UNKNOWN_TOPIC:
            return
        raise refusal_error(refused, prefix, topic, user_text) from None
    finally:
        group.close()
