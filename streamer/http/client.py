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
from streamer.durations import SECOND
from streamer.failure import Origin
from streamer.http.connection import Connections
from streamer.http.dump import dumped
from streamer.http.errors import HttpError
from streamer.http.fields import (
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
from streamer.http.multipart import MultipartError, content_type, read_multipart
from streamer.http.request import PartTexts, Request, RequestMaker
from streamer.message import Batch, Execution, Message
from streamer.metafilter import MetadataFilter
from streamer.rate_limiting import RateLimit, wait_for_access
from streamer.redaction import scrub_urls
from streamer.spec import BuildContext, Kind, Parsed

if TYPE_CHECKING:
    import httpx2

    from streamer.deadline import Deadline

_BLOCK: Final = 64 << 10

# A code below 500 blames the request (RFC 9110, 15.5); these say that of all requests, whatever the
# message: who asks is not known or not allowed, has not paid, asks too often or too early, has been
# too slow, talks to another server or with another protocol, or something is locked for now.
_REFUSALS_OF_ALL: Final = frozenset({401, 402, 403, 407, 408, 421, 423, 424, 425, 426, 429, 499})

_REFUSALS_OF_URLS: Final = frozenset({404, 405, 410})
"""Codes that blame the URL: the message is to blame for them where it has one of its own."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server has answered.

    Attributes:
        status: the code.
        headers: names in lower case and values, in order.
        body: the body; empty while it is read bit by bit.
        response: the `httpx2.Response`.
        release: lets go of what it came over.
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

    def header(self, name: str) -> str:
        """Return a header's first value, by its name in lower case; empty without one."""
        return next((value for key, value in self.headers if key == name), "")

    def blocks(self) -> Iterator[bytes]:
        """Return the body as it comes, of an answer that is open.

        Raises:
            HttpError: the connection is lost.
        """
        import httpx2

        try:
            yield from self.response.iter_bytes(_BLOCK)
        except httpx2.HTTPError as error:
            raise HttpError(f"{scrub_urls(str(self.response.url))}: {_reason(error)}") from None


Pause = Callable[[Execution, int, int], bool]


def _sleep(ex: Execution, period: int, took: int) -> bool:
    ex.sleep(period)
    return True


class HttpClient:
    """Sends requests as the fields of `client_fields` say. Several threads may use it."""

    def __init__(
        self,
        parsed: Parsed,
        context: BuildContext,
        *,
        body: Interpolation | None = None,
        parts: Sequence[PartTexts] = (),
        repeats_rejected: bool = True,
        pause: Pause = _sleep,
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
        self._origin = Origin(context.component)
        self._extracted = MetadataFilter(parsed[EXTRACT_HEADERS])
        self._limit: RateLimit | None = None
        if parsed[RATE_LIMIT]:
            self._limit = context.resource(Kind.RATE_LIMIT, parsed[RATE_LIMIT])
        self._backoff, self._drop, self._fine = (
            frozenset(parsed[name]) for name in (BACKOFF_ON, DROP_ON, SUCCESSFUL_ON)
        )
        self._level = parsed[DUMP_LEVEL]

    def rejects(self, error: HttpError) -> bool:
        """Tell whether a request has failed for what it asks, so that no later try succeeds.

        Codes of `drop_on` are to count so, those of `backoff_on` not, whatever they are.
        """
        status = error.status
        if status is None or status in self._backoff:
            return error.invalid
        if status in self._drop:
            return True
        if status in _REFUSALS_OF_URLS:
            return self._maker.has_own_urls
        return 400 <= status <= 499 and status not in _REFUSALS_OF_ALL

    def send(self, batch: Batch, ex: Execution) -> Answer:
        """Send a batch as one request, as often as it takes, and return the answer.

        Raises:
            HttpError: the last try has failed, or the request cannot be made.
        """
        with self._tried(batch, ex, whole=True) as answer:
            return answer

    @contextmanager
    def open(self, batch: Batch, ex: Execution) -> Iterator[Answer]:
        """Send a batch as one request; while the block runs, the answer's body can be read.

        Raises:
            HttpError: the last try has failed, or the request cannot be made.
        """
        with self._tried(batch, ex, whole=False) as answer:
            yield answer

    def messages(self, answer: Answer) -> Batch:
        """Return what an answer has, a message for each part of its body.

        Each has `http_status_code`, and the headers that `extract_headers` takes, as metadata.

        Raises:
            HttpError: the body is not what its type says.
        """
        bodies = [answer.body]
        kind, parameters = content_type(answer.header("content-type"))
        if kind.startswith("multipart/"):
            try:
                parts = read_multipart(answer.body, parameters.get("boundary", ""))
            except MultipartError as error:
                raise HttpError(str(error), answer.status, answer.headers, answer.body) from None
            bodies = [body for _, body in parts]
        meta = {"http_status_code": answer.status, **self.extracted(answer.headers)}
        return [Message(body, meta) for body in bodies]

    def extracted(self, headers: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Return the metadata that `extract_headers` takes of headers, also of an error's."""
        found: dict[str, list[str]] = {}
        for name, value in headers:
            if self._extracted.takes(name):
                found.setdefault(name, []).append(value)
        return {name: values[0] if len(values) == 1 else values for name, values in found.items()}

    @contextmanager
    def _tried(self, batch: Batch, ex: Execution, whole: bool) -> Iterator[Answer]:
        parsed = self._parsed
        period, longest = parsed[RETRY_PERIOD] or 0, parsed[MAX_RETRY_BACKOFF] or 0
        left = parsed[RETRIES]
        repeated = False
        while True:
            request = self._maker.make(batch, ex)
            if self._limit is not None:
                wait_for_access(self._limit, ex)
            try:
                began = ex.elapsed()
                answer = self._once(request, ex, whole)
                break
            except HttpError as error:
                if error.status in self._backoff and repeated:
                    period = min(period * 2, max(longest, period))
                took = ex.elapsed() - began
                final = error.invalid or error.status in self._drop
                final = final or (not self._repeats_rejected and self.rejects(error))
                if left <= 0 or final or not self._pause(ex, period, took):
                    raise HttpError(
                        f"{scrub_urls(request.url)}: {error}",
                        error.status,
                        error.headers,
                        error.body,
                        invalid=error.invalid,
                    ) from None
            left -= 1
            repeated = True
        try:
            yield answer
        finally:
            answer.close()

    def _once(self, request: Request, ex: Execution, whole: bool) -> Answer:
        """Send a request once; an answer that is no success is an error."""
        began = ex.elapsed()
        try:
            answer = self._exchange(request, ex, whole)
        finally:
            _, label, path = self._origin.key
            ex.tally(("http_request", label, path)).timed(ex.elapsed() - began, 1)
        ex.count(f"http_request_code_{answer.status // 100}xx", 1, **self._origin.fields)
        if self._succeeded(answer.status):
            return answer
        body = answer.body
        try:
            if not whole:
                body = b"".join(answer.blocks())
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

    def _exchange(self, request: Request, ex: Execution, whole: bool) -> Answer:
        import httpx2

        connections = self._context.lasting("connections", lambda: Connections(self._parsed))
        taken = connections.take()
        client, deadline = taken
        began = time.monotonic()
        response: httpx2.Response | None = None
        headers, failure, body = list(request.headers), "", b""
        invalid = False
        try:
            headers += _signed(connections, client, request)
            made = client.build_request(
                request.method,
                request.url,
                content=request.body,
                headers=[(k.encode(), v.encode("utf-8", "replace")) for k, v in headers],
            )
            response = client.send(made, stream=True)
            if whole:
                body = self._read(response, deadline)
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            late = deadline.is_over or isinstance(error, httpx2.TimeoutException)
            failure = self._late(response) if late and self._parsed[TIMEOUT] else _reason(error)
            unusable = (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError)
            values = isinstance(error, unusable) or not isinstance(error, httpx2.HTTPError)
            invalid = values and response is None and self._maker.depends_on_message
        except BaseException:
            client.close()
            raise
        found = [] if response is None else _headers(response)
        if self._level:
            took = round((time.monotonic() - began) * 1e9)
            code = None if response is None else response.status_code
            fields = dumped(request, headers, took, code, found, body, failure)
            level = "ERROR" if self._level == "FATAL" else self._level
            ex.log(level, "http request log", {**self._origin.fields, "access_log": fields})
        if response is None or failure:
            if response is not None:
                response.close()
            connections.give(taken)
            raise HttpError(failure, invalid=invalid)
        return Answer(response.status_code, found, body, response, lambda: connections.give(taken))

    def _read(self, response: httpx2.Response, deadline: Deadline) -> bytes:
        """Read a body, for which there is no more time than for the whole request."""
        import httpx2

        blocks = []
        for block in response.iter_bytes(_BLOCK):
            blocks.append(block)
            # What is inflated from little takes time too.
            if deadline.is_over:
                raise httpx2.ReadTimeout("timed out")
        return b"".join(blocks)

    def _late(self, response: httpx2.Response | None) -> str:
        """Return what is said of an exchange whose time is over."""
        seconds = self._parsed[TIMEOUT] / SECOND
        what = "waiting for the answer" if response is None else "reading the body"
        return f"timed out while {what}: it is not whole within {seconds:g} s (timeout)"

    def _succeeded(self, status: int) -> bool:
        if status in self._drop or status in self._backoff:
            return False
        if status in self._fine or 200 <= status <= 299:
            return True
        return 300 <= status <= 399 and not self._parsed[FOLLOW_REDIRECTS]


def _signed(
    connections: Connections, client: httpx2.Client, request: Request
) -> list[tuple[str, str]]:
    found = connections.signer.header(request.method, request.url)
    if connections.tokens is not None:
        # The client of OAuth 2 stands around all else in Benthos, so it has the last word.
        found = connections.tokens.header(client)
    return [] if found is None else [("Authorization", found)]


def _headers(response: httpx2.Response) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in response.headers.multi_items()]


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
