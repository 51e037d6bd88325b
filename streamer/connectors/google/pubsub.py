"""The JSON API of Pub/Sub: topics and subscriptions of a project."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from streamer.connectors.google.api import CREDENTIALS_FIELD, GoogleClient
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


class PubsubClient(GoogleClient):
    """A client of Pub/Sub, for the topics and subscriptions of a project. Threads may share it."""

    def __init__(self, parsed: ParsedFields, context: BuildContext, timeout: int) -> None:
        """Take the fields, what keeps connections and tokens, and the time of a request, ns."""
        address = _as_url(parsed[ENDPOINT]) if parsed[ENDPOINT] else _ADDRESS
        super().__init__(parsed, context, timeout, "Pub/Sub", address, emulator=_EMULATOR)
        self._project = parsed[PROJECT]

    def path(self, kind: str, name: str) -> str:
        """Return the path of a topic or a subscription in the API."""
        return f"/v1/{self.full_name(kind, name)}"

    def full_name(self, kind: str, name: str) -> str:
        """Return the name of a topic or a subscription with its project."""
        return f"projects/{quote(self._project, safe='')}/{kind}/{quote(name, safe='')}"
