"""The JSON API of Pub/Sub: topics and subscriptions of a project."""

from __future__ import annotations

import os
from typing import Any, Final
from urllib.parse import quote

from streamer.connectors.google.credentials import CREDENTIALS_FIELD, TokenSource
from streamer.connectors.http_client.errors import HttpError
from streamer.connectors.http_client.service_client import (
    ServiceAnswer,
    ServiceClient,
    ServiceRequest,
)
from streamer.core.errors import StreamerError
from streamer.core.json.dump import dump_json
from streamer.core.json.parse import parse_json
from streamer.core.urls import split_url
from streamer.sdk.spec import Access, BuildContext, Field, ParsedFields

PROJECT: Final = "project"
ENDPOINT: Final = "endpoint"

MAX_MESSAGES: Final = 1_000
"""Messages of a request, at most."""
_ADDRESS: Final = "https://pubsub.googleapis.com"
_EMULATOR: Final = "PUBSUB_EMULATOR_HOST"


def _endpoint_problem(text: str) -> str | None:
    expected = "expected one such as europe-west1-pubsub.googleapis.com:443"
    try:
        url = split_url(_as_url(text)) if text else None
    except ValueError as error:
        return f"has {error}"
    if url is not None and (url.scheme not in ("http", "https") or not url.hostname):
        return f"is no host of HTTP; {expected}"
    return None


def _as_url(text: str) -> str:
    return text if "://" in text else f"https://{text}"


PUBSUB_FIELDS: Final = (
    Field(PROJECT, "string", "The id of the project.", examples=("my-project",)),
    CREDENTIALS_FIELD,
    Field(
        ENDPOINT,
        "string",
        "Host and port of the API, or its URL. `http://` is for emulators: credentials are not "
        f"sent there. Empty for Google's, or for the emulator that `{_EMULATOR}` names.",
        access=Access.ADDRESS,
        default="",
        advanced=True,
        check=_endpoint_problem,
        examples=("europe-west1-pubsub.googleapis.com:443",),
    ),
)


class PubsubClient:
    """A client of Pub/Sub, for the topics and subscriptions of a project. Threads may share it."""

    def __init__(self, parsed: ParsedFields, context: BuildContext, timeout: int) -> None:
        """Take the fields, what keeps connections and tokens, and the time of a request, ns."""
        given, emulator = parsed[ENDPOINT], os.environ.get(_EMULATOR, "")
        url = _as_url(given) if given else f"http://{emulator}" if emulator else _ADDRESS
        self._client = ServiceClient([url], parsed, context, timeout)
        self._tokens = None
        if url.startswith("https://"):
            self._tokens = context.worker_resource("tokens", lambda: TokenSource(parsed))
        self._project = parsed[PROJECT]

    def path(self, kind: str, name: str) -> str:
        """Return the name of a topic or a subscription in the API."""
        return f"projects/{quote(self._project, safe='')}/{kind}/{quote(name, safe='')}"

    def make_request(self, method: str, path: str, document: Any = None) -> ServiceRequest:
        """Return a request with the token that it needs.

        Raises:
            HttpError: there is no token.
        """
        body = document if isinstance(document, bytes | None) else dump_json(document)
        headers = [("Content-Type", "application/json")]
        headers += [] if self._tokens is None else [self._tokens.header()]
        return ServiceRequest(method, f"/v1/{path}", headers, body)

    @property
    def client(self) -> ServiceClient:
        """The client that sends requests."""
        return self._client

    def query(self, method: str, path: str, document: Any = None, known: int = 200) -> Any:
        """Return the document that is answered.

        Args:
            method: the verb.
            path: the thing, and what to do with it.
            document: what is sent along.
            known: a further code that is no error.

        Raises:
            StreamerError: there is no answer, or a refusal.
        """
        answer = self._client.exchange(self.make_request(method, path, document))
        if answer.status not in (200, known):
            raise HttpError(describe_answer(answer), answer.status)
        return read_document(answer)


def read_document(answer: ServiceAnswer) -> Any:
    """Return the object that an answer has.

    Raises:
        StreamerError: it has none.
    """
    try:
        document = parse_json(answer.body or b"{}")
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise StreamerError("the answer is none of Pub/Sub; expected a JSON object")
    return document


def describe_answer(answer: ServiceAnswer) -> str:
    """Return the words of a refusal."""
    try:
        error = parse_json(answer.body)["error"]
        words = f"{error['status']}: {error['message']}"[:500]
    except (ValueError, TypeError, KeyError):
        words = " ".join(answer.body[:200].decode(errors="replace").split()) or "no reason is given"
    return f"Pub/Sub refuses the request with status {answer.status}: {words}"
