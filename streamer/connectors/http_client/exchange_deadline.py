"""One deadline for a whole exchange over HTTP: connecting, the TLS handshake, head and body.

The client's library takes its timeout for each operation on the socket, so that a server which
sends a byte now and then is waited for without end. Here each operation gets what is left of the
exchange's time, as with `Timeout` of Go's `http.Client`.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Final

import httpcore2
import httpx2

from streamer.core.header_bytes import encode_headers
from streamer.core.permissions import ALL, NotPermittedError, Permissions
from streamer.core.redaction import redact_urls

_PIECE_BYTES: Final = 1 << 18
"""So much is written at a time: within one write, the library does not look at the clock."""


class Deadline:
    """The end of the exchange in hand. Each client has one, and does one exchange at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without a deadline.

        Args:
            clock: gives seconds, and never runs backwards.
        """
        self._clock = clock
        self._end: float | None = None

    def start(self, seconds: float | None) -> None:
        """Give the exchange that begins now so many seconds; None for no end."""
        self._end = None if seconds is None else self._clock() + seconds

    @property
    def has_expired(self) -> bool:
        """Whether the exchange's time is over."""
        return self._end is not None and self._clock() >= self._end

    def limit(self, timeout: float | None, error: type[Exception]) -> float | None:
        """Return a timeout that ends with the exchange's time at the latest.

        Args:
            timeout: seconds that one operation may take; None for no limit.
            error: what to raise when no time is left.
        """
        if self._end is None:
            return timeout
        left = self._end - self._clock()
        if left <= 0:
            raise error("timed out")
        return left if timeout is None else min(timeout, left)


class _Stream(httpcore2.NetworkStream):
    """A connection whose reads and writes keep a deadline."""

    def __init__(self, stream: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        limit = self._deadline.limit(timeout, httpcore2.ReadTimeout)
        return self._stream.read(max_bytes, limit)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _PIECE_BYTES):
            piece = buffer[start : start + _PIECE_BYTES] if len(buffer) > _PIECE_BYTES else buffer
            self._stream.write(piece, self._deadline.limit(timeout, httpcore2.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        limit = self._deadline.limit(timeout, httpcore2.ConnectTimeout)
        secured = self._stream.start_tls(ssl_context, server_hostname, limit)
        return _Stream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore2.NetworkBackend):
    """Makes connections that keep a deadline."""

    def __init__(self, backend: Any, deadline: Deadline, permissions: Permissions) -> None:
        self._backend = backend
        self._deadline = deadline
        self._permissions = permissions

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        # The library would give the whole timeout to each of a name's addresses.
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        failure: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in dict.fromkeys(str(one[4][0]) for one in addresses):
            limit = self._deadline.limit(timeout, httpcore2.ConnectTimeout)
            try:
                made = self._backend.connect_tcp(
                    self._permissions.address(address), port, limit, local_address, socket_options
                )
            except NotPermittedError as error:
                failure = httpcore2.ConnectError(str(error))
                continue
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
                continue
            return _Stream(made, self._deadline)
        raise failure

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.NetworkStream:
        limit = self._deadline.limit(timeout, httpcore2.ConnectTimeout)
        made = self._backend.connect_unix_socket(path, limit, socket_options)
        return _Stream(made, self._deadline)

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


def keep_deadline(
    client: httpx2.Client, deadline: Deadline, permissions: Permissions = ALL
) -> None:
    """Let all connections that a client makes keep a deadline, and go only where they may.

    Args:
        client: a client that has not connected yet; proxies that it found in the environment are
            kept to the deadline too.
        deadline: the one of the exchange in hand.
        permissions: to which addresses it may connect; redirects and proxies among them.
    """
    # The library has no argument for what connects; where these names are others some day, this
    # fails at the first request and in each test of the client.
    for transport in (client._transport, *client._mounts.values()):
        pool = getattr(transport, "_pool", None)
        if pool is not None:
            pool._network_backend = _Backend(pool._network_backend, deadline, permissions)


def do_exchange(
    method: str,
    url: str,
    seconds: float,
    headers: Iterable[tuple[str, str]] = (),
    body: bytes | None = None,
    permissions: Permissions = ALL,
) -> bytes:
    """Do one exchange with a server, redirects included, and return the body of its answer.

    Args:
        method: the verb.
        url: where it goes.
        seconds: for all of it.
        headers: what is sent beside what the library sends.
        body: what is sent.
        permissions: to which addresses it may connect.

    Raises:
        OSError: there is no whole answer within the time, or it says that something is wrong; the
            text has the URL.
    """
    status, content, reason = _exchange(method, url, seconds, headers, body, permissions)
    if status >= HTTPStatus.BAD_REQUEST:
        raise OSError(f"{redact_urls(url)}: {status} {reason}".rstrip())
    return content


def fetch_answer(
    method: str,
    url: str,
    seconds: float,
    headers: Iterable[tuple[str, str]] = (),
    body: bytes | None = None,
    permissions: Permissions = ALL,
) -> tuple[int, bytes]:
    """Do one exchange as `do_exchange` does; return status and body, whatever the status is.

    Raises:
        OSError: there is no whole answer within the time; the text has the URL.
    """
    return _exchange(method, url, seconds, headers, body, permissions)[:2]


def _exchange(
    method: str,
    url: str,
    seconds: float,
    headers: Iterable[tuple[str, str]],
    body: bytes | None,
    permissions: Permissions,
) -> tuple[int, bytes, str]:
    deadline = Deadline()
    shown = redact_urls(url)
    try:
        with httpx2.Client(timeout=seconds, follow_redirects=True) as client:
            keep_deadline(client, deadline, permissions)
            deadline.start(seconds)
            answer = client.request(method, url, headers=encode_headers(headers), content=body)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        if deadline.has_expired or isinstance(error, httpx2.TimeoutException):
            raise OSError(f"{shown}: timed out: no whole answer within {seconds:g} s") from None
        raise OSError(f"{shown}: {error or type(error).__name__}") from None
    return answer.status_code, answer.content, answer.reason_phrase
