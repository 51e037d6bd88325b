"""`http_server`: "sets up an HTTP server that will send messages over HTTP(S) GET requests"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from streamer.connectors.http_server.fields import (
    SERVER_FIELDS,
    address_field,
    path_field,
    server_problems,
)
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec, duration_field

PATH: Final = "path"
STREAM_PATH: Final = "stream_path"
WS_PATH: Final = "ws_path"
ALLOWED_VERBS: Final = "allowed_verbs"
TIMEOUT: Final = "timeout"


def _problems(parsed: Any) -> Iterable[tuple[str, str]]:
    if not parsed[ALLOWED_VERBS]:
        yield ALLOWED_VERBS, "is empty; expected at least one verb, such as GET"
    if not (parsed[PATH] or parsed[STREAM_PATH] or parsed[WS_PATH]):
        yield "", "has no path; expected one of path, stream_path and ws_path at least"
    for first, second in ((PATH, STREAM_PATH), (PATH, WS_PATH), (STREAM_PATH, WS_PATH)):
        if parsed[second] and parsed[first] == parsed[second]:
            yield second, f"is {parsed[first]}, as {first} is; expected another one, or none"
    yield from server_problems(parsed, "the output's own: give one")


SPEC: Final = Spec(
    Kind.OUTPUT,
    "http_server",
    "Serves messages over HTTP, one by one, as a stream of lines, or by a WebSocket.",
    description=(
        "Without an `address` the stream's own HTTP server (section `http`) serves the paths. "
        "Each batch goes to one client, the first that requests it; a batch of several "
        "messages is a multipart body. The stream waits until its messages are fetched, and a "
        "batch counts as delivered when it is written to the connection. If the program stops "
        "in the middle of a micro-batch, all its messages are served again at the next start, "
        "including fetched ones."
    ),
    fields=(
        address_field("0.0.0.0:4197"),
        path_field(PATH, "The path where a batch can be fetched.", "/get"),
        path_field(
            STREAM_PATH, "The path of an endless response, a line for each message.", "/get/stream"
        ),
        path_field(WS_PATH, "The path of WebSockets: each message is one.", "/get/ws"),
        Field(
            ALLOWED_VERBS,
            "string",
            "The methods of requests to `path` and `stream_path`.",
            default=("GET",),
            shape="array",
        ),
        duration_field(
            TIMEOUT,
            "Time for which a request to `path` waits for a message before it is answered "
            "with 408.",
            default="5s",
            advanced=True,
        ),
        *SERVER_FIELDS,
    ),
    check=_problems,
    examples=(
        Example(
            "On a port of its own",
            "output:\n  http_server:\n    address: localhost:4197\n    path: /next\n",
        ),
    ),
    categories=("Network",),
    runs="driver",
    delivery="at least once: a batch goes to one who asks, when it is written to the connection",
)


class HttpServerOutput:
    """Gives batches to the driver, which serves them.

    Attributes:
        append: always False: batches are kept apart.
    """

    append: Final = False
    ignores_batches: Final = False

    def encode(self, batch: Batch, ex: Execution) -> list[tuple[str, bytes]]:
        """Return the batch as one item."""
        import msgpack

        return [("", msgpack.packb([message.raw for message in batch]))]


def build(parsed: ParsedFields, context: BuildContext) -> HttpServerOutput:
    """Make one; the driver reads the fields when it begins to listen."""
    return HttpServerOutput()
