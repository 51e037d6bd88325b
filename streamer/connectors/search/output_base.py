"""An output of the bulk API: a batch is one request, and each message is judged by itself."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from typing import Final

from streamer.connectors.http_client.auth import AUTHORIZATION
from streamer.connectors.http_client.divided_send import raise_failures, send_divided
from streamer.connectors.http_client.errors import HttpError
from streamer.connectors.http_client.service_client import (
    ServiceAnswer,
    ServiceClient,
    ServiceRequest,
    SignRequest,
)
from streamer.connectors.search.bulk import (
    PATH,
    Actions,
    BulkItem,
    ItemMaker,
    describe_error,
    read_failures,
)
from streamer.connectors.search.fields import API_KEY, GZIP, TIMEOUT, URLS, split_urls
from streamer.core.durations import SECOND
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.json.parse import parse_json
from streamer.core.message import Batch
from streamer.sdk.backoff import Backoff
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, Output
from streamer.sdk.output.rejection import (
    Reason,
    Rejection,
    is_rejection,
    make_invalid_rejection,
)
from streamer.sdk.output.wait_budget import pause_own_try
from streamer.sdk.processing.batching import output_policy
from streamer.sdk.spec import BuildContext, ParsedFields

_TIMEOUT: Final = 60 * SECOND
"""The server waits so long itself for what it needs, such as a shard."""
_MAX_REQUEST_BYTES: Final = 16 << 20
"""A server takes 100 MB, or 10 where it is hired; what is much smaller is no faster either."""
_DONE: Final = Rejection("", Reason.REFUSED)
"""Of an action that has not failed: there is nothing to send again."""
_TOO_LARGE: Final = 413
# These blame the request, so that its halves tell which message is meant.
_REQUEST_REFUSED: Final = (400, _TOO_LARGE)


class SearchOutput(Output):
    """Indexes, changes and deletes documents."""

    def __init__(
        self,
        parsed: ParsedFields,
        context: BuildContext,
        actions: Actions,
        backoff: Backoff | None = None,
        sign: SignRequest | None = None,
    ) -> None:
        """Set up; nothing is connected yet.

        Args:
            parsed: the fields.
            context: keeps the connections.
            actions: those that there are.
            backoff: the output's own tries; None leaves all further tries to the stream.
            sign: signs requests, in the place of the fields of credentials.
        """
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self.policy = output_policy(parsed, context)
        self._maker = ItemMaker.of_fields(parsed, actions)
        timeout = parsed.get(TIMEOUT) or _TIMEOUT
        self._client = ServiceClient(split_urls(parsed[URLS]), parsed, context, timeout, sign)
        self._backoff = backoff
        self._compresses = bool(parsed.get(GZIP))
        key = parsed.get(API_KEY)
        # As in Elasticsearch's own clients, a key stands before a password.
        self._credentials = [(AUTHORIZATION, f"ApiKey {key}")] if key else []

    def send(self, batch: Batch, ex: Execution) -> None:
        """Send the actions of a batch; those that fail are named."""
        failed: dict[int, str] = {}
        items: list[BulkItem] = []
        for index in range(len(batch)):
            try:
                items.append(self._maker.make(batch, index, ex))
            except MessageError as error:
                failed[index] = make_invalid_rejection(str(error))
        refused, outage = self._send_with_retries(items, ex)
        failed |= refused
        raise_failures(failed, outage, len(batch))

    def _send_with_retries(
        self, items: Sequence[BulkItem], ex: Execution
    ) -> tuple[dict[int, str], str | None]:
        """Send actions, and those that were not taken again; see `send_divided`."""
        failed, outage = self._send_items(items, ex)
        for pause in self._backoff.pauses(ex.elapsed) if self._backoff is not None else ():
            again = [item for item in items if not is_rejection(failed.get(item.index, _DONE))]
            if not again or not pause_own_try(ex, pause):
                break
            failed = {index: text for index, text in failed.items() if is_rejection(text)}
            more, outage = self._send_items(again, ex)
            failed |= more
        return failed, outage

    def _send_items(
        self, items: Sequence[BulkItem], ex: Execution
    ) -> tuple[dict[int, str], str | None]:
        return send_divided(items, _MAX_REQUEST_BYTES, lambda part: self._send_request(part, ex))

    def _send_request(self, items: Sequence[BulkItem], ex: Execution) -> dict[int, str] | None:
        """Send actions as one request.

        Returns:
            Why some have failed; None when the server refuses several for the sake of one.

        Raises:
            HttpError: the server does not answer, or cannot take them now.
            BulkAnswerError: it does not tell of each of them.
        """
        answer = self._client.request(self._make_request(items), ex)
        if answer.status in _REQUEST_REFUSED:
            if len(items) > 1:
                return None
            reason = Reason.TOO_LARGE if answer.status == _TOO_LARGE else Reason.REFUSED
            return {items[0].index: Rejection(_describe_answer(answer), reason)}
        if not 200 <= answer.status <= 299:
            raise HttpError(_describe_answer(answer), answer.status)
        return read_failures(answer.body, items, self._maker.has_own_index)

    def _make_request(self, items: Sequence[BulkItem]) -> ServiceRequest:
        body = b"".join(item.lines for item in items)
        headers = [("Content-Type", "application/x-ndjson"), *self._credentials]
        if self._compresses:
            body = gzip.compress(body, 1)
            headers.append(("Content-Encoding", "gzip"))
        return ServiceRequest("POST", PATH, headers, body)

    def probe(self) -> str:
        """Check that a server answers, and takes the credentials.

        Raises:
            StreamerError: it does not.
        """
        answer = self._client.exchange(ServiceRequest("GET", "/", self._credentials))
        if not 200 <= answer.status <= 299:
            raise StreamerError(_describe_answer(answer))
        return "the server answers"


def _describe_answer(answer: ServiceAnswer) -> str:
    try:
        document = parse_json(answer.body)
        words = describe_error(document["error"])
    except (ValueError, TypeError, KeyError):
        words = " ".join(answer.body[:200].decode(errors="replace").split()) or "no reason is given"
    return f"the server refuses the request with status {answer.status}: {words}"
