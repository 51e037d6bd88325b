"""Failed connections to brokers: the reason, in one line, with what to do about it.

The reasons come as exceptions of kafka-python and of `ssl`, by whose types they are told apart.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Sequence
from typing import Final, NamedTuple

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.errors import RIGHTS_MISSING, KafkaError
from streamer.core.errors import StreamerError

# "111 ECONNREFUSED", and "SaslAuthenticationFailedError: " before what the broker says.
_ERRNO: Final = re.compile(r"^(?:\w+: )?(\d+) E[A-Z]+$")
_CLASS_NAMES: Final = re.compile(r"^(?:\[Error -?\d+\] )?(?:\w+Error: )*")
_NO_KAFKA: Final = ("InvalidReceiveError", "CorrelationIdError", "KafkaProtocolError")
_SILENT: Final = ("KafkaTimeoutError", "RequestTimedOutError")
_END_OF_STREAM: Final = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


class ConnectionFailure(NamedTuple):
    """A connection that could not be made, or was lost.

    Attributes:
        at: when, `time.monotonic`.
        broker: host and port.
        error: kafka-python's exception.
        after_answers: whether a broker had answered by then.
    """

    at: float
    broker: str
    error: Exception
    after_answers: bool

    @property
    def tls_error(self) -> OSError | None:
        """Python's error of a TLS handshake that fails; None when it is something else."""
        inner = self.error.args[0] if self.error.args else None
        for cause in (self.error.__context__, inner):
            if isinstance(cause, ssl.SSLError):
                return cause
        cause = self.error.__context__
        return cause if isinstance(cause, OSError) else None

    @property
    def is_authentication(self) -> bool:
        """Whether the broker does not take who asks."""
        return getattr(self.error, "errno", None) in RIGHTS_MISSING

    @property
    def is_permanent(self) -> bool:
        """Whether a retry is of no use: the client is refused, not just unanswered."""
        tls = self.tls_error
        refused = isinstance(tls, ssl.SSLError) and not isinstance(tls, _END_OF_STREAM)
        return refused or self.is_authentication or isinstance(self.error, StreamerError)


def connection_error(
    connection: Connection, failures: Sequence[ConnectionFailure], answered: bool = False
) -> KafkaError:
    """Return why there is no answer.

    Args:
        connection: how the brokers were to be reached.
        failures: the connections that have failed meanwhile, the oldest first.
        answered: whether a broker has answered anything before.
    """
    for failure in reversed(failures):
        if isinstance(failure.error, StreamerError):
            return KafkaError(str(failure.error))
        if failure.is_authentication:
            return _authentication_error(connection, failure)
        if failure.tls_error is not None:
            return _handshake_error(failure, failure.tls_error)
    names = ", ".join(connection.brokers)
    last = failures[-1] if failures else None
    kind = "" if last is None else type(last.error).__name__
    where, why = "", "nothing has come back in time"
    if last is not None and kind not in _SILENT:
        why = failure_text(last.error)
        where = "" if last.broker in connection.brokers else f"{last.broker}: "
        if not answered and "socket disconnected" in why:
            return _wrong_protocol_error(connection, "it ends the connection")
        if not answered and kind in _NO_KAFKA:
            return _wrong_protocol_error(connection, "what comes back is not of Kafka's protocol")
    elif not answered:
        return _wrong_protocol_error(connection, why)
    return KafkaError(
        f"no broker answers at {names}: {where}{why}; expected one of them to take connections, "
        "check that Kafka runs and that the addresses are right"
    )


def throttled_error(connection: Connection) -> KafkaError:
    """Return that brokers hold the client back for longer than there is time."""
    return KafkaError(
        f"the brokers at {', '.join(connection.brokers)} hold the client "
        f"{connection.client_id!r} back by a quota, for longer than a question may take; raise its "
        "request_percentage, or set request_timeout_overhead to more"
    )


def failure_text(error: BaseException) -> str:
    """Return what an exception of kafka-python says, without the names of its classes."""
    text = _CLASS_NAMES.sub("", str(error)).removeprefix("KafkaConnectionError: ")
    if match := _ERRNO.match(text):
        return os.strerror(int(match[1]))
    return " ".join(text.split()).rstrip(". :") or type(error).__name__


def _wrong_protocol_error(connection: Connection, why: str) -> KafkaError:
    return KafkaError(
        f"no broker at {', '.join(connection.brokers)} answers in {connection.protocol}, which "
        f"the config says: {why}; check that Kafka runs, and whether the listener expects TLS "
        "(tls) or a user (sasl)"
    )


def _authentication_error(connection: Connection, failure: ConnectionFailure) -> KafkaError:
    sasl = connection.sasl
    who = f"{sasl.mechanism} of user {sasl.user!r}" if sasl and sasl.user else "SASL"
    if sasl and not sasl.user:
        who = sasl.mechanism
    return KafkaError(
        f"the broker {failure.broker} refuses {who}: {failure_text(failure.error)}; check "
        "mechanism, user and password in sasl",
        is_final=True,
    )


def _handshake_error(failure: ConnectionFailure, error: OSError) -> KafkaError:
    why, to_do = error.strerror or str(error), "check the field tls"
    if isinstance(error, ssl.SSLCertVerificationError):
        why = f"certificate verify failed: {error.verify_message.rstrip('.')}"
        to_do = "set tls.root_cas_file to the authority that signed the broker's certificate"
        if error.verify_code in (_HOSTNAME_MISMATCH, _ADDRESS_MISMATCH):
            to_do = "use a name that the broker's certificate has as its address"
    elif isinstance(error, ssl.SSLError) and not isinstance(error, _END_OF_STREAM):
        why = (error.reason or "refused").lower().replace("_", " ")
        if "wrong version" in why or "record layer" in why or "http request" in why:
            to_do = "the listener may be without TLS: leave tls out, or use the address of another"
        elif "certificate" in why:
            to_do = "the broker expects a certificate of the client that it knows: tls.client_certs"
    else:
        why = "the broker ends the connection"
        to_do = "the listener may be without TLS: leave tls out, or use the address of another"
    return KafkaError(
        f"the TLS handshake with {failure.broker} fails: {why}; {to_do}",
        is_final=failure.is_permanent or not failure.after_answers,
    )


# OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH.
_HOSTNAME_MISMATCH: Final = 62
_ADDRESS_MISMATCH: Final = 64
