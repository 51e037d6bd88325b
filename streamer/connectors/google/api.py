"""The JSON APIs of Google Cloud: requests with tokens, and the documents that are answered."""

from __future__ import annotations

import os
from typing import Any

from streamer.connectors.google.credentials import (
    CREDENTIALS_FIELD,
    PACKAGES,
    TokenSource,
)
from streamer.connectors.http_client.errors import HttpError
from streamer.connectors.http_client.service_client import (
    ServiceAnswer,
    ServiceClient,
    ServiceRequest,
)
from streamer.core.errors import StreamerError
from streamer.core.json.dump import dump_json
from streamer.core.json.parse import parse_json
from streamer.sdk.spec import BuildContext, ParsedFields

__all__ = ["CREDENTIALS_FIELD", "PACKAGES", "GoogleClient"]


class GoogleClient:
    """A client of one of the APIs. Threads may share it."""

    def __init__(
        self,
        parsed: ParsedFields,
        context: BuildContext,
        timeout: int,
        name: str,
        address: str,
        *,
        emulator: str,
    ) -> None:
        """Set up; nothing is connected yet.

        Args:
            parsed: the fields of the component.
            context: keeps connections and tokens.
            timeout: how long a request may take, nanoseconds.
            name: of the API, for errors.
            address: where the API is, as a URL; nothing secret is sent to one of `http://`.
            emulator: the environment's variable with host and port of an emulator, which stands
                before an address of Google's.
        """
        host = os.environ.get(emulator, "")
        if host and address.endswith(".googleapis.com"):
            address = host if "://" in host else f"http://{host}"
        self.client = ServiceClient([address], parsed, context, timeout)
        """What sends requests."""
        self._name = name
        self._tokens: TokenSource | None = None
        if address.startswith("https://"):
            self._tokens = context.worker_resource("tokens", lambda: TokenSource(parsed))

    def make_request(
        self, method: str, path: str, document: Any = None, kind: str = "application/json"
    ) -> ServiceRequest:
        """Return a request with the token that it needs.

        Args:
            method: the verb.
            path: the rest of its URL.
            document: what is sent along: bytes, or a value that becomes JSON.
            kind: the type of the document.

        Raises:
            HttpError: there is no token.
        """
        body = document if isinstance(document, bytes | None) else dump_json(document)
        headers = [("Content-Type", kind)]
        headers += [] if self._tokens is None else [self._tokens.header()]
        return ServiceRequest(method, path, headers, body)

    def query(
        self,
        method: str,
        path: str,
        document: Any = None,
        known: int = 200,
        kind: str = "application/json",
    ) -> Any:
        """Return the document that is answered; see `make_request`.

        Args:
            method: the verb.
            path: the rest of the URL.
            document: what is sent along.
            known: a further code that is no error.
            kind: the type of the document.

        Raises:
            StreamerError: there is no answer, or a refusal.
        """
        answer = self.client.exchange(self.make_request(method, path, document, kind))
        if answer.status not in (200, known):
            raise HttpError(self.describe_answer(answer), answer.status)
        return self.read_document(answer)

    def default_project(self) -> str:
        """Return the project of the credentials.

        Raises:
            StreamerError: they have none.
        """
        project = "" if self._tokens is None else self._tokens.project()
        if not project:
            raise StreamerError("the field project is empty, and the credentials have none")
        return project

    def read_document(self, answer: ServiceAnswer) -> Any:
        """Return the object that an answer has.

        Raises:
            StreamerError: it has none.
        """
        try:
            document = parse_json(answer.body or b"{}")
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise StreamerError(f"the answer is none of {self._name}; expected a JSON object")
        return document

    def describe_answer(self, answer: ServiceAnswer) -> str:
        """Return the words of a refusal."""
        try:
            error = parse_json(answer.body)["error"]
            words = f"{error['status']}: {error['message']}"[:500]
        except (ValueError, TypeError, KeyError):
            text = answer.body[:200].decode(errors="replace")
            words = " ".join(text.split()) or "no reason is given"
        return f"{self._name} refuses the request with status {answer.status}: {words}"
