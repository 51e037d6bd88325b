"""The connections of an HTTP client, which outlive tasks and are shared by threads."""

from __future__ import annotations

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
    import httpx

_MOST_REDIRECTS: Final = 10
_KEPT: Final = 100
# As in Go, no proxy of the environment stands between a program and its own machine.
_OWN_MACHINE: Final = ("all://localhost", "all://127.0.0.1", "all://[::1]")


class Connections:
    """A pool of connections, and what says who uses them.

    Attributes:
        client: an `httpx.Client`.
        signer: signs requests.
        tokens: tokens of OAuth 2, or None.
    """

    def __init__(self, parsed: Parsed) -> None:
        """Take the fields of a client.

        Raises:
            StreamerError: the certificates or the proxy's URL cannot be used.
        """
        import httpx

        proxy = parsed[PROXY_URL] or None
        timeout = parsed[TIMEOUT]
        try:
            self.client: httpx.Client = httpx.Client(
                verify=tls_context(parsed[TLS]) or True,
                http2=not parsed[DISABLE_HTTP2],
                proxy=proxy,
                mounts=None if proxy else dict.fromkeys(_OWN_MACHINE),
                timeout=timeout / SECOND if timeout else None,
                follow_redirects=parsed[FOLLOW_REDIRECTS],
                max_redirects=_MOST_REDIRECTS,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=_KEPT),
                headers={"User-Agent": "streamer"},
            )
        except (ValueError, httpx.InvalidURL) as error:
            raise StreamerError(f"failed to parse proxy_url string: {error}") from None
        self.signer = Signer(parsed)
        conf = parsed[OAUTH2]
        self.tokens = Tokens(conf) if conf is not None and conf[ENABLED] else None

    def __del__(self) -> None:
        """Close the connections when nobody can use them any more."""
        client = getattr(self, "client", None)
        if client is not None:
            client.close()
