"""A transaction that sends nothing and is taken back, to see whether a stream's own will be let in.

Kafka tells of a client's rights to a topic, and of those to groups and transactional ids only when
they are used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from streamer.errors import StreamerError
from streamer.kafka.errors import KafkaError
from streamer.kafka.producing import made
from streamer.kafka.refusals import REFUSED, refusal

_LEAST: Final = 0.5
_UNKNOWN_TOPIC: Final = 3

Settings = Callable[[], Mapping[str, Any]]


def rehearse(
    producing: Settings, connection: Settings, stream: str, topic: str, who: str, patience: float
) -> None:
    """Go through a transaction under an id of its own, which begins as those of the stream.

    Args:
        producing: returns librdkafka's settings of a producer with transactions.
        connection: the same of a connection alone.
        stream: names the checkpoint; empty where none is known.
        topic: what the stream writes, which may not be there yet.
        who: names the user in what is said; may be empty.
        patience: seconds.

    Raises:
        KafkaError: it is refused, which is final; or there was no answer in time.
    """
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    prefix = f"streamer-{stream}" if stream else "streamer-"
    name = f"{prefix.removesuffix('-')}-preflight"
    until = time.monotonic() + patience
    heard: list[Any] = []

    def left() -> float:
        return max(until - time.monotonic(), _LEAST)

    try:
        producer = made({**producing(), "transactional.id": name, "error_cb": heard.append})
        group = Consumer({**connection(), "group.id": name, "error_cb": heard.append})
    except StreamerError as error:
        raise KafkaError(str(error), final=True) from None
    try:
        producer.init_transactions(left())
        producer.begin_transaction()
        place = [TopicPartition(topic, 0, 0)]
        producer.send_offsets_to_transaction(place, group.consumer_group_metadata(), left())
        producer.abort_transaction(left())
    except KafkaException as error:
        found = error.args[0]
        with suppress(KafkaException):
            producer.abort_transaction(_LEAST)
        refused = next((one for one in (found, *heard) if one.code() in REFUSED), found)
        if refused.code() == _UNKNOWN_TOPIC:
            return
        raise refusal(refused, prefix, topic, who) from None
    finally:
        group.close()
