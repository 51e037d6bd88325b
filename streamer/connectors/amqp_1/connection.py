"""Connections to a broker of AMQP 1.0, in the thread of their user.

Proton is the protocol alone here: frames go through a socket of ours, so that TLS is by the same
fields as everywhere, and each wait has a bound.
"""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import unquote

from streamer.connectors.amqp.client_fields import SECURE_SCHEME
from streamer.connectors.amqp_1.client_fields import (
    ANONYMOUS,
    MECHANISM,
    NO_SASL,
    PASSWORD,
    SASL,
    USER,
    read_urls,
)
from streamer.connectors.tls import TLS, tls_context
from streamer.core.errors import StreamerError
from streamer.core.redaction import redact_urls
from streamer.core.urls import split_url
from streamer.sdk.spec import ParsedFields

Link = Any
"""A `proton.Sender` or a `proton.Receiver`."""

CONNECT_TIMEOUT_S: Final = 10.0
_IDLE_TIMEOUT_S: Final = 60.0
_MAX_FRAME_BYTES: Final = 1 << 16
_MAX_WAIT_S: Final = 0.25
_PORTS: Final = {"amqp": 5672, SECURE_SCHEME: 5671}
_ACCESS_REFUSED: Final = "the broker refuses the user or the password"


class Amqp1Error(StreamerError):
    """There is no connection, or the broker has ended it or one of its links.

    Attributes:
        condition: the name that AMQP has for the error, such as `amqp:not-found`; else empty.
    """

    def __init__(self, text: str, condition: str = "") -> None:
        super().__init__(text)
        self.condition = condition


def make_broker_error(condition: Any) -> Amqp1Error:
    """Return the error of a `proton.Condition` of the broker's, or of None."""
    if condition is None:
        return Amqp1Error("the broker has closed the connection")
    name = str(condition.name)
    if name == "amqp:unauthorized-access":
        text = "the user has no right to it"
    else:
        text = str(condition.description or "")
    return Amqp1Error(redact_urls(f"{name}: {text}" if text else name), name)


@contextmanager
def _client_errors() -> Iterator[None]:
    from proton import ProtonException

    try:
        yield
    except (ProtonException, OSError) as e:
        raise Amqp1Error(redact_urls(str(e)) or type(e).__name__) from None


