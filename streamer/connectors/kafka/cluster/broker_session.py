"""A session of kafka-python with a cluster: its connections, and questions with limited time.

This and `requests` are the only modules that import kafka-python, which takes a quarter of a
second; `BrokerClient` imports them when a broker is asked first. They use its connections
(`kafka.net`) and its messages (`kafka.protocol`), not its admin client: that asks twice for each
offset, fails for all partitions when one is gone, and has no time for a single question.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import kafka.errors as kafka_errors
from kafka.future import Future
from kafka.net.inet import KafkaNetSocket, create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.frame import KafkaBytes

from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.connection_errors import ConnectionFailure
from streamer.connectors.kafka.cluster.errors import OutOfTimeError
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.security.sasl import Sasl

T = TypeVar("T")

_MAX_FAILURES: Final = 50
_RECEIVE_BYTES: Final = 1 << 18
_LARGE_BYTES: Final = 1 << 16
"""Bytes that are rather not copied."""
_RETRY_PAUSE_S: Final = 0.05
# One broker of several may be silent: another is asked after a part of the time.
_TRIES: Final = 3
_MIN_TRY_S: Final = 1.0
# What is asked is over by itself when its time is; this is for when a connection hangs.
_GRACE_S: Final = 0.1

# What kafka-python logs is raised as an error, with its reason, where a question ends.
_LOG: Final = logging.getLogger("kafka")


class BrokerSession:
    """Connections to the brokers of one cluster, in a thread of its own; threads may share it.

    Attributes:
        net: kafka-python's loop, in that thread.
        manager: its connections.
        leaders: the node that leads each partition, as far as it is known.
        coordinators: the node of each consumer group, likewise.
        failures: connections that have failed, the oldest first.
        users: questions that use it now, counted by its owner.
    """

    def __init__(self, connection: Connection) -> None:
        """Begin; it is connected when it is asked first.

        Raises:
            StreamerError: a file of the certificates cannot be read.
        """
        settings = connection.kafka_python_settings()
        if connection.sasl is not None:
            settings["sasl_oauth_token_provider"] = _Token(connection.sasl)
        _LOG.setLevel(logging.CRITICAL + 1)
        self.leaders: dict[PartitionRef, int] = {}
        self.coordinators: dict[str, int] = {}
        self.failures: deque[ConnectionFailure] = deque(maxlen=_MAX_FAILURES)
        self.users = 0
        self._waiting: set[threading.Event] = set()
        self.net = NetworkSelector(client_id=connection.client_id, slow_task_threshold_secs=0)
        self.manager = _Manager(self.net, self._note_failure, settings)
        self.net.start()

    @property
    def is_throttled(self) -> bool:
        """Whether a broker holds the client back by a quota now."""
        return any("throttle" in conn.paused for conn in self.manager.connections())

    def query(self, question: Callable[[Requests], Coroutine[Any, Any, T]], timeout_s: float) -> T:
        """Return the answer to a question, a coroutine that runs in the session's thread.

        Raises:
            OutOfTimeError: there is none in time, or a broker refuses the connection.
        """
        done = threading.Event()
        self._waiting.add(done)
        try:
            future = self.manager.call_soon(question, Requests(self, time.monotonic() + timeout_s))
            future.add_both(lambda _: done.set())
            done.wait(timeout_s + _GRACE_S)
        finally:
            self._waiting.discard(done)
        if not future.is_done:
            raise OutOfTimeError
        if future.exception is not None:
            raise future.exception
        answer: T = future.value
        return answer

    def close(self) -> None:
        """Disconnect; may wait for a name to be resolved."""
        try:
            self.net.run(self.manager.close)
        finally:
            self.net.close()

    def _note_failure(self, failure: ConnectionFailure) -> None:
        self.failures.append(failure)
        if failure.is_permanent and not self.manager.bootstrapped:
            for done in tuple(self._waiting):
                done.set()


class Requests:
    """The requests of one question, which share its time."""

    def __init__(self, session: BrokerSession, until: float) -> None:
        """Take the session, and when the time is over (`time.monotonic`)."""
        self.session = session
        self._until = until
        self._manager = session.manager

    @property
    def remaining_s(self) -> float:
        """Seconds that are left.

        Raises:
            OutOfTimeError: none are.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            raise OutOfTimeError
        return left

    async def pause(self, seconds: float = _RETRY_PAUSE_S) -> None:
        """Wait before the next try."""
        await self.session.net.sleep(min(seconds, self.remaining_s))

    async def send(self, make: Callable[[], Any]) -> Any:
        """Send a request to any broker, again until one answers; returns the response.

        Args:
            make: makes the request.
        """
        while True:
            left = self.remaining_s
            if not self._manager.bootstrapped:
                await self._manager.bootstrap_async(None, False)
            try:
                within = min(left, max(left / _TRIES, _MIN_TRY_S))
                return await self._manager.send(make(), request_timeout_ms=within * 1000)
            except kafka_errors.IncompatibleBrokerVersion:
                raise
            except kafka_errors.KafkaError:
                await self.pause()

    def begin(self, node: int, request: Any, timeout_s: float | None = None) -> Any:
        """Send a request to one broker; returns kafka-python's future, which may be awaited.

        Args:
            node: its number.
            request: the request.
            timeout_s: seconds after which the connection is given up; None for those left.
        """
        within = self.remaining_s if timeout_s is None else timeout_s
        try:
            return self._manager.send(request, node, request_timeout_ms=within * 1000)
        except kafka_errors.UnknownBrokerIdError as error:
            return Future().failure(error)


