"""A client that asks brokers questions by kafka-python, each with a limited time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.connection_errors import (
    connection_error,
    failure_text,
    throttled_error,
)
from streamer.connectors.kafka.cluster.errors import RIGHTS_MISSING, KafkaError, OutOfTimeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamer.connectors.kafka.cluster.broker_session import BrokerSession, Requests

T = TypeVar("T")
Question = Callable[["Requests"], Coroutine[Any, Any, T]]
"""A coroutine that sends requests; it runs in the thread of the session."""


class BrokerClient:
    """A client of the brokers of one cluster. Threads may share it, and it outlives a fork.

    It begins a new session after a question that was not answered in time: a connection that hangs
    does not come back by itself, and brokers may have moved.
    """

    def __init__(self, connection: Connection) -> None:
        """Take how brokers are reached; nothing is imported or connected before the first question.

        Args:
            connection: how they are reached.
        """
        self._connection = connection
        self._lock = threading.Lock()
        self._session: BrokerSession | None = None
        self._process = 0

    def query(
        self, question: Question[T], timeout_s: float, keep: Callable[[], bool] = lambda: False
    ) -> T:
        """Return the answer to a question.

        Args:
            question: the question.
            timeout_s: seconds.
            keep: returns whether to stay with the session when the time is over.

        Raises:
            KafkaError: there is no answer in time, with the reason; or it is refused.
        """
        import kafka.errors as kafka_errors

        began = time.monotonic()
        with self._borrowed_session() as session:
            try:
                return session.query(question, timeout_s)
            except OutOfTimeError:
                if session.is_throttled:
                    # Another session would be held back too, once it has asked.
                    raise throttled_error(self._connection) from None
                if not keep():
                    self._drop(session)
                raise self._connection_error(session, began) from None
            except kafka_errors.KafkaError as error:
                self._drop(session)
                if getattr(error, "errno", None) in RIGHTS_MISSING:
                    raise self._connection_error(session, began) from None
                raise KafkaError(
                    f"Kafka refuses{self._connection.user_text}: {failure_text(error)}"
                ) from None

    def close(self) -> None:
        """Let the session go; the next question begins another."""
        with self._lock:
            session = self._session
        if session is not None:
            self._drop(session)

    def _connection_error(self, session: BrokerSession, began: float) -> KafkaError:
        # What has failed a moment before is why there is no connection now.
        since = began - 1
        failures = [failure for failure in list(session.failures) if failure.at >= since]
        return connection_error(self._connection, failures, session.manager.bootstrapped)

    @contextmanager
    def _borrowed_session(self) -> Iterator[BrokerSession]:
        with self._lock:
            # Connections and threads do not live on in a process that was forked.
            if self._session is None or self._process != os.getpid():
                from streamer.connectors.kafka.cluster.broker_session import BrokerSession

                self._session = BrokerSession(self._connection)
                self._process = os.getpid()
            session = self._session
            session.users += 1
        try:
            yield session
        finally:
            with self._lock:
                session.users -= 1
                is_over = not session.users and session is not self._session
            if is_over:
                _close_in_background(session)

    def _drop(self, session: BrokerSession) -> None:
        """Use another session from now on; this one ends with the last question to it."""
        with self._lock:
            if self._session is not session:
                return
            self._session = None
            is_over = not session.users and self._process == os.getpid()
        if is_over:
            _close_in_background(session)


def _close_in_background(session: BrokerSession) -> None:
    """Close a session without waiting for it: its thread may be resolving a name."""
    threading.Thread(target=session.close, daemon=True, name="kafka-close").start()
