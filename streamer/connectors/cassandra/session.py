"""Sessions with a cluster, by the driver of Cassandra; threads share one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from streamer.connectors.cassandra.client_fields import (
    ADDRESSES,
    BACKOFF,
    ENABLED,
    EXPONENTIAL_RECONNECTION,
    INITIAL_INTERVAL,
    LOCAL_DC,
    LOCAL_RACK,
    LOGIN,
    MAX_INTERVAL,
    MAX_RETRIES,
    NODE_CHOICE,
    ONLY_GIVEN_NODES,
    PASSWORD,
    RECONNECT_INTERVAL,
    TIMEOUT,
    USERNAME,
    split_addresses,
)
from streamer.connectors.tls import TLS, tls_context
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.sdk.spec import ParsedFields

T = TypeVar("T")

_CONNECT_TIMEOUT_S: Final = 5.0
_CHECK_QUERY: Final = "SELECT release_version FROM system.local"
_MAX_ERROR_CHARS: Final = 500
_ACCESS_REFUSED: Final = "the server refuses the user or the password"


class CassandraError(StreamerError):
    """There is no connection, or the server refuses.

    Attributes:
        is_refused: whether the request itself is to blame; else the same may succeed later.
        is_connection_lost: whether no node answers.
    """

    def __init__(self, text: str, *, is_refused: bool, is_connection_lost: bool) -> None:
        super().__init__(text)
        self.is_refused = is_refused
        self.is_connection_lost = is_connection_lost


@contextmanager
def cassandra_errors() -> Iterator[None]:
    """Turn the errors of the driver into `CassandraError`s.

    Raises:
        CassandraError: for each of them.
    """
    from cassandra import DriverException, InvalidRequest, UnresolvableContactPoints
    from cassandra.cluster import NoHostAvailable
    from cassandra.protocol import ErrorMessage

    try:
        yield
    except UnresolvableContactPoints:
        text = "no name of the addresses is known here; check them, and the name server"
        raise CassandraError(text, is_refused=False, is_connection_lost=True) from None
    except (DriverException, ErrorMessage, NoHostAvailable, OSError) as e:
        lost = isinstance(e, NoHostAvailable | OSError)
        raise CassandraError(
            describe_error(e),
            is_refused=isinstance(e, InvalidRequest) or _is_syntax_error(e),
            is_connection_lost=lost,
        ) from None


def _is_syntax_error(error: BaseException) -> bool:
    from cassandra.protocol import SyntaxException

    return isinstance(error, SyntaxException)


def describe_error(error: BaseException) -> str:
    """Return the words of an error of the driver."""
    from cassandra import AuthenticationFailed

    inner = getattr(error, "errors", None)
    if isinstance(inner, dict) and inner:
        return describe_error(next(iter(inner.values())))
    if isinstance(error, AuthenticationFailed):
        return _ACCESS_REFUSED
    text = getattr(error, "message", None) or str(error)
    return " ".join(str(text).split())[:_MAX_ERROR_CHARS] or type(error).__name__


class CassandraSession:
    """A session, which is made at its first use."""

    def __init__(self, parsed: ParsedFields, consistency: str = "") -> None:
        """Take the fields of the component, and the name of the consistency level."""
        self._parsed = parsed
        self._consistency = consistency
        self._lock = threading.Lock()
        self._cluster: Any = None
        self._session: Any = None
        self._prepared: dict[str, Any] = {}

    def open(self) -> Any:
        """Return the driver's session.

        Raises:
            CassandraError: no node answers, or the login is refused.
            StreamerError: a certificate cannot be read.
        """
        with self._lock:
            if self._session is None:
                with cassandra_errors():
                    cluster = self._make_cluster()
                try:
                    with cassandra_errors():
                        self._session = cluster.connect()
                except BaseException:
                    cluster.shutdown()
                    raise
                self._cluster = cluster
            return self._session

    def _make_cluster(self) -> Any:
        import logging

        from cassandra.auth import PlainTextAuthProvider
        from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
        from cassandra.policies import FallthroughRetryPolicy
        from cassandra.query import dict_factory

        # Its errors are raised too, and logged by who gets them.
        logging.getLogger("cassandra").setLevel(logging.CRITICAL)
        parsed = self._parsed
        profile = ExecutionProfile(
            load_balancing_policy=self._make_node_policy(),
            retry_policy=FallthroughRetryPolicy(),
            request_timeout=parsed[TIMEOUT] / SECOND,
            row_factory=dict_factory,
        )
        if self._consistency:
            from cassandra import ConsistencyLevel

            profile.consistency_level = ConsistencyLevel.name_to_value[self._consistency]
        login = parsed[LOGIN]
        return Cluster(
            split_addresses(parsed[ADDRESSES]),
            auth_provider=(
                PlainTextAuthProvider(login[USERNAME], login[PASSWORD]) if login[ENABLED] else None
            ),
            ssl_context=tls_context(parsed[TLS]) if parsed[TLS][ENABLED] else None,
            reconnection_policy=self._make_reconnection_policy(),
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            connect_timeout=max(_CONNECT_TIMEOUT_S, parsed[TIMEOUT] / SECOND),
            control_connection_timeout=_CONNECT_TIMEOUT_S,
            application_name="streamer",
            monitor_reporting_enabled=False,
        )

    def _make_node_policy(self) -> Any:
        from cassandra import policies

        parsed = self._parsed
        dc, rack = parsed[NODE_CHOICE][LOCAL_DC], parsed[NODE_CHOICE][LOCAL_RACK]
        if parsed[ONLY_GIVEN_NODES]:
            hosts = [host for host, _ in split_addresses(parsed[ADDRESSES])]
            return policies.WhiteListRoundRobinPolicy(hosts)
        if rack:
            return policies.TokenAwarePolicy(policies.RackAwareRoundRobinPolicy(dc, rack))
        if dc:
            return policies.TokenAwarePolicy(policies.DCAwareRoundRobinPolicy(dc))
        return policies.TokenAwarePolicy(policies.RoundRobinPolicy())

    def _make_reconnection_policy(self) -> Any:
        from cassandra import policies

        growing = self._parsed[EXPONENTIAL_RECONNECTION]
        if growing is None:
            delay = self._parsed[RECONNECT_INTERVAL] / SECOND
            return policies.ConstantReconnectionPolicy(delay, max_attempts=None)
        first, longest = growing[INITIAL_INTERVAL] / SECOND, growing[MAX_INTERVAL] / SECOND
        return policies.ExponentialReconnectionPolicy(
            first, max(first, longest), growing[MAX_RETRIES]
        )

    def check(self) -> None:
        """Check that a node answers now.

        Raises:
            CassandraError: none does, or the login is refused.
        """
        session = self.open()
        with cassandra_errors():
            session.execute(_CHECK_QUERY)

    def prepare(self, query: str) -> Any:
        """Return a prepared statement; it is prepared once.

        Raises:
            CassandraError: the server refuses the query, or is away.
        """
        statement = self._prepared.get(query)
        if statement is None:
            session = self.open()
            with cassandra_errors():
                statement = session.prepare(query)
            self._prepared[query] = statement
        return statement

    def execute(self, statement: Any, *, paging_state: bytes | None = None) -> Any:
        """Return the result of a statement, which is sent again where replicas were away.

        Raises:
            CassandraError: it has failed.
        """
        session = self.open()
        with cassandra_errors():
            return self._retry(lambda: session.execute(statement, paging_state=paging_state))

    def _retry(self, work: Callable[[], T]) -> T:
        from cassandra import ReadTimeout, Unavailable, WriteTimeout

        pause = self._parsed[BACKOFF][INITIAL_INTERVAL]
        for _ in range(self._parsed[MAX_RETRIES]):
            try:
                return work()
            except (Unavailable, WriteTimeout, ReadTimeout):
                time.sleep(min(pause, self._parsed[BACKOFF][MAX_INTERVAL]) / SECOND)
                pause *= 2
        return work()

    def close(self) -> None:
        """End the session; the next use makes another one."""
        with self._lock:
            cluster, self._cluster, self._session = self._cluster, None, None
            self._prepared.clear()
        if cluster is not None:
            cluster.shutdown()

    def probe(self) -> str:
        """Return that a node answers, and end the session.

        Raises:
            CassandraError: none does, or the login is refused.
        """
        try:
            self.open()
        finally:
            self.close()
        return "the cluster answers"
