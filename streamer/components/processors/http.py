"""`http`: makes a request of each message, and replaces it by the answer.

It "performs an HTTP request using a message batch as the request body, and replaces the original
message parts with the body of the response". The answer's code is metadata, and so are the headers
that `extract_headers` takes, also when a request has failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streamer.connectors.http_client.client import HttpClient
from streamer.connectors.http_client.errors import HttpError
from streamer.connectors.http_client.fields import URL, client_fields, client_problems
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.thread_pool import ComponentPool

BATCH_AS_MULTIPART: Final = "batch_as_multipart"
PARALLEL: Final = "parallel"

STATUS: Final = "http_status_code"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "http",
    "Makes an HTTP request with each message, and replaces the message by the body of the "
    "response.",
    description=(
        "The metadata `http_status_code` is the status of the response. If a request fails "
        "after all `retries`, the message stays unchanged and is marked as failed. To add a "
        "response to the message instead of replacing it, use a `branch`. Connections live as "
        "long as the worker."
    ),
    fields=(
        *client_fields("POST"),
        Field(
            BATCH_AS_MULTIPART,
            "bool",
            "True if a batch is sent as one request whose body has a part for each message.",
            default=False,
            advanced=True,
        ),
        Field(
            PARALLEL,
            "bool",
            "True if the requests of a batch are made at once, and not one after the other. The "
            "messages keep their order.",
            default=False,
        ),
    ),
    check=client_problems,
    examples=(
        Example(
            "Ask for prices, for all messages of a batch at once",
            "pipeline:\n"
            "  processors:\n"
            "    - http:\n"
            "        url: http://localhost:8080/prices/${! this.id }\n"
            "        verb: GET\n"
            "        parallel: true\n",
        ),
    ),
    categories=("Integration",),
    delivery="calls are repeated when a micro-batch is replayed",
)


class HttpProcessor:
    """Makes requests of batches."""

    def __init__(
        self, client: HttpClient, url: str, origin: ComponentRef, *, multipart: bool, parallel: bool
    ) -> None:
        self._client = client
        self._url = url
        self._origin = origin
        self._multipart = multipart
        self._pool: ComponentPool[None] | None = ComponentPool(lambda: None) if parallel else None

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return what the answers have, or the messages of failed requests, marked."""
        if self._multipart or len(batch) == 1:
            made = self._request_batch(batch, ex)
        elif self._pool is None:
            made = [answer for message in batch for answer in self._request_batch([message], ex)]
        else:
            made = self._pool.map(self._request_one, batch, ex)
        if made:
            return [made]
        return [
            self._mark_failed(batch, HttpError(f"HTTP response from '{self._url}' was empty"), ex)
        ]

    def _request_batch(self, batch: Batch, ex: Execution) -> Batch:
        try:
            answers = self._client.messages_of(self._client.send(batch, ex))
        except HttpError as error:
            return self._mark_failed(batch, error, ex)
        return [
            _with_answer(batch[number if number < len(batch) else 0], answer)
            for number, answer in enumerate(answers)
        ]

    def _request_one(self, _: None, message: Message, ex: Execution) -> Message:
        """Return the one answer for a message among others that are asked for at once."""
        try:
            answers = self._client.messages_of(self._client.send([message], ex))
            if len(answers) != 1:
                raise HttpError(f"unexpected response size: {len(answers)}")
        except HttpError as error:
            return self._mark_failed([message], error, ex, "HTTP parallel request")[0]
        return _with_answer(message, answers[0])

    def _mark_failed(
        self, batch: Sequence[Message], error: HttpError, ex: Execution, what: str = "HTTP request"
    ) -> Batch:
        meta = {} if error.status is None else {STATUS: error.status}
        meta |= self._client.extract_metadata(error.headers)
        line = f"{what} to '{self._url}' failed: {error}"
        return [
            self._origin.fail(message.with_added_metadata(**meta), str(error), ex, line)
            for message in batch
        ]


def _with_answer(message: Message, answer: Message) -> Message:
    """Return a message with an answer's payload, and its metadata added."""
    return message.with_added_metadata(**answer.meta).with_bytes(answer.raw)


def build(parsed: ParsedFields, context: BuildContext) -> HttpProcessor:
    """Make the client; nothing is connected yet."""
    return HttpProcessor(
        HttpClient(parsed, context),
        parsed[URL],
        ComponentRef(context.component),
        multipart=parsed[BATCH_AS_MULTIPART],
        parallel=parsed[PARALLEL],
    )
