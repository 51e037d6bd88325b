"""The `http_client` input: makes requests over and over, or reads one answer that goes on and on.

What is answered is on disk, in the spool of the checkpoint, before the next request is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.http_client.client import HttpClient, HttpResponse
from streamer.connectors.http_client.errors import HttpError
from streamer.connectors.http_client.fields import TIMEOUT, client_fields, client_problems
from streamer.connectors.spool.blocks import pack_batch
from streamer.connectors.spool.connection_state import ConnectionState
from streamer.connectors.spool.driver_reader import (
    batches_of_chunk,
    make_execution,
    records_of_batches,
    report_stats,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.spool_writer import (
    FIRST_BACKOFF_S,
    MAX_BACKOFF_S,
    SpoolWriter,
    StreamStoppedError,
    connect_with_retry,
)
from streamer.connectors.spool.store import SpoolStore
from streamer.core.execution import Execution
from streamer.core.message import NO_META, Batch, Message
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.input.scanning import ScanInput
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS, AUTO_REPLAY_NACKS_FIELD
from streamer.sdk.spec.scanner_fields import SCANNER_FIELDS, build_scanner

PAYLOAD: Final = "payload"
DROP_EMPTY_BODIES: Final = "drop_empty_bodies"
STREAM: Final = "stream"
ENABLED: Final = "enabled"
RECONNECT: Final = "reconnect"
_SCANNER_FIELDS: Final = tuple(one for one in SCANNER_FIELDS if one.name != AUTO_REPLAY_NACKS)

SPEC: Final = Spec(
    Kind.INPUT,
    "http_client",
    "Makes requests over and over, and a message of each answer.",
    description=(
        "The next request is made when the previous response is safe on disk; a `rate_limit` "
        "sets the pace. `url`, `headers` and `payload` may use the previous response, for "
        "example to request page after page. Without a `payload`, the previous response is "
        "also the body of the request, as in Benthos. The parts of a multipart response are a "
        "batch.\n"
        "\n"
        "With `stream.enabled`, the body of one response is read until it ends, and a scanner "
        "divides it into messages. Messages in transit during a crash are lost."
    ),
    fields=(
        *client_fields("GET"),
        Field(
            PAYLOAD,
            "string",
            "The body of each request.",
            optional=True,
            interpolated=True,
        ),
        Field(
            DROP_EMPTY_BODIES,
            "bool",
            "Leave out answers and messages without content.",
            default=True,
            advanced=True,
        ),
        Field(
            STREAM,
            "object",
            "Reading an answer that goes on.",
            children=(
                Field(ENABLED, "bool", "True to read responses as streams.", default=False),
                Field(
                    RECONNECT,
                    "bool",
                    "Ask again when an answer ends; otherwise the input ends with it.",
                    default=True,
                ),
                *_SCANNER_FIELDS,
            ),
        ),
        AUTO_REPLAY_NACKS_FIELD,
    ),
    check=client_problems,
    examples=(
        Example(
            "Ask once a minute",
            "input:\n"
            "  http_client:\n"
            "    url: https://api.example.com/search?since=${! timestamp_unix() - 60 }\n"
            "    rate_limit: once_a_minute\n"
            "rate_limit_resources:\n"
            "  - label: once_a_minute\n"
            "    local: { count: 1, interval: 1m }\n",
        ),
    ),
    categories=("Network",),
    delivery="at most once until it is on the driver's disk, at least once from there on",
)


@dataclass(frozen=True)
class HttpClientInput:
    """The input before it is opened.

    Attributes:
        client: makes requests.
        drops_empty: whether what has no content is left out.
        scanner: cuts answers that go on, or None.
        reconnects: whether such an answer is asked for again when it ends.
    """

    client: HttpClient
    drops_empty: bool
    scanner: Any
    reconnects: bool

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to send requests; return the source of what the spool holds."""
        store = SpoolStore.for_input(context)
        if store.was_ended and self.scanner is not None and not self.reconnects:
            store.close()
        else:
            poller = _Poller(self, context, store)
            run = poller.poll if self.scanner is None else poller.stream
            context.start("http_client", run)
        return SpoolSource.for_input(context)


