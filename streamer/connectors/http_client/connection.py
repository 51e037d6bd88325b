"""The connections of an HTTP client, which outlive tasks and are shared by threads."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from streamer.connectors.http_client.auth import RequestSigner
from streamer.connectors.http_client.auth_fields import ENABLED, OAUTH2
from streamer.connectors.http_client.fields import (
    DISABLE_HTTP2,
    FOLLOW_REDIRECTS,
    PROXY_URL,
    TIMEOUT,
)
from streamer.connectors.http_client.oauth2 import TokenSource
from streamer.connectors.tls import TLS, tls_context
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.sdk.spec import ParsedFields

if TYPE_CHECKING:
    import httpx2

    from streamer.connectors.http_client.exchange_deadline import Deadline

_MAX_REDIRECTS: Final = 10
_MAX_IDLE_CONNECTIONS: Final = 100
_CONNECT_TIMEOUT_S: Final = 10.0
"""Where the answer may take any time, since it goes on: within this, there is a connection."""

# As in Go, no proxy of the environment stands between a program and its own machine.
_NO_PROXY_HOSTS: Final = ("all://localhost", "all://127.0.0.1", "all://[::1]")


class Connection(NamedTuple):
    """A client that does one exchange at a time, and the deadline of that exchange."""

    client: httpx2.Client
    deadline: Deadline


class ConnectionPool:
    """Connections that are kept, and what says who uses them. Threads may share it.

    Each request has a client for itself, which another one gets afterwards: many threads with one
    `httpx2.Client` spend four times the processor's time, on its one list of connections.

    Attributes:
        signer: signs requests.
        tokens: tokens of OAuth 2, or None.
    """

    def __init__(self, parsed: ParsedFields) -> None:
        """Take the fields of a client.

        Raises:
            StreamerError: the certificates or the proxy's URL cannot be used.
        """
        import httpx2

        self._parsed = parsed
        self._tls = tls_context(parsed[TLS]) or httpx2.create_ssl_context()
        self._idle: deque[Connection] = deque()
        self.release(self._make_connection())
        self.signer = RequestSigner(parsed)
        conf = parsed[OAUTH2]
        self.tokens = TokenSource(conf) if conf is not None and conf[ENABLED] else None

    def acquire(self) -> Connection:
        """Take a client out of the pool until `release`; its timeout begins now."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._make_connection()
        timeout = self._parsed[TIMEOUT]
        connection.deadline.start(timeout / SECOND if timeout else None)
        return connection

    def release(self, connection: Connection) -> None:
        """Take a client back, for the next one who needs one."""
        if len(self._idle) < _MAX_IDLE_CONNECTIONS:
            self._idle.append(connection)
        else:
            connection.client.close()

    def _make_connection(self) -> Connection:
        import httpx2

        from streamer.connectors.http_client.exchange_deadline import Deadline, keep_deadline

        parsed = self._parsed
        proxy, timeout = parsed[PROXY_URL] or None, parsed[TIMEOUT]
        try:
            made = httpx2.Client(
                verify=self._tls,
                http2=not parsed[DISABLE_HTTP2],
                proxy=proxy,
                mounts=None if proxy else dict.fromkeys(_NO_PROXY_HOSTS),
                timeout=(
                    timeout / SECOND
                    if timeout
                    else httpx2.Timeout(None, connect=_CONNECT_TIMEOUT_S)
                ),
                follow_redirects=parsed[FOLLOW_REDIRECTS],
                max_redirects=_MAX_REDIRECTS,
                headers={"User-Agent": "streamer"},
            )
        except (ValueError, httpx2.InvalidURL) as error:
            raise StreamerError(f"failed to parse proxy_url string: {error}") from None
        deadline = Deadline()
        keep_deadline(made, deadline, parsed.permissions)
        return Connection(made, deadline)

    def __del__(self) -> None:
        """Close the connections when nobody can use them any more."""
        for connection in getattr(self, "_idle", ()):
            connection.client.close()
