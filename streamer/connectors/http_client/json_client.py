"""A client of an API that takes and gives JSON: bounded answers, and pauses that a server asks for.

client = JsonClient("https://api.example.com/v1", {"Authorization": f"Bearer {key}"})
document = client.post("/embeddings", {"input": ["a"]}, ex)        # ApiError when it has failed
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.http_client.auth_fields import BASIC_AUTH, JWT, OAUTH, OAUTH2
from streamer.connectors.http_client.connection import Connection, ConnectionPool
from streamer.connectors.http_client.fields import (
    DISABLE_HTTP2,
    FOLLOW_REDIRECTS,
    PROXY_URL,
    TIMEOUT,
)
from streamer.connectors.http_client.multipart import Part, write_multipart
from streamer.connectors.tls import ENABLED, TLS
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.json.parse import parse_json
from streamer.core.permissions import ALL, Permissions
from streamer.core.redaction import redact_urls
from streamer.sdk.output.wait_budget import pause_own_try
from streamer.sdk.spec import ParsedFields

if TYPE_CHECKING:
    import httpx2

MAX_ANSWER_BYTES: Final = 64 << 20
LONGEST_PAUSE_S: Final = 60.0
"""A server that asks for a longer pause than this is not asked again: the request has failed."""

_PAUSES_S: Final = (0.5, 2.0, 8.0)
MAX_TRIES: Final = len(_PAUSES_S) + 1
_CONTENT_TYPE: Final = "Content-Type"
_BLOCK_BYTES: Final = 64 << 10
_SHOWN_CHARACTERS: Final = 300
_REPEATED_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
_REJECTED_STATUSES: Final = frozenset({400, 409, 413, 414, 415, 422})
_TOO_LARGE_STATUSES: Final = frozenset({413, 414})


class ApiError(StreamerError):
    """A request has no answer, or one that says that it has failed.

    Attributes:
        status: the code of the answer; None without one.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status

    @property
    def is_rejected(self) -> bool:
        """Whether the request was refused for what it has, so that no later try succeeds."""
        return self.status in _REJECTED_STATUSES

    @property
    def is_too_large(self) -> bool:
        """Whether the request was refused for its size."""
        return self.status in _TOO_LARGE_STATUSES


