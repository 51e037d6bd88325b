"""The fields of outputs that index documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from streamer.connectors.aws.fields import CREDENTIALS, SESSION_FIELDS, credentials_problems
from streamer.connectors.http_client.auth_fields import BASIC_AUTH_FIELD
from streamer.connectors.tls import TLS_FIELD, tls_problems
from streamer.core.urls import split_url
from streamer.sdk.output.protocols import max_in_flight_field
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems
from streamer.sdk.spec import Access, Field, Package, ParsedFields

URLS: Final = "urls"
INDEX: Final = "index"
ACTION: Final = "action"
ID: Final = "id"
PIPELINE: Final = "pipeline"
ROUTING: Final = "routing"
TYPE: Final = "type"
RETRY_ON_CONFLICT: Final = "retry_on_conflict"
API_KEY: Final = "api_key"
TIMEOUT: Final = "timeout"
GZIP: Final = "gzip_compression"
AWS: Final = "aws"

_SCHEMES: Final = frozenset({"http", "https"})
_URL_TEXT: Final = "expected a URL such as http://localhost:9200"

DELIVERY_TEXT: Final = (
    "A batch is one request of the bulk API. Each message is judged by itself. A document that "
    "the server refuses, such as one that does not fit the mapping, is rejected alone. What it "
    "cannot take now (codes `429` and `5xx`, a read-only index) is sent again with pauses, and "
    "nothing else of the batch with it. A document that is to be deleted and is not there counts "
    "as deleted.\n"
    "\n"
    "After a failure a message may be sent twice. Make `id` of the message, such as "
    "`${! this.id }`: then a repetition changes nothing.\n"
    "\n"
    "It is tested with a stand-in for the bulk API, not with the servers themselves."
)


def split_urls(urls: Any) -> list[str]:
    """Return the single URLs of a list whose items may hold several, separated by commas."""
    return [one.strip() for text in urls for one in text.split(",") if one.strip()]


def _urls_problem(urls: Any) -> str | None:
    given = split_urls(urls)
    for text in given:
        try:
            url = split_url(text)
        except ValueError as e:
            return f"has {e}"
        if url.scheme not in _SCHEMES or not url.hostname:
            return f"has a value that is no URL of HTTP; {_URL_TEXT}"
    return None if given else f"is an empty list; {_URL_TEXT}"


def _template_field(name: str, description: str, **more: Any) -> Field:
    return Field(name, "string", description, interpolated=True, **more)


URLS_FIELD: Final = Field(
    URLS,
    "string",
    "URLs of the servers; an item may have several, separated by commas. They are used in turn.",
    access=Access.ADDRESS,
    shape="array",
    check=_urls_problem,
    examples=(["http://localhost:9200"],),
)
INDEX_FIELD: Final = _template_field(
    INDEX, "The index. It is created where it is missing, if the server does so."
)
PIPELINE_FIELD: Final = _template_field(
    PIPELINE, "An ingest pipeline that a document goes through.", default="", advanced=True
)
ROUTING_FIELD: Final = _template_field(
    ROUTING, "The routing key of a document.", default="", advanced=True
)
_BASIC_FIELDS: Final = (TLS_FIELD, max_in_flight_field(), BASIC_AUTH_FIELD, BATCHING_FIELD)


def action_field(actions: tuple[str, ...], **more: Any) -> Field:
    """Return the field `action` of an output that knows these actions."""

    def problem(text: str) -> str | None:
        if "${!" in text or text in actions:
            return None
        return f"is {text!r}; expected one of {', '.join(actions)}"

    listed = ", ".join(f"`{action}`" for action in actions)
    return _template_field(ACTION, f"The action: one of {listed}.", check=problem, **more)


def id_field(**more: Any) -> Field:
    """Return the field `id`."""
    return _template_field(
        ID,
        "The id of a document. Without one the server makes an id, so that a repetition makes "
        "another document; `update` and `delete` need one.",
        examples=("${! this.id }", "${! counter() }-${! timestamp_unix() }"),
        **more,
    )


RETRY_ON_CONFLICT_FIELD: Final = Field(
    RETRY_ON_CONFLICT,
    "int",
    "How often the server repeats an `update` that meets another one.",
    default=0,
    advanced=True,
    check=lambda number: None if number >= 0 else f"is {number}; expected 0 or more",
)


AWS_FIELD: Final = Field(
    AWS,
    "object",
    "Signs requests for a domain of Amazon OpenSearch Service.",
    advanced=True,
    children=(
        Field("enabled", "bool", "True to sign them.", default=False),
        *SESSION_FIELDS,
    ),
)
AWS_PACKAGE: Final = Package(
    "boto3", AWS, is_needed_by=lambda conf: bool(conf["enabled"]), setting="aws.enabled: true"
)


def search_fields(*more: Field, action: Field, identity: Field) -> tuple[Field, ...]:
    """Return the fields of an output, with further ones of its own."""
    return (
        URLS_FIELD,
        INDEX_FIELD,
        action,
        identity,
        PIPELINE_FIELD,
        ROUTING_FIELD,
        *more,
        *_BASIC_FIELDS,
    )


def search_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    yield from tls_problems(parsed)
    yield from batching_problems(parsed)
    if parsed[ACTION] in ("update", "delete") and not parsed[ID]:
        yield ID, f"is empty; the action {parsed[ACTION]} needs the id of a document"
    if parsed.get(AWS) is not None:
        yield from credentials_problems(parsed[AWS][CREDENTIALS], f"{AWS}.{CREDENTIALS}")
    if not parsed[INDEX]:
        yield INDEX, "is empty; expected the name of an index"
