"""The `http_server` input: "Receive messages POSTed over HTTP(S)", and over WebSockets.

A request has its 200 when its messages are safe on disk, in the spool of the checkpoint: the disk
is synced once for all requests that came meanwhile. Where the config has a `sync_response`, it is
held open until its messages have been through the pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.http_server.fields import (
    ADDRESS,
    CERT_FILE,
    CORS,
    KEY_FILE,
    SERVER_FIELDS,
    address_field,
    path_field,
    server_problems,
)
from streamer.connectors.spool.sockets import TCP, TCP_FIELD, bind_socket
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.connectors.spool.store import SpoolStore
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.metadata_filter import MetadataFilter, metadata_filter_field
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec, duration_field

if TYPE_CHECKING:
    from streamer.connectors.http_server.http_receiver import HttpReceiver

PATH: Final = "path"
WS_PATH: Final = "ws_path"
WS_WELCOME_MESSAGE: Final = "ws_welcome_message"
WS_RATE_LIMIT_MESSAGE: Final = "ws_rate_limit_message"
ALLOWED_VERBS: Final = "allowed_verbs"
TIMEOUT: Final = "timeout"
RATE_LIMIT: Final = "rate_limit"
SYNC_RESPONSE: Final = "sync_response"
SCANNER: Final = "scanner"
MAX_BODY_SIZE: Final = "max_body_size"
MAX_PARTS: Final = "max_parts"


def _positive_problem(value: int) -> str | None:
    return None if value > 0 else f"is {value}; expected 1 or more"


def _check(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    if not parsed[ALLOWED_VERBS]:
        yield ALLOWED_VERBS, "is empty; expected at least one verb, such as POST"
    if not (parsed[PATH] or parsed[WS_PATH]):
        yield "", "has neither a path nor a ws_path; expected one of them at least"
    if parsed[PATH] and parsed[PATH] == parsed[WS_PATH]:
        yield WS_PATH, f"is {parsed[PATH]}, as path is; expected another one, or an empty text"
    yield from server_problems(parsed, "the input's own: give an address")


SPEC: Final = Spec(
    Kind.INPUT,
    "http_server",
    "Receives messages over HTTP, HTTPS and WebSockets.",
    description=(
        "Without an `address` the stream's own HTTP server (section `http`) serves the paths. "
        "A path may have parameters, `/{name}/post`, which become metadata. A path that ends "
        "in `/` includes all paths below it. The body of a request is one message; the parts "
        "of a multipart body are a batch. A `scanner` divides a body into messages; each one "
        "is a batch.\n"
        "\n"
        "A request gets 200 when its messages are safe on disk, before they are processed. It "
        "gets `429` with `Retry-After` if too many messages wait or the rate limit is "
        "reached. It gets `503` if the disk is full, if the program stops or, with "
        "`Retry-After`, if the stream is starting.\n"
        "\n"
        "If the config has a `sync_response`, a request waits until its messages have passed "
        "the pipeline and gets their response, or `408` after `timeout`; with windows, "
        "requests do not wait. A request also waits if the config rejects messages "
        "(`reject_errored`, `reject`, a `switch` with `strict_mode`, `error_handling.strict`) "
        "and no output catches them: it then gets `200`, or `502` with the reason.\n"
        "\n"
        "Metadata: `http_server_user_agent`, `http_server_request_path`, `http_server_verb`, "
        "`http_server_remote_ip`, with TLS `http_server_tls_version` and "
        "`http_server_tls_cipher_suite`; all headers, query parameters, parameters of the "
        "path and cookies; for waiting requests `http_server_request_id`, which a mapping "
        "must not remove before the response. HTTP/2 is not supported."
    ),
    fields=(
        address_field("0.0.0.0:4196"),
        path_field(PATH, "The path that messages are sent to.", "/post"),
        path_field(
            WS_PATH, "The path of WebSockets: each message of one is a message.", "/post/ws"
        ),
        Field(
            WS_WELCOME_MESSAGE,
            "string",
            "First message to a new WebSocket.",
            default="",
            advanced=True,
        ),
        Field(
            WS_RATE_LIMIT_MESSAGE,
            "string",
            "Answer to a WebSocket for a message above the rate limit.",
            default="",
            advanced=True,
        ),
        Field(
            ALLOWED_VERBS,
            "string",
            "Accepted methods of requests.",
            default=("POST",),
            shape="array",
        ),
        duration_field(
            TIMEOUT,
            "Maximum duration of a request. After it the sender gets a 408. The request is "
            "discarded, unless it waits for a `sync_response`.",
            default="5s",
        ),
        Field(
            MAX_BODY_SIZE,
            "int",
            "Maximum size of the body of a request, or of a decompressed message of a "
            "WebSocket, in bytes. A larger request is answered with 413, and a WebSocket is "
            "closed with 1009; nothing of it is taken. Not in Benthos.",
            default=64 << 20,
            check=_positive_problem,
            advanced=True,
        ),
        Field(
            MAX_PARTS,
            "int",
            "Maximum number of parts of a multipart body; a request with more is answered "
            "with 413. Not in Benthos.",
            default=10_000,
            check=_positive_problem,
            advanced=True,
        ),
        Field(
            RATE_LIMIT,
            "string",
            "The label of a rate limit for requests, and for messages of WebSockets.",
            default="",
            refers=Kind.RATE_LIMIT,
        ),
        *SERVER_FIELDS,
        Field(
            SYNC_RESPONSE,
            "object",
            "Format of the response to a `sync_response`.",
            advanced=True,
            children=(
                Field(
                    "status",
                    "string",
                    "The status.",
                    default="200",
                    interpolated=True,
                    examples=('${! json("status") }', '${! meta("status") }'),
                ),
                Field(
                    "headers",
                    "string",
                    "Headers.",
                    default={"Content-Type": "application/octet-stream"},
                    shape="map",
                    interpolated=True,
                    credentials=True,
                ),
                metadata_filter_field(
                    "metadata_headers", "Which metadata is sent back as headers."
                ),
            ),
        ),
        TCP_FIELD,
        Field(
            SCANNER,
            "scanner",
            "Cuts bodies into messages; ours, not in Benthos.",
            optional=True,
            advanced=True,
        ),
    ),
    check=_check,
    categories=("Network",),
    delivery="at least once: answered when messages are on the driver's disk",
    limits="no HTTP/2",
)


@dataclass(frozen=True)
class HttpServerInput:
    """The input before it is opened.

    Attributes:
        parsed: its fields.
        limit: the rate limit, or None.
        scanner: cuts bodies, or None.
        file: the file that it stands in.
    """

    parsed: ParsedFields
    limit: Any
    scanner: Any
    file: str = ""

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to listen; return the source of what the spool holds.

        Raises:
            StreamerError: the address cannot be listened on, or there is no server to use.
        """
        # Imported here: linting a config should not wait for aiohttp.
        from streamer.connectors.http_server.http_receiver import (
            serve_alone,
            serve_on_stream_server,
        )

        parsed, receiver = self.parsed, self._make_receiver(context)
        handlers = ((parsed[PATH], receiver.post), (parsed[WS_PATH], receiver.websocket))
        paths = {path: handler for path, handler in handlers if path}
        if parsed[ADDRESS]:
            tcp, cors = parsed[TCP], parsed[CORS]
            serve_alone(
                context,
                paths,
                address=parsed[ADDRESS],
                cert_file=parsed.permissions.file(parsed[CERT_FILE]),
                key_file=parsed.permissions.file(parsed[KEY_FILE]),
                origins=frozenset(cors["allowed_origins"]) if cors["enabled"] else None,
                reuse_port=bool(tcp and tcp["reuse_port"]),
            )
        elif context.endpoints is None or not context.endpoints.served:
            raise StreamerError(
                "the input http_server has no address, and there is no HTTP server of the stream: "
                "give the input an address, or set http.enabled to true and http.address to one "
                "that is free"
            )
        else:
            serve_on_stream_server(context, paths, self.file)
        return SpoolSource(
            context.directory, self.scanner, "http_server", inline=not context.is_local
        )

    def _make_receiver(self, context: InputContext) -> HttpReceiver:
        from streamer.connectors.http_server.http_receiver import HttpReceiver
        from streamer.connectors.http_server.replies import ReplyTemplate

        parsed, sync = self.parsed, self.parsed[SYNC_RESPONSE]
        return HttpReceiver(
            store=SpoolStore.for_input(context),
            context=context,
            verbs=frozenset(parsed[ALLOWED_VERBS]),
            timeout=(parsed[TIMEOUT] or 0) / SECOND,
            limit=self.limit,
            reply=ReplyTemplate(
                compile_interpolation(sync["status"]),
                {name: compile_interpolation(text) for name, text in sync["headers"].items()},
                MetadataFilter(sync["metadata_headers"]),
            ),
            welcome=parsed[WS_WELCOME_MESSAGE].encode(),
            refusal=parsed[WS_RATE_LIMIT_MESSAGE].encode(),
            max_body_size=parsed[MAX_BODY_SIZE],
            max_parts=parsed[MAX_PARTS],
            delimiter=getattr(self.scanner, "delimiter", b"\n") if self.scanner else None,
        )

    def probe(self) -> str:
        """Check that the address can be listened on; see `SupportsProbe`."""
        address = self.parsed[ADDRESS]
        if not address:
            return "served by the stream's HTTP server"
        bind_socket("tcp", address).close()
        return f"{address} can be listened on"


def build(parsed: ParsedFields, context: BuildContext) -> HttpServerInput:
    """Take the fields; it listens once it is opened."""
    label = parsed[RATE_LIMIT]
    limit = context.resource(Kind.RATE_LIMIT, label) if label else None
    scanner = context.build(parsed[SCANNER]) if parsed[SCANNER] is not None else None
    return HttpServerInput(parsed, limit, scanner, context.component.file)