class _Poller:
    """One run of the input, which knows what was answered last."""

    def __init__(self, spec: HttpClientInput, context: InputContext, store: SpoolStore) -> None:
        self._of = spec
        self._context = context
        self._store = store
        self._spool_writer = SpoolWriter(context, store)
        self._last_answer: Batch = []

    def poll(self) -> None:
        """Make requests until the stream stops."""
        pause = FIRST_BACKOFF_S
        connecting = ConnectionState(self._context, "http_client")
        while not self._context.stopping:
            try:
                if self._request(connecting.set_connected):
                    pause = FIRST_BACKOFF_S
                    continue
            except StreamStoppedError:
                return
            except HttpError as e:
                self._context.log("ERROR", f"Failed to read message: {e}", {})
                connecting.set_failed(e)
            self._context.wait(pause)
            pause = min(pause * 2, MAX_BACKOFF_S)

    def _request(self, up: Callable[[], None]) -> bool:
        """Make a request; return whether there was something in the answer."""
        ex = make_execution(self._context)
        try:
            messages = self._of.client.messages_of(self._of.client.send(self._last_answer, ex))
        finally:
            report_stats(self._context, ex)
        up()
        if not messages or (len(messages) == 1 and self._is_dropped(messages[0])):
            return False
        self._last_answer = messages
        self._spool_writer.put(pack_batch(messages))
        return True

    def stream(self) -> None:
        """Read answers that go on, until the stream stops or one ends that is the last."""
        ended = False

        def attempt(up: Callable[[], None]) -> None:
            nonlocal ended
            ex = make_execution(self._context)
            with self._of.client.open(self._last_answer, ex) as answer:
                up()
                metadata: dict[str, Any] = {}
                for name, value in answer.headers:
                    metadata.setdefault(name, value)
                self._last_answer = [Message(b"", metadata)]
                self._read(answer, ex)
            report_stats(self._context, ex)
            if not self._of.reconnects:
                ended = True
                raise StreamStoppedError

        connect_with_retry(self._context, "http_client", attempt)
        if ended and not self._context.stopping:
            self._store.close()

    def _read(self, answer: HttpResponse, ex: Execution) -> None:
        opened = ScanInput(_BodyStream(answer), "http_client", NO_META, ex)
        for cut in self._of.scanner.scan_stream(opened):
            batches = [
                one
                for one in batches_of_chunk(cut.chunk)
                if one and not (len(one) == 1 and self._is_dropped(one[0]))
            ]
            for record in records_of_batches(batches):
                self._spool_writer.put(record)
            if batches:
                self._last_answer = batches[-1]

    def _is_dropped(self, message: Message) -> bool:
        return self._of.drops_empty and not message.raw


class _BodyStream:
    """The body of an answer as a stream of bytes, as they come."""

    def __init__(self, answer: HttpResponse) -> None:
        self._blocks = _iter_body(answer)
        self._rest = b""

    def read(self, size: int, /) -> bytes:
        """Return what there is; nothing at the end."""
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return b""
            self._rest = block
        head, self._rest = self._rest[:size], self._rest[size:]
        return head


def _iter_body(answer: HttpResponse) -> Iterator[bytes]:
    import httpx2

    try:
        yield from answer.response.iter_bytes()
    except httpx2.HTTPError as e:
        raise HttpError(f"the answer was cut off: {e}") from None


def build(parsed: ParsedFields, context: BuildContext) -> HttpClientInput:
    """Make the client; nothing is asked before the input is opened."""
    stream = parsed[STREAM]
    streams = bool(stream[ENABLED])
    # An answer that goes on has all the time there is.
    fields = ParsedFields({**parsed, TIMEOUT: None}) if streams else parsed
    payload = compile_interpolation(parsed[PAYLOAD]) if parsed[PAYLOAD] else None
    return HttpClientInput(
        HttpClient(fields, context, body=payload),
        parsed[DROP_EMPTY_BODIES],
        build_scanner(stream, context) if streams else None,
        stream[RECONNECT],
    )
