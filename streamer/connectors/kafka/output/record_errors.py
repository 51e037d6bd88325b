"""Errors of refused records, in words for the user: topic, reason and remedy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamer.connectors.kafka.cluster.errors import shorten_error
from streamer.connectors.kafka.output.record import Record

_ERROR_PREFIXES: Final = ("Unable to produce message: ", "Broker: ", "Local: ")

_SIZE_REMEDY: Final = (
    "raise the largest size in the output (max_message_bytes, max_msg_bytes of kafka) and the "
    "topic's max.message.bytes"
)
_PARTITION_REMEDY: Final = "correct the field partition, or give the topic more partitions"
_NO_TOPIC_REMEDY: Final = (
    "create it; brokers do so by themselves if their auto.create.topics.enable lets them"
)
_REPLICAS_REMEDY: Final = "check that the brokers run that keep the topic's replicas"
# By the numbers of librdkafka's errors, which are negative, and Kafka's.
_REMEDIES: Final[Mapping[int, str]] = {
    -192: "check that the brokers run, or give records more time (record_delivery_timeout; timeout "
    "of kafka)",
    -190: _PARTITION_REMEDY,
    -188: _NO_TOPIC_REMEDY,
    3: _NO_TOPIC_REMEDY,
    10: _SIZE_REMEDY,
    17: "expected a name of letters, digits, dots, _ and -",
    18: _SIZE_REMEDY,
    19: _REPLICAS_REMEDY,
    20: _REPLICAS_REMEDY,
    29: "grant WRITE on the topic",
    32: "correct the record's timestamp, or the topic's message.timestamp.before.max.ms and "
    "message.timestamp.after.max.ms",
    87: "the topic refuses such records; one that is compacted takes none without a key",
}


def error_text(error: Any) -> str:
    """Return what one of librdkafka's errors says, without the words that it says with each."""
    text = error if isinstance(error, str) else str(error.str())
    for words in _ERROR_PREFIXES:
        text = text.removeprefix(words)
    return shorten_error(text)


def explain_record_error(record: Record, error: Any) -> str:
    """Return why a record was not taken.

    Args:
        record: the record.
        error: librdkafka's error, or a text.
    """
    topic, _, _, partition, *_ = record
    where = f"the topic {topic!r}" if partition < 0 else f"partition {partition} of {topic!r}"
    text = f"{where} does not take a record: {error_text(error)}"
    to_do = None if isinstance(error, str) else _REMEDIES.get(error.code())
    return f"{text}; {to_do}" if to_do else text
