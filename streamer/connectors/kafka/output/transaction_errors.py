"""Errors of refused transactions, in words for the user: rights and settings that are missing."""

from __future__ import annotations

from typing import Any, Final

from streamer.connectors.kafka.cluster.errors import KafkaError
from streamer.connectors.kafka.output.record_errors import error_text

REFUSED_ERRORS: Final = (29, 30, 50, 53)
"""Kafka's numbers of errors that stay until somebody changes something: rights to a topic, to a
group, a timeout that is too long, rights to a transactional id."""


def refusal_error(error: Any, prefix: str, topic: str, user_text: str = "") -> KafkaError:
    """Return what is said of one of librdkafka's errors.

    Args:
        error: the error.
        prefix: what the names of the stream's transactional ids and groups begin with.
        topic: what the stream writes.
        user_text: names the user; may be empty.
    """
    what = {
        29: f"WRITE and READ on the topic {topic!r}, with which the micro-batch's number is kept",
        30: f"READ on groups that begin with {prefix}",
        53: f"WRITE on transactional ids that begin with {prefix}",
    }
    text = f"a transaction is refused{user_text}: {error_text(error)}"
    code = error.code()
    if code in what:
        return KafkaError(f"{text}; grant {what[code]}", is_final=True)
    if code == 50:
        do = "set transaction_timeout to the brokers' transaction.max.timeout.ms at most"
        return KafkaError(f"{text}; {do}", is_final=True)
    return KafkaError(text)
