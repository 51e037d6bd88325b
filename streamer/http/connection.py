"""The connections of an HTTP client, which outlive tasks and are shared by threads."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from streamer.durations import SECOND
from streamer.errors import StreamerError
from streamer.http.auth import Signer
from streamer.http.auth_fields import ENABLED, OAUTH2
from streamer.http.fields import DISABLE_HTTP2, FOLLOW_REDIRECTS, PROXY_URL, TIMEOUT
from streamer.http.oauth2 import Tokens
from streamer.spec import Parsed
from streamer.tls import TLS, tls_context

if TYPE_CHECKING:
    import httpx2

_MOST_REDIRECTS: Final = 10
_KEPT: Final = 100
# As in Go, no proxy of the environment stands between a program and its own machine.
_OWN_MACHINE: Final = ("all://localhost", "all://127.0.0.1", "all://[::1]")


class Connections:
    """Connections that are kept, and what says who uses them. Threads may share it.

    Each request has a client for itself, which another one gets afterwards: many threads with one
    `httpx2.Client` spend four times the processor's time, on its one list of connections.

    Attributes:
        signer: signs requests.
        tokens: tokens of OAuth 2, or None.
    """

    def __init__(self, parsed: Parsed) -> None:
        """Take the fields of a client.

        Raises:
            StreamerError: the certificates or the proxy's URL cannot be used.
        """
        import httpx2

        self._parsed = parsed
        self._tls = tls_context(parsed[TLS]) or httpx2.create_ssl_context()
        self._idle: deque[httpx2.Client] = deque()
        self.give(self._made())
        self.signer = Signer(parsed)
        conf = parsed[OAUTH2]
        self.tokens = Tokens(conf) if conf is not None and conf[ENABLED] else None

    def take(self) -> httpx2.Client:
        """Return a client that nobody else uses until it is given back."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._made()

    def give(self, client: httpx2.Client) -> None:
        """Take a client back, for the next one who needs one."""
        if len(self._idle) < _KEPT:
            self._idle.append(client)
        else:
            client.close()

    def _made(self) -> httpx2.Client:
        import httpx2

        parsed = self._parsed
        proxy, timeout = parsed[PROXY_URL] or None, parsed[TIMEOUT]
        try:
            return httpx2.Client(
                verify=self._tls,
                http2=not parsed[DISABLE_HTTP2],
                proxy=proxy,
                mounts=None if proxy else dict.fromkeys(_OWN_MACHINE),
                timeout=timeout / SECOND if timeout else None,
                follow_redirects=parsed[FOLLOW_REDIRECTS],
                max_redirects=_MOST_REDIRECTS,
                headers={"User-Agent": "streamer"},
            )
        except (ValueError, httpx2.InvalidURL) as error:
            raise StreamerError(f"failed to parse proxy_url string: {error}") from None

    def __del__(self) -> None:
        """Close the connections when nobody can use them any more."""
        for client in getattr(self, "_idle", ()):
            client.close()
