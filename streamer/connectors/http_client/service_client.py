"""A client of a service over HTTP, whose requests the component makes and not the config."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from streamer.connectors.http_client.auth import AUTHORIZATION
from streamer.connectors.http_client.auth_fields import BASIC_AUTH, JWT, OAUTH, OAUTH2
from streamer.connectors.http_client.connection import Connection, ConnectionPool
from streamer.connectors.http_client.errors import HttpError, HttpTimeoutError
from streamer.connectors.http_client.fields import (
    DISABLE_HTTP2,
    FOLLOW_REDIRECTS,
    PROXY_URL,
    TIMEOUT,
)
from streamer.connectors.tls import ENABLED, TLS
from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.core.header_bytes import encode_headers
from streamer.core.redaction import redact_urls
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, ParsedFields

if TYPE_CHECKING:
    import httpx2

_BLOCK_BYTES: Final = 64 << 10
_MAX_ANSWER_BYTES: Final = 64 << 20
"""An answer that is longer is none of the services that are asked here."""


class ServiceAnswer(NamedTuple):
    """The answer of a service.

    Attributes:
        status: the code.
        body: the body.
        headers: the headers, by their names in lower case.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = MappingProxyType({})


class ServiceRequest(NamedTuple):
    """A request to a service.

    Attributes:
        method: its verb.
        path: the rest of its URL, behind that of the server.
        headers: its headers.
        body: its body; None for none.
        keeps_encoding: whether a body that is content-encoded comes as it is, not decoded.
    """

    method: str
    path: str
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | None = None
    keeps_encoding: bool = False


Headers = Sequence[tuple[str, str]]
SignRequest = Callable[[ServiceRequest, str], Headers]
"""Returns the headers of a request to a URL, with those that say who asks."""


class ServiceClient:
    """Sends requests to one of several servers that are as good as each other.

    Threads may share it. Any answer is returned, whatever its code: nothing is repeated but by
    another server where one does not answer.
    """

    def __init__(
        self,
        urls: Sequence[str],
        parsed: ParsedFields,
        context: BuildContext,
        timeout: int,
        sign: SignRequest | None = None,
    ) -> None:
        """Set up; nothing is connected before the first request.

        Args:
            urls: where the servers are.
            parsed: the fields of the component; those of TLS and of credentials are used.
            context: keeps the connections, and is whose requests are counted.
            timeout: how long a request may take with its answer, nanoseconds.
            sign: signs requests, in the place of the fields of credentials.
        """
        self._sign = sign
        self._urls = [url.rstrip("/") for url in urls]
        self._parsed = _client_settings(parsed, timeout)
        self._context = context
        self._origin = ComponentRef(context.component)
        self._seconds = timeout / SECOND

    def request(self, request: ServiceRequest, ex: Execution) -> ServiceAnswer:
        """Return the answer of the first server that gives one; it is counted.

        Raises:
            HttpError: no server answers.
        """
        turns = self._context.worker_resource("turns", itertools.count)
        first = next(turns)
        for number in range(len(self._urls)):
            url = self._urls[(first + number) % len(self._urls)]
            began = ex.elapsed()
            try:
                answer = self._query(self._pool(), url, request)
            except HttpError:
                if number + 1 == len(self._urls):
                    raise
                continue
            finally:
                _, label, path = self._origin.key
                ex.stats_of(("http_request", label, path)).add_latency(ex.elapsed() - began, 1)
            ex.count(f"http_request_code_{answer.status // 100}xx", 1, **self._origin.fields)
            return answer
        raise HttpError("there is no URL to send to")

    def exchange(self, request: ServiceRequest) -> ServiceAnswer:
        """Return the answer of the first server that gives one; it is not counted.

        It is for those who have no run: the driver, and checks before a start.

        Raises:
            HttpError: no server answers.
        """
        failure = HttpError("there is no URL to send to")
        for url in self._urls:
            try:
                return self._query(self._pool(), url, request)
            except HttpError as error:
                failure = error
        raise failure

    def _pool(self) -> ConnectionPool:
        return self._context.worker_resource("connections", lambda: ConnectionPool(self._parsed))

    def _query(self, pool: ConnectionPool, url: str, request: ServiceRequest) -> ServiceAnswer:
        import httpx2

        target = url + request.path
        connection = pool.acquire()
        try:
            return self._exchange(pool, connection, target, request)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            late = connection.deadline.has_expired or isinstance(error, httpx2.TimeoutException)
            text = str(error) or type(error).__name__
            if late:
                raise HttpTimeoutError(
                    f"{redact_urls(url)}: timed out: there is no whole answer within "
                    f"{self._seconds:g} s"
                ) from None
            raise HttpError(f"{redact_urls(url)}: {text}") from None
        finally:
            pool.release(connection)

    def _exchange(
        self, pool: ConnectionPool, connection: Connection, url: str, request: ServiceRequest
    ) -> ServiceAnswer:
        headers = list(request.headers if self._sign is None else self._sign(request, url))
        if not any(name == AUTHORIZATION for name, _ in headers):
            signed = pool.signer.header(request.method, url)
            headers += [] if signed is None else [(AUTHORIZATION, signed)]
        made = connection.client.build_request(
            request.method, url, content=request.body, headers=encode_headers(headers)
        )
        response = connection.client.send(made, stream=True)
        try:
            is_raw = request.keeps_encoding and response.is_success
            body = _read_body(response, connection, is_raw=is_raw)
        finally:
            response.close()
        return ServiceAnswer(response.status_code, body, dict(response.headers))


def _read_body(response: httpx2.Response, connection: Connection, *, is_raw: bool) -> bytes:
    import httpx2

    blocks, size = [], 0
    iter_blocks = response.iter_raw if is_raw else response.iter_bytes
    for block in iter_blocks(_BLOCK_BYTES):
        blocks.append(block)
        size += len(block)
        if size > _MAX_ANSWER_BYTES:
            raise HttpError(f"the answer is longer than {_MAX_ANSWER_BYTES >> 20} MiB")
        # What is inflated from little takes time too.
        if connection.deadline.has_expired:
            raise httpx2.ReadTimeout("timed out")
    return b"".join(blocks)


def _client_settings(parsed: ParsedFields, timeout: int) -> ParsedFields:
    """Return the fields of a client: those of the component, and no others."""
    absent = {OAUTH: None, OAUTH2: None, JWT: None, BASIC_AUTH: None}
    no_tls = ParsedFields({ENABLED: False})
    fixed = {PROXY_URL: "", DISABLE_HTTP2: True, FOLLOW_REDIRECTS: False, TIMEOUT: timeout}
    return ParsedFields({**absent, TLS: no_tls, **parsed, **fixed})
