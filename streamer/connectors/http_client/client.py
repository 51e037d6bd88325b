"""The HTTP client: sends requests, repeats those that fail, and makes messages of answers.

client = HttpClient(parsed, context)              # while a component is built
answer = client.send(batch, ex)                   # HttpError when all tries have failed
messages = client.messages(answer)                # with http_status_code, and headers' metadata

with client.open(batch, ex) as answer:            # a body that is read bit by bit
    for block in answer.blocks(): ...
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from streamer.bloblang import Interpolation
from streamer.connectors.http_client.connection import ConnectionPool
from streamer.connectors.http_client.errors import HttpError
from streamer.connectors.http_client.fields import (
    BACKOFF_ON,
    DROP_ON,
    DUMP_LEVEL,
    EXTRACT_HEADERS,
    FOLLOW_REDIRECTS,
    MAX_RETRY_BACKOFF,
    RATE_LIMIT,
    RETRIES,
    RETRY_PERIOD,
    SUCCESSFUL_ON,
    TIMEOUT,
)
from streamer.connectors.http_client.multipart import (
    MultipartError,
    parse_content_type,
    read_multipart,
)
from streamer.connectors.http_client.request import HttpRequest, PartTemplate, RequestMaker
from streamer.connectors.http_client.request_dump import dump_exchange
from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.core.header_bytes import encode_headers
from streamer.core.message import Batch, Message
from streamer.core.redaction import redact_urls
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.metadata_filter import MetadataFilter
from streamer.sdk.rate_limit import RateLimit, wait_for_access
from streamer.sdk.spec import BuildContext, Kind, ParsedFields

if TYPE_CHECKING:
    import httpx2

    from streamer.connectors.http_client.exchange_deadline import Deadline

_BLOCK_BYTES: Final = 64 << 10

# A code below 500 blames the request (RFC 9110, 15.5); these say that of all requests, whatever the
# message: who asks is not known or not allowed, has not paid, asks too often or too early, has been
# too slow, talks to another server or with another protocol, or something is locked for now.
_REFUSED_FOR_ALL: Final = frozenset({401, 402, 403, 407, 408, 421, 423, 424, 425, 426, 429, 499})

_REFUSED_FOR_URL: Final = frozenset({404, 405, 410})
"""Codes that blame the URL: the message is to blame for them where it has one of its own."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """The response of a server.

    Attributes:
        status: the code.
        headers: names in lower case and values, in order.
        body: the body; empty while it is read bit by bit.
        response: the `httpx2.Response`.
        release: frees the connection that it came over.
    """

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes
    response: httpx2.Response
    release: Callable[[], None]

    def close(self) -> None:
        """Read no more of it."""
        self.response.close()
        self.release()

    def first_header(self, name: str) -> str:
        """Return a header's first value, by its name in lower case; empty without one."""
        return next((value for key, value in self.headers if key == name), "")

    def iter_blocks(self) -> Iterator[bytes]:
        """Return the body as it comes, of an answer that is open.

        Raises:
            HttpError: the connection is lost.
        """
        import httpx2

        try:
            yield from self.response.iter_bytes(_BLOCK_BYTES)
        except httpx2.HTTPError as error:
            raise HttpError(
                f"{redact_urls(str(self.response.url))}: {_error_text(error)}"
            ) from None


PauseFunction = Callable[[Execution, int, int], bool]


def _sleep_between_tries(ex: Execution, period: int, took: int) -> bool:
    ex.sleep(period)
    return True


