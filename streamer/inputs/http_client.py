"""The `http_client` input: makes requests over and over, or reads one answer that goes on and on.

What is answered is on disk, in the spool of the checkpoint, before the next request is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.http.client import Answer, HttpClient
from streamer.http.errors import HttpError
from streamer.http.fields import TIMEOUT, client_fields, client_problems
from streamer.landing.blocks import batch
from streamer.landing.connecting import Connecting
from streamer.landing.following import batches_of, execution, records_of, told
from streamer.landing.landed import Landed
from streamer.landing.lander import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    Lander,
    StoppedError,
    connected,
)
from streamer.landing.store import Store
from streamer.message import NO_META, Batch, Execution, Message
from streamer.source.opening import Room
from streamer.source.scanning import Opened
from streamer.spec import BuildContext, Example, Field, Kind, Parsed, Spec
from streamer.spec.nacks import AUTO_REPLAY_NACKS, AUTO_REPLAY_NACKS_FIELD
from streamer.spec.scanned import SCANNED_FIELDS, build_scanner

PAYLOAD: Final = "payload"
DROP_EMPTY_BODIES: Final = "drop_empty_bodies"
STREAM: Final = "stream"
ENABLED: Final = "enabled"
RECONNECT: Final = "reconnect"
_CUT: Final = tuple(one for one in SCANNED_FIELDS if one.name != AUTO_REPLAY_NACKS)

SPEC: Final = Spec(
    Kind.INPUT,
    "http_client",
    "Makes requests over and over, and a message of each answer.",
    description=(
        "The next request is made when the answer to the last one is safe on disk; a `rate_limit` "
        "says how often. `url`, `headers` and `payload` may look at the answer before, which is "
        "how pages are asked for one after another; without a `payload` it is also the body of "
        "the request, as in Benthos. The parts of a multipart answer are a batch.\n\n"
        "With `stream.enabled` the body of one answer is read for as long as it goes on, and a "
        "scanner cuts it into messages. What was sent and not yet received at a crash is lost."
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
                Field(ENABLED, "bool", "Whether answers are read so.", default=False),
                Field(
                    RECONNECT,
                    "bool",
                    "Ask again when an answer ends; otherwise the input ends with it.",
                    default=True,
                ),
                *_CUT,
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

    def opened(self, room: Room) -> Landed:
        """Begin to ask; return what has landed."""
        store = Store(room.directory, room.spool_limit)
        if store.was_closed and self.scanner is not None and not self.reconnects:
            store.close()
        else:
            asking = _Asking(self, room, store)
            run = asking.ask if self.scanner is None else asking.stream
            room.start("http_client", run)
        return Landed(room.directory, inside=not room.local)


class _Asking:
    """One run of the input, which knows what was answered last."""

    def __init__(self, of: HttpClientInput, room: Room, store: Store) -> None:
        self._of = of
        self._room = room
        self._store = store
        self._lander = Lander(room, store)
        self._before: Batch = []

    def ask(self) -> None:
        """Make requests until the stream stops."""
        pause = FIRST_PAUSE
        connecting = Connecting(self._room, "http_client")
        while not self._room.stopping:
            try:
                if self._request(connecting.up):
                    pause = FIRST_PAUSE
                    continue
            except StoppedError:
                return
            except HttpError as e:
                self._room.log("ERROR", f"Failed to read message: {e}", {})
                connecting.failed(e)
            self._room.wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _request(self, up: Callable[[], None]) -> bool:
        """Make a request; return whether there was something in the answer."""
        ex = execution(self._room)
        try:
            messages = self._of.client.messages(self._of.client.send(self._before, ex))
        finally:
            told(self._room, ex)
        up()
        if not messages or (len(messages) == 1 and self._drops(messages[0])):
            return False
        self._before = messages
        self._lander.put(batch(messages))
        return True

    def stream(self) -> None:
        """Read answers that go on, until the stream stops or one ends that is the last."""
        ended = False

        def attempt(up: Callable[[], None]) -> None:
            nonlocal ended
            ex = execution(self._room)
            with self._of.client.open(self._before, ex) as answer:
                up()
                said: dict[str, Any] = {}
                for name, value in answer.headers:
                    said.setdefault(name, value)
                self._before = [Message(b"", said)]
                self._read(answer, ex)
            told(self._room, ex)
            if not self._of.reconnects:
                ended = True
                raise StoppedError

        connected(self._room, "http_client", attempt)
        if ended and not self._room.stopping:
            self._store.close()

    def _read(self, answer: Answer, ex: Execution) -> None:
        opened = Opened(_Blocks(answer), "http_client", NO_META, ex)
        for cut in self._of.scanner.cuts(opened):
            batches = [
                one
                for one in batches_of(cut.chunk)
                if one and not (len(one) == 1 and self._drops(one[0]))
            ]
            for record in records_of(batches):
                self._lander.put(record)
            if batches:
                self._before = batches[-1]

    def _drops(self, message: Message) -> bool:
        return self._of.drops_empty and not message.raw


class _Blocks:
    """The body of an answer as a stream of bytes, as they come."""

    def __init__(self, answer: Answer) -> None:
        self._blocks = _bytes_of(answer)
        self._held = b""

    def read(self, size: int, /) -> bytes:
        """Return what there is; nothing at the end."""
        while not self._held:
            block = next(self._blocks, None)
            if block is None:
                return b""
            self._held = block
        found, self._held = self._held[:size], self._held[size:]
        return found


def _bytes_of(answer: Answer) -> Iterator[bytes]:
    import httpx2

    try:
        yield from answer.response.iter_bytes()
    except httpx2.HTTPError as e:
        raise HttpError(f"the answer was cut off: {e}") from None


def build(parsed: Parsed, context: BuildContext) -> HttpClientInput:
    """Make the client; nothing is asked before the input is opened."""
    stream = parsed[STREAM]
    streams = bool(stream[ENABLED])
    # An answer that goes on has all the time there is.
    fields = Parsed({**parsed, TIMEOUT: None}) if streams else parsed
    payload = compile_interpolation(parsed[PAYLOAD]) if parsed[PAYLOAD] else None
    return HttpClientInput(
        HttpClient(fields, context, body=payload),
        parsed[DROP_EMPTY_BODIES],
        build_scanner(stream, context) if streams else None,
        stream[RECONNECT],
    )