class _Manager(KafkaConnectionManager):
    """Connections of kafka-python that tell why they fail, and do not wait for ever for TLS."""

    def __init__(
        self,
        net: Any,
        on_failure: Callable[[ConnectionFailure], None],
        settings: Mapping[str, Any],
    ) -> None:
        super().__init__(net, **settings)
        self._on_failure = on_failure
        self._watched: dict[Any, Any] = {}

    def get_connection(self, node_id: Any, *args: Any, **more: Any) -> Any:
        conn = super().get_connection(node_id, *args, **more)
        if self._watched.get(node_id) is not conn:
            self._watched[node_id] = conn
            node = self.cluster.broker_metadata(node_id)
            address = f"{node.host}:{node.port}"
            conn.close_future.add_errback(lambda error: self._note(address, error))
        return conn

    def connections(self) -> list[Any]:
        """Return the newest connection to each node."""
        return list(self._watched.values())

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        options = self.config["socket_options"]
        net, place = self._net, (node.host, node.port)
        sock = await create_connection(
            net, *place, options, proxy_url=_ClosingSocket.URL, timeout_at=timeout_at
        )
        try:
            transport = self._wrap(sock, node.host)
            sock = transport._sock  # with TLS another object has it
            await _shake_hands(self._net, transport, timeout_at)
        except BaseException as error:
            # kafka-python would leave it to the garbage collector, and an error that is kept
            # keeps it open.
            sock.close()
            if not isinstance(error, Exception) or isinstance(error, kafka_errors.KafkaError):
                raise
            raise kafka_errors.KafkaConnectionError(f"Handshake failed: {error}") from None
        receive = transport._sock_recv
        if type(transport) is KafkaTCPTransport:
            # It would receive 4 KiB at once: 10 to 20 % of what a small record costs.
            receive = partial(_receive, transport)

        def receive_all() -> tuple[bytes, Exception | None]:
            # What comes together with the end of a connection is read first: a broker says why it
            # refuses a user, and hangs up. kafka-python 3.0 would lose it.
            data, error = receive()
            return (data, None) if data else (data, error)

        transport._sock_recv = receive_all
        return transport

    def _wrap(self, sock: socket.socket, host: str) -> Any:
        if not self.ssl_enabled:
            return KafkaTCPTransport(self._net, sock, host=host)
        settings = {name: value for name, value in self.config.items() if name.startswith("ssl_")}
        return KafkaSSLTransport(self._net, sock, host=host, **settings)

    def _note(self, address: str, error: Exception) -> None:
        self._on_failure(ConnectionFailure(time.monotonic(), address, error, self.bootstrapped))


async def _shake_hands(net: Any, transport: Any, timeout_at: float | None) -> None:
    """Begin TLS, where there is TLS; kafka-python would wait for a silent broker for ever."""
    while isinstance(transport, KafkaSSLTransport):
        try:
            transport._sock.do_handshake()
            return
        except ssl.SSLWantReadError:
            await net.wait_read(transport._sock, timeout_at=timeout_at)
        except ssl.SSLWantWriteError:
            await net.wait_write(transport._sock, timeout_at=timeout_at)


class _ClosingSocket(KafkaNetSocket):
    """Connects as kafka-python does where there is no proxy, and closes what does not connect."""

    SCHEMES = ("streamer-direct",)
    URL: Final = "streamer-direct://"

    async def sock_connect(self, net: Any, sock: socket.socket, *args: Any, **more: Any) -> Any:
        try:
            return await super().sock_connect(net, sock, *args, **more)
        except BaseException:
            sock.close()
            raise


class _Frame(KafkaBytes):
    """A large answer of a broker, which is read where it is; kafka-python's would copy it twice."""

    _idx: int

    def read(self, nbytes: int | None = None) -> Any:
        if nbytes is not None and nbytes < _LARGE_BYTES:
            return super().read(nbytes)
        start = self._idx
        self._idx = len(self) if nbytes is None else min(start + nbytes, len(self))
        return memoryview(self)[start : self._idx]


def _receive(transport: Any) -> tuple[bytes, Exception | None]:
    """Return what has come, and why there is no more, as kafka-python's transport does.

    The middle of a large answer goes to where the whole is collected, with one copy instead of
    four. Its last byte does not: kafka-python takes the answer when that comes.
    """
    sock, data = transport._sock, b""
    try:
        parser = getattr(transport.get_protocol(), "parser", None)
        frame = parser._rbuffer if parser is not None and parser._receiving else None
        if frame is not None and len(frame) - frame._idx > _LARGE_BYTES:
            frame.__class__ = _Frame
            with memoryview(frame) as view:
                count = sock.recv_into(view[frame._idx : -1])
            frame._idx += count
            if count:
                return b"", None
        else:
            data = sock.recv(_RECEIVE_BYTES)
    except (BlockingIOError, InterruptedError):
        return b"", None
    except OSError as error:
        return b"", kafka_errors.KafkaConnectionError(error)
    return data, None if data else kafka_errors.KafkaConnectionError("socket disconnected")


class _Token(AbstractTokenProvider):
    """Hands kafka-python the token of OAUTHBEARER."""

    def __init__(self, sasl: Sasl) -> None:
        super().__init__()
        self._sasl = sasl

    def token(self) -> str:
        return self._sasl.current_token()

    def extensions(self) -> dict[str, str]:
        return dict(self._sasl.extensions)
