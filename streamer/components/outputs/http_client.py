"""`http_client`: "sends messages to an HTTP server".

"When the number of retries expires the output will reject the message, the behavior after this will
depend on the pipeline but usually this simply means the send is attempted again until successful
whilst applying back pressure."
"""

from __future__ import annotations

from typing import Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.http_client.client import HttpClient
from streamer.connectors.http_client.errors import HttpError
from streamer.connectors.http_client.fields import client_fields, client_problems
from streamer.connectors.http_client.request import PartTemplate
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, Output, SendError, max_in_flight_field
from streamer.sdk.output.rejection import Reason, Rejection
from streamer.sdk.output.wait_budget import pause_own_try
from streamer.sdk.processing.batching import (
    BATCHING_FIELD,
    BatchPolicy,
    batching_problems,
    output_policy,
)
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks
from streamer.sdk.sync_response import add_answers

BATCH_AS_MULTIPART: Final = "batch_as_multipart"
PROPAGATE_RESPONSE: Final = "propagate_response"
MULTIPART: Final = "multipart"

_TOO_LARGE_STATUSES: Final = (413, 414, 431)


def _part_field(name: str, description: str, example: str) -> Field:
    return Field(name, "string", description, default="", interpolated=True, examples=(example,))


SPEC: Final = Spec(
    Kind.OUTPUT,
    "http_client",
    "Sends messages to an HTTP server.",
    description=(
        "The body of a request is the message. A batch is sent message by message, or as one "
        "request of several parts (`batch_as_multipart`). Failed requests are repeated up to "
        "`retries`. After that the message has failed and is sent again until it is accepted, "
        "unless the output is inside a `fallback` or a `drop_on`.\n"
        "\n"
        "A message that the server refuses because of its content (`400`, `409`, `413`, `422` "
        "and others, and the codes of `drop_on`), or that cannot be made into a request, is "
        "not repeated at once: it is rejected alone, and others continue. `401`, `402`, "
        "`403`, `407`, `408`, `421`, `423` to `426`, `429`, `499` and the codes of "
        "`backoff_on` block the stream, like an unavailable server; so do `404`, `405` and "
        "`410` if all messages have the same URL."
    ),
    fields=(
        *client_fields("POST", "the response that is returned to the input"),
        Field(
            BATCH_AS_MULTIPART,
            "bool",
            "True if a batch is sent as one request whose body has a part for each message.",
            default=False,
            advanced=True,
        ),
        Field(
            PROPAGATE_RESPONSE,
            "bool",
            "True if the server's answer is returned to the input, for inputs that answer.",
            default=False,
            advanced=True,
        ),
        max_in_flight_field(),
        BATCHING_FIELD,
        Field(
            MULTIPART,
            "object",
            "The parts that the body of every request has, in the place of the message.",
            default=(),
            shape="array",
            advanced=True,
            children=(
                _part_field("content_type", "The type of the part.", "application/bin"),
                _part_field(
                    "content_disposition",
                    "The disposition of the part.",
                    'form-data; name="bin"; filename="${! @name }"',
                ),
                _part_field("body", "Content of the part.", '${! json("data.part1") }'),
            ),
        ),
    ),
    check=join_checks(client_problems, batching_problems),
    examples=(
        Example(
            "Send batches as one JSON array",
            "output:\n"
            "  http_client:\n"
            "    url: http://localhost:8080/events\n"
            "    headers:\n"
            "      Content-Type: application/json\n"
            "    batching:\n"
            "      count: 100\n"
            "      processors:\n"
            "        - mapping: |\n"
            "            root = if batch_index() == 0 { json().from_all() } else { deleted() }\n",
        ),
    ),
    categories=("Network",),
)


class HttpClientOutput(Output):
    """Makes requests of batches."""

    def __init__(
        self,
        client: HttpClient,
        policy: BatchPolicy | None,
        max_in_flight: int,
        multipart: bool,
        propagate: bool,
    ) -> None:
        self.policy = policy
        self.max_in_flight = max_in_flight
        self._client = client
        self._multipart = multipart
        self._propagate = propagate

    def send(self, batch: Batch, ex: Execution) -> None:
        """Send a batch, message by message unless it is to be one request."""
        requests = [batch] if self._multipart else [[message] for message in batch]
        failed: dict[int, str] = {}
        for number, request in enumerate(requests):
            try:
                got = self._client.send(request, ex)
                if self._propagate:
                    add_answers(_response_messages(request, self._client.messages_of(got)), ex)
            except HttpError as error:
                if self._multipart or not self._client.is_rejection(error):
                    # What was sent before is not sent again.
                    text = self._error_text(error)
                    rest = dict.fromkeys(range(number, len(batch)), text)
                    failed |= {} if number == 0 else rest
                    raise SendError(text, failed) from None
                failed[number] = self._error_text(error)
        if failed:
            raise SendError(next(iter(failed.values())), failed)

    def _error_text(self, error: HttpError) -> str:
        if not self._client.is_rejection(error):
            return str(error)
        reason = Reason.REFUSED
        if error.is_invalid_request or error.status in _TOO_LARGE_STATUSES:
            reason = Reason.INVALID if error.is_invalid_request else Reason.TOO_LARGE
        return Rejection(str(error), reason)


def _response_messages(request: Batch, parts: Batch) -> Batch:
    """Return what a server has answered as messages of those that it has been asked with."""
    messages = []
    for index, part in enumerate(parts):
        message = request[index] if index < len(request) else request[0]
        messages.append(message.with_bytes(part.raw).with_added_metadata(**part.meta))
    return messages


def build(parsed: ParsedFields, context: BuildContext) -> HttpClientOutput:
    """Make the client; nothing is connected yet."""
    parts = [
        PartTemplate(
            *(compile_interpolation(part[name]) for name in PartTemplate.__dataclass_fields__)
        )
        for part in parsed[MULTIPART]
    ]
    return HttpClientOutput(
        HttpClient(parsed, context, parts=parts, pause=pause_own_try, repeats_rejected=False),
        output_policy(parsed, context),
        parsed[MAX_IN_FLIGHT],
        parsed[BATCH_AS_MULTIPART],
        parsed[PROPAGATE_RESPONSE],
    )