class HttpClient:
    """Sends requests as the fields of `client_fields` say. Several threads may use it."""

    def __init__(
        self,
        parsed: ParsedFields,
        context: BuildContext,
        *,
        body: Interpolation | None = None,
        parts: Sequence[PartTemplate] = (),
        repeats_rejected: bool = True,
        pause: PauseFunction = _sleep_between_tries,
    ) -> None:
        """Set up; nothing is connected before the first request.

        Args:
            parsed: the fields, and others.
            context: gives the rate limit, and keeps the connections.
            body: the body of every request, in the place of the messages.
            parts: the parts of every body, in the place of the messages.
            repeats_rejected: whether a request that `rejects` tells of is repeated too.
            pause: waits before a further try, and says whether there is to be one: it is given the
                run, the pause and how long the failed try took, ns.
        """
        self._repeats_rejected = repeats_rejected
        self._pause = pause
        self._maker = RequestMaker(parsed, body, parts)
        self._parsed = parsed
        self._context = context
        self._origin = ComponentRef(context.component)
        self._header_filter = MetadataFilter(parsed[EXTRACT_HEADERS])
        self._limit: RateLimit | None = None
        if parsed[RATE_LIMIT]:
            self._limit = context.resource(Kind.RATE_LIMIT, parsed[RATE_LIMIT])
        self._backoff_statuses, self._drop_statuses, self._success_statuses = (
            frozenset(parsed[name]) for name in (BACKOFF_ON, DROP_ON, SUCCESSFUL_ON)
        )
        self._level = parsed[DUMP_LEVEL]

    def is_rejection(self, error: HttpError) -> bool:
        """Return whether a request has failed for what it asks, so that no later try succeeds.

        Codes of `drop_on` are to count so, those of `backoff_on` not, whatever they are.
        """
        status = error.status
        if status is None or status in self._backoff_statuses:
            return error.is_invalid_request
        if status in self._drop_statuses:
            return True
        if status in _REFUSED_FOR_URL:
            return self._maker.has_own_urls
        return 400 <= status <= 499 and status not in _REFUSED_FOR_ALL

    def send(self, batch: Batch, ex: Execution) -> HttpResponse:
        """Send a batch as one request, as often as it takes, and return the answer.

        Raises:
            HttpError: the last try has failed, or the request cannot be made.
        """
        with self._send_with_retries(batch, ex, reads_body=True) as answer:
            return answer

    @contextmanager
    def open(self, batch: Batch, ex: Execution) -> Iterator[HttpResponse]:
        """Send a batch as one request; while the block runs, the answer's body can be read.

        Raises:
            HttpError: the last try has failed, or the request cannot be made.
        """
        with self._send_with_retries(batch, ex, reads_body=False) as answer:
            yield answer

    def messages_of(self, answer: HttpResponse) -> Batch:
        """Return what an answer has, a message for each part of its body.

        Each has `http_status_code`, and the headers that `extract_headers` takes, as metadata.

        Raises:
            HttpError: the body is not what its type says.
        """
        bodies = [answer.body]
        kind, parameters = parse_content_type(answer.first_header("content-type"))
        if kind.startswith("multipart/"):
            try:
                parts = read_multipart(answer.body, parameters.get("boundary", ""))
            except MultipartError as error:
                raise HttpError(str(error), answer.status, answer.headers, answer.body) from None
            bodies = [body for _, body in parts]
        meta = {"http_status_code": answer.status, **self.extract_metadata(answer.headers)}
        return [Message(body, meta) for body in bodies]

    def extract_metadata(self, headers: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Return the metadata that `extract_headers` takes of headers, also of an error's."""
        entries: dict[str, list[str]] = {}
        for name, value in headers:
            if self._header_filter.matches(name):
                entries.setdefault(name, []).append(value)
        return {name: values[0] if len(values) == 1 else values for name, values in entries.items()}

    @contextmanager
    def _send_with_retries(
        self, batch: Batch, ex: Execution, reads_body: bool
    ) -> Iterator[HttpResponse]:
        parsed = self._parsed
        period, max_pause = parsed[RETRY_PERIOD] or 0, parsed[MAX_RETRY_BACKOFF] or 0
        left = parsed[RETRIES]
        repeated = False
        while True:
            request = self._maker.make(batch, ex)
            if self._limit is not None:
                wait_for_access(self._limit, ex)
            try:
                began = ex.elapsed()
                answer = self._send_once(request, ex, reads_body)
                break
            except HttpError as error:
                if error.status in self._backoff_statuses and repeated:
                    period = min(period * 2, max(max_pause, period))
                took = ex.elapsed() - began
                final = error.is_invalid_request or error.status in self._drop_statuses
                final = final or (not self._repeats_rejected and self.is_rejection(error))
                if left <= 0 or final or not self._pause(ex, period, took):
                    raise HttpError(
                        f"{redact_urls(request.url)}: {error}",
                        error.status,
                        error.headers,
                        error.body,
                        is_invalid_request=error.is_invalid_request,
                    ) from None
            left -= 1
            repeated = True
        try:
            yield answer
        finally:
            answer.close()

    def _send_once(self, request: HttpRequest, ex: Execution, reads_body: bool) -> HttpResponse:
        """Send a request once; an answer that is no success is an error."""
        began = ex.elapsed()
        try:
            answer = self._exchange(request, ex, reads_body)
        finally:
            _, label, path = self._origin.key
            ex.stats_of(("http_request", label, path)).add_latency(ex.elapsed() - began, 1)
        ex.count(f"http_request_code_{answer.status // 100}xx", 1, **self._origin.fields)
        if self._is_success(answer.status):
            return answer
        body = answer.body
        try:
            if not reads_body:
                body = b"".join(answer.iter_blocks())
        finally:
            answer.close()
        shown = body.decode(errors="replace").replace("\n", "")
        status = f"{answer.status} {answer.response.reason_phrase}".rstrip()
        raise HttpError(
            f"HTTP request returned unexpected response code ({answer.status}): {status}, "
            f"Error: {shown}",
            answer.status,
            answer.headers,
            body,
        )

    def _exchange(self, request: HttpRequest, ex: Execution, reads_body: bool) -> HttpResponse:
        import httpx2

        connections = self._context.worker_resource(
            "connections", lambda: ConnectionPool(self._parsed)
        )
        taken = connections.acquire()
        client, deadline = taken
        began = time.monotonic()
        response: httpx2.Response | None = None
        headers, failure, body = list(request.headers), "", b""
        invalid = False
        try:
            headers += _signed_headers(connections, client, request)
            made = client.build_request(
                request.method,
                request.url,
                content=request.body,
                headers=encode_headers(headers),
            )
            response = client.send(made, stream=True)
            if reads_body:
                body = self._read_body(response, deadline)
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            late = deadline.has_expired or isinstance(error, httpx2.TimeoutException)
            failure = (
                self._timeout_text(response)
                if late and self._parsed[TIMEOUT]
                else _error_text(error)
            )
            unusable = (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError)
            values = isinstance(error, unusable) or not isinstance(error, httpx2.HTTPError)
            invalid = values and response is None and self._maker.depends_on_message
        except BaseException:
            client.close()
            raise
        response_headers = [] if response is None else _response_headers(response)
        if self._level:
            took = round((time.monotonic() - began) * 1e9)
            code = None if response is None else response.status_code
            fields = dump_exchange(request, headers, took, code, response_headers, body, failure)
            level = "ERROR" if self._level == "FATAL" else self._level
            ex.log(level, "http request log", {**self._origin.fields, "access_log": fields})
        if response is None or failure:
            if response is not None:
                response.close()
            connections.release(taken)
            raise HttpError(failure, is_invalid_request=invalid)
        return HttpResponse(
            response.status_code,
            response_headers,
            body,
            response,
            lambda: connections.release(taken),
        )

    def _read_body(self, response: httpx2.Response, deadline: Deadline) -> bytes:
        """Read a body, for which there is no more time than for the whole request."""
        import httpx2

        blocks = []
        for block in response.iter_bytes(_BLOCK_BYTES):
            blocks.append(block)
            # What is inflated from little takes time too.
            if deadline.has_expired:
                raise httpx2.ReadTimeout("timed out")
        return b"".join(blocks)

    def _timeout_text(self, response: httpx2.Response | None) -> str:
        """Return the error text of an exchange whose time is over."""
        seconds = self._parsed[TIMEOUT] / SECOND
        what = "waiting for the answer" if response is None else "reading the body"
        return f"timed out while {what}: it is not whole within {seconds:g} s (timeout)"

    def _is_success(self, status: int) -> bool:
        if status in self._drop_statuses or status in self._backoff_statuses:
            return False
        if status in self._success_statuses or 200 <= status <= 299:
            return True
        return 300 <= status <= 399 and not self._parsed[FOLLOW_REDIRECTS]


def _signed_headers(
    connections: ConnectionPool, client: httpx2.Client, request: HttpRequest
) -> list[tuple[str, str]]:
    header = connections.signer.header(request.method, request.url)
    if connections.tokens is not None:
        # The client of OAuth 2 stands around all else in Benthos, so it has the last word.
        header = connections.tokens.authorization_header(client)
    return [] if header is None else [("Authorization", header)]


def _response_headers(response: httpx2.Response) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in response.headers.multi_items()]


def _error_text(error: Exception) -> str:
    return str(error) or type(error).__name__