class JsonClient:
    """Sends documents to one server. Threads may share it, and its pauses are for all."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        timeout_s: float,
        permissions: Permissions = ALL,
        is_of_output: bool = False,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """Set up; nothing is connected before the first request.

        Args:
            url: what the paths of requests come behind.
            headers: of every request; they may have secrets, and are never shown.
            timeout_s: how long one exchange may take.
            permissions: to which addresses it may connect.
            is_of_output: whether an output sends by it, which leaves further tries to the stream,
                and pauses no longer than a task may wait.
            wall_clock: gives seconds since the Unix epoch.
        """
        settings = {
            **{TLS: ParsedFields({ENABLED: False}), OAUTH: None, OAUTH2: None, JWT: None},
            **{BASIC_AUTH: None, PROXY_URL: "", DISABLE_HTTP2: True, FOLLOW_REDIRECTS: False},
            TIMEOUT: round(timeout_s * SECOND),
        }
        fields = ParsedFields(settings)
        fields.permissions = permissions
        self._pool = ConnectionPool(fields)
        self._url = url.rstrip("/")
        self._headers = {_CONTENT_TYPE: "application/json", **headers}
        self._timeout_s = timeout_s
        self._is_of_output = is_of_output
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._paused_until = 0

    def post(self, path: str, document: Any, ex: Execution) -> Any:
        """Send a document, and return that of the answer; repeated while the server is busy.

        Raises:
            ApiError: the last try has failed, or the server refuses the request.
        """
        status, body = self._request(path, dump_json(document), {}, ex)
        return _read_document(body, self._shown_url(path), status)

    def post_for_bytes(self, path: str, document: Any, ex: Execution) -> bytes:
        """Send a document, and return the answer as it is; see `post`."""
        return self._request(path, dump_json(document), {}, ex)[1]

    def post_parts(self, path: str, parts: Iterable[Part], ex: Execution) -> Any:
        """Send the parts of a form, and return the document of the answer; see `post`."""
        content, kind = write_multipart(parts)
        status, body = self._request(path, content, {_CONTENT_TYPE: kind}, ex)
        return _read_document(body, self._shown_url(path), status)

    def probe(self, path: str) -> str:
        """Request a path once, for a dry run.

        Raises:
            ApiError: the server is not there, or refuses who asks.
        """
        status, _, body = self._exchange("GET", path, None, {})
        if status in (401, 403) or status >= 500:
            raise ApiError(f"{self._shown_url(path)}: {_describe(status, body)}", status)
        return f"{redact_urls(self._url)} answers"

    def _request(
        self, path: str, content: bytes, headers: Mapping[str, str], ex: Execution
    ) -> tuple[int, bytes]:
        """Send content; return the status and the body of an answer that is no failure."""
        pauses = () if self._is_of_output else _PAUSES_S
        for pause in (*pauses, None):
            self._wait(ex)
            try:
                status, answered, body = self._exchange("POST", path, content, headers)
            except ApiError as error:
                if pause is None or error.status is not None:
                    raise
                self._pause(pause, ex)
                continue
            if status < 300:
                return status, body
            refusal = ApiError(f"{self._shown_url(path)}: {_describe(status, body)}", status)
            if status not in _REPEATED_STATUSES:
                raise refusal
            requested = _requested_pause(answered, self._wall_clock())
            if requested is not None and requested > LONGEST_PAUSE_S:
                raise ApiError(
                    f"{refusal}; the server asks for a pause of {requested:.0f} s", status
                )
            self._pause(requested or pause or 0.0, ex)
            if pause is None:
                raise refusal
        raise AssertionError("the last try returns or raises")

    def _pause(self, seconds: float, ex: Execution) -> None:
        with self._lock:
            until = ex.elapsed() + round(seconds * SECOND)
            self._paused_until = max(self._paused_until, until)

    def _wait(self, ex: Execution) -> None:
        """Wait until no pause is left, also of those that other threads begin meanwhile."""
        until = ex.elapsed() + round(2 * LONGEST_PAUSE_S * SECOND)
        while True:
            with self._lock:
                left = min(self._paused_until, until) - ex.elapsed()
            if left <= 0:
                return
            if not self._is_of_output:
                ex.sleep(left)
            elif not pause_own_try(ex, left):
                raise ApiError(
                    f"{redact_urls(self._url)} asks for a pause of {left / SECOND:.0f} s"
                )

    def _exchange(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, httpx2.Headers, bytes]:
        import httpx2

        connection = self._pool.acquire()
        try:
            with connection.client.stream(
                method, self._url + path, headers={**self._headers, **headers}, content=content
            ) as answer:
                return answer.status_code, answer.headers, self._read(answer, connection, path)
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError) as error:
            late = connection.deadline.has_expired or isinstance(error, httpx2.TimeoutException)
            why = f"no whole answer within {self._timeout_s:g} s" if late else _error_text(error)
            raise ApiError(f"{self._shown_url(path)}: {why}") from None
        finally:
            self._pool.release(connection)

    def _read(self, answer: httpx2.Response, connection: Connection, path: str) -> bytes:
        import httpx2

        blocks, size = [], 0
        for block in answer.iter_bytes(_BLOCK_BYTES):
            size += len(block)
            if size > MAX_ANSWER_BYTES:
                raise ApiError(
                    f"{self._shown_url(path)}: the answer has more than {MAX_ANSWER_BYTES} bytes",
                    answer.status_code,
                )
            if connection.deadline.has_expired:
                raise httpx2.ReadTimeout("timed out")
            blocks.append(block)
        return b"".join(blocks)

    def _shown_url(self, path: str) -> str:
        return redact_urls(self._url + path)


def _error_text(error: Exception) -> str:
    return str(error) or type(error).__name__


def _describe(status: int, body: bytes) -> str:
    """Return what an answer that is no success says: the words of its document where it has any."""
    text = body.decode(errors="replace").strip()
    try:
        document = parse_json(body)
    except ValueError:
        document = None
    if isinstance(document, dict):
        inner = document.get("error", document.get("message"))
        inner = inner.get("message", inner) if isinstance(inner, dict) else inner
        text = inner if isinstance(inner, str) and inner else text
    shown = " ".join(text.split())[:_SHOWN_CHARACTERS]
    return f"status {status}{': ' if shown else ''}{shown}"


def _read_document(body: bytes, url: str, status: int) -> Any:
    try:
        return parse_json(body)
    except ValueError:
        shown = " ".join(body[:_SHOWN_CHARACTERS].decode(errors="replace").split())
        raise ApiError(
            f"{url}: the answer is no JSON document; expected the URL of the API, found: {shown}",
            status,
        ) from None


def _requested_pause(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that a server wants to be left alone (RFC 9110, 10.2.3), or None.

    >>> _requested_pause({"retry-after": "7"}, 0.0)
    7.0
    >>> _requested_pause({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, 10.0)
    20.0
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        text = headers.get(name, "")
        try:
            seconds = float(text) * unit
        except ValueError:
            continue
        return max(seconds, 0.0) if seconds == seconds else None
    try:
        return max(parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now, 0.0)
    except (TypeError, ValueError, OverflowError):
        return None
