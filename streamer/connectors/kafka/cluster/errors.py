"""Errors of brokers, records and transactions: their numbers, and what to do about them.

Positive numbers are Kafka's, negative ones librdkafka's, which sends. Why there is no connection
for a question is said in `connection_errors`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from streamer.core.errors import StreamerError

ALL_DOWN: Final = -187
TIMED_OUT: Final = -185
UNKNOWN_PARTITION: Final = -190
UNKNOWN_TOPIC: Final = 3
BAD_TOPIC: Final = 17
TOPIC_REFUSED: Final = 29
GROUP_REFUSED: Final = 30
UNKNOWN_MEMBER: Final = 25
REBALANCE: Final = 27
ILLEGAL_GENERATION: Final = 22
NO_LEADER: Final = 5
NOT_LEADER: Final = (6, 9, 56, 74, 75, 76)
"""Not the leader, no replica, its disk has failed, and an epoch of leaders that is over."""
NOT_CONTROLLER: Final = 41
# Who keeps the groups is still being found: the cluster is new, or its brokers have changed.
COORDINATOR_MOVES: Final = (14, 15, 16)
"""Loading, not available, not the coordinator: in a moment it will be."""
RIGHTS_MISSING: Final = (TOPIC_REFUSED, GROUP_REFUSED, 31, 33, 34, 53, 58)
"""Topic, group and cluster refused; SASL's mechanism or state; transactional id; SASL itself."""
GROUP_IN_USE: Final = (UNKNOWN_MEMBER, REBALANCE, ILLEGAL_GENERATION)
TOO_LARGE: Final = (10, 18)
"""Of a record, and of those that go with it."""
INVALID_RECORD: Final = (BAD_TOPIC, 32, 87, -186)
"""The topic's name, the time, the record, an argument."""
TOPIC_EXISTS: Final = 36
_TIMEOUT_TOO_LONG: Final = 50
_ID_REFUSED: Final = 53
TRANSACTION_REFUSED: Final = (TOPIC_REFUSED, GROUP_REFUSED, _TIMEOUT_TOO_LONG, _ID_REFUSED)
"""Errors of a transaction that stay until somebody changes something."""
RETRIABLE_TRANSACTION: Final = frozenset(
    {7, 8, *COORDINATOR_MOVES, 51, 88, TIMED_OUT, ALL_DOWN, -195, -166, -180}
)
"""Errors that pass, where librdkafka does not say so by itself: timeouts, brokers that are away,
coordinators that move, transactions that still end."""

# "sasl_ssl://localhost:9093/bootstrap: " and "(after 0ms in state CONNECT)".
_BROKER_PREFIX: Final = re.compile(r"^(?:\[thrd:[^\]]*\]: )?(?:\w+://)?([^/\s]+:\d+)/\w+: ")
_NOISE: Final = (
    _BROKER_PREFIX,
    re.compile(r" \(after \d+ms in state .*\)$"),
    re.compile(r"error:[0-9A-F]{8}:SSL routines:[^:]*:"),
    re.compile(r"(?<=certificate verify failed): .*"),
    re.compile(r": broker's supported mechanisms:.*"),
    re.compile(r"Failed to get metadata: "),
)
_CONNECT: Final = re.compile(r"Connect to ipv\d#(\S+) failed: ")

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
    UNKNOWN_PARTITION: _PARTITION_REMEDY,
    -188: _NO_TOPIC_REMEDY,
    UNKNOWN_TOPIC: _NO_TOPIC_REMEDY,
    10: _SIZE_REMEDY,
    BAD_TOPIC: "expected a name of letters, digits, dots, _ and -",
    18: _SIZE_REMEDY,
    19: _REPLICAS_REMEDY,
    20: _REPLICAS_REMEDY,
    TOPIC_REFUSED: "grant WRITE on the topic",
    32: "correct the record's timestamp, or the topic's message.timestamp.before.max.ms and "
    "message.timestamp.after.max.ms",
    87: "the topic refuses such records; one that is compacted takes none without a key",
}
# What a transaction needs, for the names that are put in.
_TRANSACTION_REMEDIES: Final[Mapping[int, str]] = {
    TOPIC_REFUSED: "grant WRITE and READ on the topic {topic!r}, with which the micro-batch's "
    "number is kept",
    GROUP_REFUSED: "grant READ on groups that begin with {prefix}",
    _ID_REFUSED: "grant WRITE on transactional ids that begin with {prefix}",
    _TIMEOUT_TOO_LONG: "set transaction_timeout to the brokers' transaction.max.timeout.ms at most",
}


class KafkaError(StreamerError):
    """A broker is away, or refuses.

    Attributes:
        is_final: asking again is of no use before something has been changed.
    """

    def __init__(self, text: str, is_final: bool = False) -> None:
        """Take the text for the user."""
        self.is_final = is_final
        self.transient = not is_final
        super().__init__(text)


class RefusedError(Exception):
    """A broker refuses a question.

    Attributes:
        code: Kafka's number of the error.
    """

    def __init__(self, code: int, text: str) -> None:
        """Take the number, and what the broker says."""
        self.code = code
        super().__init__(text)


class NoLeaderError(Exception):
    """A partition has had no leader for as long as there was time.

    Attributes:
        place: its topic and number.
    """

    def __init__(self, place: tuple[str, int]) -> None:
        """Take the partition."""
        self.place = place
        super().__init__(place)


class OutOfTimeError(Exception):
    """Nobody has answered within the time, or waiting is of no use."""


def shorten_error(text: str) -> str:
    """Return what librdkafka says, without what is of use to its makers only."""
    text = _CONNECT.sub(r"\1: ", text)
    for pattern in _NOISE:
        text = pattern.sub("", text)
    return " ".join(text.split()).rstrip(". :")


def error_text(error: Any) -> str:
    """Return what one of librdkafka's errors says, without the words that it says with each."""
    text = error if isinstance(error, str) else str(error.str())
    for words in _ERROR_PREFIXES:
        text = text.removeprefix(words)
    return shorten_error(text)


def record_error_text(topic: str, partition: int, error: Any) -> str:
    """Return why a record was not taken.

    Args:
        topic: the record's.
        partition: the one that was chosen for it; -1 for none.
        error: librdkafka's error, or a text.
    """
    where = f"the topic {topic!r}" if partition < 0 else f"partition {partition} of {topic!r}"
    text = f"{where} does not take a record: {error_text(error)}"
    to_do = None if isinstance(error, str) else _REMEDIES.get(error.code())
    return f"{text}; {to_do}" if to_do else text


def transaction_error(error: Any, prefix: str, topic: str, user_text: str = "") -> KafkaError:
    """Return the text for one of librdkafka's errors in a transaction.

    Args:
        error: the error.
        prefix: what the names of the stream's transactional ids and groups begin with.
        topic: what the stream writes.
        user_text: names the user; may be empty.
    """
    text = f"a transaction is refused{user_text}: {error_text(error)}"
    remedy = _TRANSACTION_REMEDIES.get(error.code())
    if remedy is None:
        return KafkaError(text)
    return KafkaError(f"{text}; {remedy.format(topic=topic, prefix=prefix)}", is_final=True)
