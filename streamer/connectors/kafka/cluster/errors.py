"""Errors of brokers, records and transactions: their numbers, and what to do about them.

librdkafka answers a question with "Broker transport failure" or "timed out"; why, it says by the
way, to who listens. Both are put together here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.core.errors import StreamerError

# librdkafka's own numbers, and Kafka's.
ALL_DOWN: Final = -187
TIMED_OUT: Final = -185
SSL: Final = -181
AUTHENTICATION: Final = -169
UNKNOWN_PARTITION: Final = -190
NO_LEADERS: Final = -156
"""None of the partitions that were asked for has a leader, be it that their topics are gone."""
UNKNOWN_TOPIC: Final = 3
BAD_TOPIC: Final = 17
TOPIC_REFUSED: Final = 29
GROUP_REFUSED: Final = 30
UNKNOWN_MEMBER: Final = 25
REBALANCE: Final = 27
ILLEGAL_GENERATION: Final = 22
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
_HANDSHAKE: Final = re.compile(r"SSL routines|SSL handshake failed|SSL alert")
_REFUSED_HANDSHAKE: Final = re.compile(r"SSL routines|SSL alert")
# What is said when a listener hangs up on who does not speak its protocol.
_HANG_UP: Final = re.compile(r"transport failure|Broken pipe|Disconnected|security\.protocol|SSL\?")

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


def parse_error(error: Any) -> tuple[int, str]:
    """Return number and text of an error of librdkafka's, or of the exception around it."""
    inner = error.args[0] if isinstance(error, BaseException) and error.args else error
    try:
        return inner.code(), inner.str()
    except AttributeError:
        return 0, str(error)


def no_broker_error(
    connection: Connection, errors: Sequence[tuple[int, str]], answer: str
) -> KafkaError:
    """Return why there is no answer.

    Args:
        connection: how the brokers were to be reached.
        errors: numbers and texts of what librdkafka said meanwhile, the oldest first.
        answer: what the question itself came to.
    """
    for code, text in reversed(errors):
        if code == AUTHENTICATION:
            return _authentication_error(connection, text)
        if code == SSL or _HANDSHAKE.search(text):
            return _handshake_error(connection, text)
    names = ", ".join(connection.brokers)
    texts = [shorten_error(text) for code, text in errors if code != ALL_DOWN]
    # librdkafka calls it a failure of the transport too when nothing has come back.
    silent = not texts and _HANG_UP.search(answer) is not None
    why = "nothing has come back in time" if silent else (texts or [shorten_error(answer)])[-1]
    why = why.removeprefix(f"{names}: ")
    if silent or _HANG_UP.search(why):
        return KafkaError(
            f"no broker at {names} answers in {connection.protocol}, which the config says: {why}; "
            "check that Kafka runs, and whether the listener expects TLS (tls) or a user (sasl)"
        )
    return KafkaError(
        f"no broker answers at {names}: {why}; expected one of them to take connections, check "
        "that Kafka runs and that the addresses are right"
    )


def is_permanent(errors: Sequence[tuple[int, str]]) -> bool:
    """Return whether a retry is of no use: the client is refused, not just unanswered."""
    return any(
        code in (SSL, AUTHENTICATION) or _REFUSED_HANDSHAKE.search(text) for code, text in errors
    )


def _authentication_error(connection: Connection, text: str) -> KafkaError:
    sasl = connection.sasl
    who = f"{sasl.mechanism} of user {sasl.user!r}" if sasl and sasl.user else "SASL"
    if sasl and not sasl.user:
        who = sasl.mechanism
    return KafkaError(
        f"the broker {_broker_in(text, connection)} refuses {who}: {shorten_error(text)}; check "
        "mechanism, user and password in sasl",
        is_final=True,
    )


def _handshake_error(connection: Connection, text: str) -> KafkaError:
    why = shorten_error(text)
    do = "check the field tls"
    if "certificate verify failed" in why or "self-signed" in why or "self signed" in why:
        do = "set tls.root_cas_file to the authority that signed the broker's certificate"
    elif "wrong version number" in why or "PLAINTEXT" in why:
        do = "the listener may be without TLS: leave tls out, or use the address of another"
    elif "bad certificate" in why or "certificate required" in why:
        do = "the broker expects a certificate of the client that it knows: tls.client_certs"
    return KafkaError(
        f"the TLS handshake with {_broker_in(text, connection)} fails: {why}; {do}", is_final=True
    )


def _broker_in(text: str, connection: Connection) -> str:
    match = _BROKER_PREFIX.match(text)
    return match[1] if match else ", ".join(connection.brokers)


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