class Amqp1Connection:
    """One connection with one session; whoever has it calls it from one thread at a time."""

    def __init__(self, url: str, parsed: ParsedFields) -> None:
        """Connect to a broker, and log in.

        Raises:
            Amqp1Error: nobody answers, or the broker refuses.
            StreamerError: a certificate cannot be read.
        """
        import proton

        self._socket: socket.socket | None = None
        given = split_url(url)
        host = given.hostname or ""
        self._transport = proton.Transport()
        self._connection = proton.Connection()
        self._login(given.username, given.password, parsed[SASL])
        self._connection.container = f"streamer-{uuid.uuid4()}"
        self._connection.hostname = host
        self._transport.idle_timeout = _IDLE_TIMEOUT_S
        self._transport.max_frame_size = _MAX_FRAME_BYTES
        with _client_errors():
            self._transport.bind(self._connection)
            self._socket = _connect_socket(host, given.port or _PORTS[given.scheme])
            if given.scheme == SECURE_SCHEME:
                self._socket = _wrap_tls(self._socket, host, parsed)
        try:
            self._connection.open()
            self._session = self._connection.session()
            self._session.open()
            self.wait(lambda: self._is_active(self._session), CONNECT_TIMEOUT_S)
        except BaseException:
            self.close()
            raise

    def _login(self, user: str | None, password: str | None, sasl: ParsedFields | None) -> None:
        mechanism = sasl[MECHANISM] if sasl is not None else NO_SASL
        if sasl is not None and mechanism != NO_SASL:
            user, password = sasl[USER], sasl[PASSWORD]
        elif user is not None:
            user, password = unquote(user), unquote(password or "")
        if user is None and mechanism == NO_SASL:
            return
        layer = self._transport.sasl()
        # The transport does not know of the TLS below it.
        layer.allow_insecure_mechs = True
        if mechanism == ANONYMOUS:
            layer.allowed_mechs("ANONYMOUS")
            return
        layer.allowed_mechs("PLAIN")
        self._connection.user, self._connection.password = user, password

    def _is_active(self, endpoint: Any) -> bool:
        from proton import Endpoint

        return bool(endpoint.state & Endpoint.REMOTE_ACTIVE)

    def open_link(self, link: Link, *, receives: bool) -> Link:
        """Open a sender or a receiver whose terminus is set, and wait until the broker agrees.

        Raises:
            Amqp1Error: it does not.
        """
        with _client_errors():
            link.open()
        self.wait(lambda: self._is_active(link), CONNECT_TIMEOUT_S, link)
        remote = link.remote_source if receives else link.remote_target
        if not receives and link.target.address and remote.address is None:
            # A refusal: the reason comes with the end of the link.
            self.wait(lambda: False, CONNECT_TIMEOUT_S, link)
        return link

    def make_sender(self) -> Link:
        """Return a sender that is not open yet."""
        return self._session.sender(str(uuid.uuid4()))

    def make_receiver(self) -> Link:
        """Return a receiver that is not open yet."""
        return self._session.receiver(str(uuid.uuid4()))

    def wait(self, is_done: Callable[[], bool], seconds: float, link: Link = None) -> None:
        """Exchange frames until something has come.

        Args:
            is_done: whether it has.
            seconds: the longest that it may take.
            link: one whose end is an error.

        Raises:
            Amqp1Error: it has not come in time, or the connection or the link has ended.
        """
        end = time.monotonic() + seconds
        while True:
            with _client_errors():
                self._write()
                if is_done():
                    return
                self._check(link)
                left = end - time.monotonic()
                if left <= 0:
                    raise Amqp1Error("timeout")
                self._read(min(left, _MAX_WAIT_S))

    def exchange(self, seconds: float, link: Link = None) -> None:
        """Exchange frames once: send those that wait, and take those that come in that time.

        Raises:
            Amqp1Error: the connection or the link has ended.
        """
        with _client_errors():
            self._write()
            self._check(link)
            self._read(seconds)
            self._write()
            self._check(link)

    def _write(self) -> None:
        while (size := self._transport.pending()) > 0:
            data = self._transport.peek(size)
            assert data and self._socket is not None
            self._socket.settimeout(CONNECT_TIMEOUT_S)
            self._socket.sendall(data)
            self._transport.pop(len(data))

    def _read(self, seconds: float) -> None:
        assert self._socket is not None
        capacity = self._transport.capacity()
        if capacity > 0:
            self._socket.settimeout(max(seconds, 0.001))
            try:
                data = self._socket.recv(min(capacity, _MAX_FRAME_BYTES))
            except TimeoutError:
                data = None
            if data:
                self._transport.push(data)
            elif data is not None:
                self._transport.close_tail()
        self._transport.tick(time.monotonic())

    def _check(self, link: Link = None) -> None:
        from proton import SASL as Layer
        from proton import Endpoint

        if self._transport.condition is None and self._transport.capacity() >= 0:
            for endpoint in (link, self._session_of(link), self._connection):
                if endpoint is not None and endpoint.state & Endpoint.REMOTE_CLOSED:
                    raise make_broker_error(endpoint.remote_condition)
            return
        if self._connection.remote_condition is not None:
            raise make_broker_error(self._connection.remote_condition)
        if self._connection.user is not None and self._transport.sasl().outcome not in (
            None,
            Layer.OK,
        ):
            raise Amqp1Error(_ACCESS_REFUSED, "amqp:unauthorized-access")
        raise make_broker_error(self._transport.condition)

    def _session_of(self, link: Link) -> Any:
        return getattr(self, "_session", None) if link is None else link.session

    def close(self) -> None:
        """End the connection, whatever state it is in."""
        from proton import ProtonException

        if self._socket is None:
            return
        try:
            self._connection.close()
            self._write()
        except (ProtonException, OSError):
            pass
        finally:
            self._socket.close()
            self._socket = None

    def __del__(self) -> None:
        # A worker that ends has nobody who closes it.
        if self._socket is not None:
            self._socket.close()


def _connect_socket(host: str, port: int) -> socket.socket:
    connected = socket.create_connection((host, port), CONNECT_TIMEOUT_S)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


def _wrap_tls(plain: socket.socket, host: str, parsed: ParsedFields) -> socket.socket:
    import ssl

    try:
        context = tls_context(parsed[TLS]) or ssl.create_default_context()
        return context.wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


def connect(parsed: ParsedFields) -> Amqp1Connection:
    """Connect to the first broker that answers.

    Raises:
        Amqp1Error: none answers, or it refuses.
    """
    failure: Amqp1Error | None = None
    for url in read_urls(parsed):
        try:
            return Amqp1Connection(url, parsed)
        except Amqp1Error as error:
            failure = failure or error
    assert failure is not None
    raise failure


def probe(parsed: ParsedFields) -> str:
    """Return that a broker answers, and end the connection.

    Raises:
        Amqp1Error: none does.
    """
    connect(parsed).close()
    return "the broker answers"
