"""Why a record was not taken, in words for the user: which topic, why, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamer.kafka.errors import short
from streamer.kafka.record import Record

_WORDS: Final = ("Unable to produce message: ", "Broker: ", "Local: ")

_SIZE: Final = (
    "raise the largest size in the output (max_message_bytes, max_msg_bytes of kafka) and the "
    "topic's max.message.bytes"
)
_PARTITION: Final = "correct the field partition, or give the topic more partitions"
_NO_TOPIC: Final = (
    "create it; brokers do so by themselves if their auto.create.topics.enable lets them"
)
_REPLICAS: Final = "check that the brokers run that keep the topic's replicas"
# By the numbers of librdkafka's errors, which are negative, and Kafka's.
_TO_DO: Final[Mapping[int, str]] = {
    -192: "check that the brokers run, or give records more time (record_delivery_timeout; timeout "
    "of kafka)",
    -190: _PARTITION,
    -188: _NO_TOPIC,
    3: _NO_TOPIC,
    10: _SIZE,
    17: "expected a name of letters, digits, dots, _ and -",
    18: _SIZE,
    19: _REPLICAS,
    20: _REPLICAS,
    29: "grant WRITE on the topic",
    32: "correct the record's timestamp, or the topic's message.timestamp.before.max.ms and "
    "message.timestamp.after.max.ms",
    87: "the topic refuses such records; one that is compacted takes none without a key",
}


def told(error: Any) -> str:
    """Return what one of librdkafka's errors says, without the words that it says with each."""
    text = error if isinstance(error, str) else str(error.str())
    for words in _WORDS:
        text = text.removeprefix(words)
    return short(text)


def untaken(record: Record, error: Any) -> str:
    """Return why a record was not taken.

    Args:
        record: the record.
        error: librdkafka's error, or a text.
    """
    topic, _, _, partition, *_ = record
    where = f"the topic {topic!r}" if partition < 0 else f"partition {partition} of {topic!r}"
    text = f"{where} does not take a record: {told(error)}"
    to_do = None if isinstance(error, str) else _TO_DO.get(error.code())
    return f"{text}; {to_do}" if to_do else text
