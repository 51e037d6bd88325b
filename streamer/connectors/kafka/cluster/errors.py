"""Errors of brokers, in words for the user.

librdkafka answers a question with "Broker transport failure" or "timed out"; why, it says by the
way, to who listens. Both are put together here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.core.errors import StreamerError

# librdkafka's own numbers, and Kafka's.
ALL_DOWN: Final = -187
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
    """Return whether asking again is of no use: who asks is refused, not just not heard."""
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
