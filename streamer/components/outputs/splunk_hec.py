"""`splunk_hec`: "publishes messages to a Splunk HTTP Endpoint Collector (HEC)"."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from streamer.connectors.http_client.auth import AUTHORIZATION
from streamer.connectors.http_client.divided_send import raise_failures, send_divided
from streamer.connectors.http_client.errors import HttpError
from streamer.connectors.http_client.service_client import (
    ServiceAnswer,
    ServiceClient,
    ServiceRequest,
)
from streamer.connectors.tls import TLS_FIELD, tls_problems
from streamer.core.durations import SECOND
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.json.parse import parse_json
from streamer.core.message import Batch, Message
from streamer.core.urls import url_problem
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, Output, max_in_flight_field
from streamer.sdk.output.rejection import Reason, Rejection, make_invalid_rejection
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems, output_policy
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.checks import join_checks

URL: Final = "url"
TOKEN: Final = "token"
GZIP: Final = "gzip"

_EVENT_FIELDS: Final = {
    "event_host": "host",
    "event_source": "source",
    "event_sourcetype": "sourcetype",
    "event_index": "index",
}
_TIMEOUT: Final = 30 * SECOND
_MAX_REQUEST_BYTES: Final = 1 << 20
"""Splunk Cloud takes a megabyte, others as much as they are set to."""
_TOO_LARGE: Final = 413
_REQUEST_REFUSED: Final = (400, _TOO_LARGE)
_WRONG_INDEX: Final = 7
_REMOVED: Final = {
    "skip_cert_verify": "tls.skip_cert_verify",
    "batching_count": "batching.count",
    "batching_period": "batching.period",
    "batching_byte_size": "batching.byte_size",
    "rate_limit": "the processor rate_limit",
}


def _event_field(name: str, description: str) -> Field:
    text = f"{description} Empty for that of the message."
    return Field(name, "string", text, default="", access=Access.NONE)


SPEC: Final = Spec(
    Kind.OUTPUT,
    "splunk_hec",
    "Sends messages to an HTTP Event Collector of Splunk.",
    description=(
        "A message with a field `event` is sent as it is, with `time`, `fields` and what else it "
        "has; any other one becomes the `event` itself, as JSON or as text. A batch is one "
        "request, or several of a megabyte. What the collector refuses for one event is sent "
        "again in halves until that event is known, and rejected alone; others of its request may "
        "be stored twice. Other failures block the stream, and so does an index of "
        "`event_index` that is not there.\n"
        "\n"
        "It is tested with a stand-in for the collector, not with Splunk itself. The collector "
        "answers before events are on its disk; acknowledgements by channel are not used."
    ),
    fields=(
        Field(
            URL,
            "string",
            "The whole URL of the collector.",
            access=Access.ADDRESS,
            check=lambda text: (
                url_problem(text)
                if text.startswith(("http://", "https://"))
                else "is no URL of HTTP; expected one such as "
                "https://host:8088/services/collector/event"
            ),
            examples=("https://localhost:8088/services/collector/event",),
        ),
        Field(TOKEN, "string", "The collector's token.", secret=True),
        Field(GZIP, "bool", "True to compress requests.", default=False),
        _event_field("event_host", "The host of events."),
        _event_field("event_source", "The source of events."),
        _event_field("event_sourcetype", "The type of their source."),
        _event_field("event_index", "The index for events."),
        TLS_FIELD,
        max_in_flight_field(),
        BATCHING_FIELD,
    ),
    check=join_checks(tls_problems, batching_problems),
    instead={name: f"use {other}" for name, other in _REMOVED.items()},
    examples=(
        Example(
            "Events in batches",
            "output:\n"
            "  splunk_hec:\n"
            "    url: https://localhost:8088/services/collector/event\n"
            "    token: ${SPLUNK_TOKEN}\n"
            "    event_sourcetype: orders\n"
            "    batching: {count: 100}\n",
        ),
    ),
    categories=("Services",),
)


@dataclass(frozen=True, slots=True)
class _Event:
    index: int
    lines: bytes


class SplunkOutput(Output):
    """Sends events."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        """Take the fields; nothing is connected yet."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self.policy = output_policy(parsed, context)
        self._client = ServiceClient([parsed[URL]], parsed, context, _TIMEOUT)
        self._compresses = parsed[GZIP]
        self._added = {key: parsed[name] for name, key in _EVENT_FIELDS.items() if parsed[name]}
        self._headers = [
            ("Content-Type", "application/json"),
            (AUTHORIZATION, f"Splunk {parsed[TOKEN]}"),
        ]

    def send(self, batch: Batch, ex: Execution) -> None:
        """Send the events of a batch; those that fail are named."""
        failed: dict[int, str] = {}
        events: list[_Event] = []
        for index, message in enumerate(batch):
            try:
                events.append(_Event(index, dump_json(self._make_event(message)) + b"\n"))
            except ValueError as error:
                failed[index] = make_invalid_rejection(str(error))
        refused, outage = send_divided(
            events, _MAX_REQUEST_BYTES, lambda part: self._send_request(part, ex)
        )
        raise_failures(failed | refused, outage, len(batch))

    def _make_event(self, message: Message) -> dict[str, Any]:
        try:
            value = message.doc
        except MessageError:
            value = message.raw.decode(errors="replace")
        event = value if isinstance(value, dict) and "event" in value else {"event": value}
        return event | self._added

    def _send_request(self, events: Sequence[_Event], ex: Execution) -> dict[int, str] | None:
        body, headers = b"".join(event.lines for event in events), self._headers
        if self._compresses:
            body, headers = gzip.compress(body, 1), [*headers, ("Content-Encoding", "gzip")]
        answer = self._client.request(ServiceRequest("POST", "", headers, body), ex)
        if answer.status == 200:
            return {}
        text, code = _read_refusal(answer)
        is_for_all = code == _WRONG_INDEX and "index" in self._added
        if answer.status not in _REQUEST_REFUSED or is_for_all:
            raise HttpError(text, answer.status)
        if len(events) > 1:
            return None
        reason = Reason.TOO_LARGE if answer.status == _TOO_LARGE else Reason.REFUSED
        return {events[0].index: Rejection(text, reason)}

    def probe(self) -> str:
        """Check that the collector answers, and takes the token.

        Raises:
            StreamerError: it does not.
        """
        # Without an event it says so, unless the token is wrong.
        answer = self._client.exchange(ServiceRequest("POST", "", self._headers, b""))
        if answer.status not in (200, 400):
            raise StreamerError(_read_refusal(answer)[0])
        return "the collector answers"


def _read_refusal(answer: ServiceAnswer) -> tuple[str, int]:
    """Return the words of a refusal, and the collector's code for it; 0 without one."""
    words, code = answer.body[:200].decode(errors="replace"), 0
    try:
        document = parse_json(answer.body)
        words, code = str(document["text"])[:200], int(document.get("code") or 0)
    except (ValueError, TypeError, KeyError, AttributeError):
        words = " ".join(words.split()) or "no reason is given"
    return f"the collector refuses the request with status {answer.status}: {words}", code


def build(parsed: ParsedFields, context: BuildContext) -> SplunkOutput:
    """Take the fields; nothing is connected yet."""
    return SplunkOutput(parsed, context)
