"""A client of a schema registry: schemas by id and by subject, with bounded retries."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from streamer.connectors.http_client.auth import AUTHORIZATION
from streamer.connectors.http_client.connection import ConnectionPool
from streamer.connectors.http_client.errors import HttpError
from streamer.connectors.http_client.fields import (
    DISABLE_HTTP2,
    FOLLOW_REDIRECTS,
    PROXY_URL,
    TIMEOUT,
)
from streamer.connectors.schema_registry.fields import URL
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.header_bytes import encode_headers
from streamer.core.redaction import redact_urls
from streamer.sdk.spec import ParsedFields

AVRO: Final = "AVRO"
JSON: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"

REQUEST_TIMEOUT_S: Final = 5.0
"""How long a question may take with all its tries, as in Connect."""

_PAUSES_S: Final = (0.1, 0.4)
_COOL_DOWN_S: Final = 2.0
"""How long a registry that does not answer is not asked again: each message would wait for it."""

_OPTIONAL_PARTS: Final = ("schemaType", "references", "metadata", "ruleSet")
_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json"
_RETRIED_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class RegistryError(StreamerError):
    """The registry has no answer, or a bad one."""


class UnknownSchemaError(RegistryError):
    """The registry does not know what it was asked for."""


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A reference of a schema to another one: the name in it, and what it stands for."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as the registry has it.

    Attributes:
        id: its id.
        kind: `AVRO`, `JSON` or `PROTOBUF`.
        text: the schema.
        references: what it refers to.
    """

    id: int
    kind: str
    text: str
    references: tuple[SchemaReference, ...] = ()


class RegistryClient:
    """A client of one registry. Threads may share it."""

    def __init__(
        self,
        parsed: ParsedFields,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Take the fields; nothing is connected yet.

        Args:
            parsed: the fields of `streamer.connectors.schema_registry.fields`.
            now: a clock that never runs backwards, seconds.
            sleep: waits, seconds.

        Raises:
            StreamerError: the certificates cannot be used.
        """
        settings = {
            TIMEOUT: round(REQUEST_TIMEOUT_S * SECOND),
            PROXY_URL: "",
            DISABLE_HTTP2: True,
            FOLLOW_REDIRECTS: True,
        }
        self._pool = ConnectionPool(ParsedFields({**parsed, **settings}))
        self._url = parsed[URL].rstrip("/")
        self._now = now
        self._sleep = sleep
        self._lock = threading.Lock()
        self._down: tuple[float, str] | None = None

    def schema_by_id(self, schema_id: int) -> Schema:
        """Return the schema of an id.

        Raises:
            RegistryError: there is none, or the registry does not answer.
        """
        try:
            return _read_schema(self._query(f"/schemas/ids/{schema_id}"), schema_id)
        except RegistryError as error:
            text = f"schema {schema_id} not found by registry: {error}"
            raise type(error)(text) from None

    def latest_schema(self, subject: str) -> Schema:
        """Return the newest schema of a subject.

        Raises:
            RegistryError: there is none, or the registry does not answer.
        """
        return self._version(subject, "latest")

    def referenced_schemas(self, schema: Schema) -> Iterator[tuple[str, Schema]]:
        """Give all that a schema refers to, what is referred to first, each once.

        Yields:
            The name by which it is referred to, and the schema.

        Raises:
            RegistryError: one is not there, or there in two versions.
        """
        yield from self._walk(schema, {})

    def list_subjects(self, deleted: bool) -> list[str]:
        """Return the subjects; `deleted` for those that are marked as deleted, too.

        Raises:
            RegistryError: the registry does not answer.
        """
        return [str(one) for one in self._query_list(f"/subjects{_deleted_query(deleted)}")]

    def list_versions(self, subject: str, deleted: bool) -> list[int]:
        """Return the versions of a subject, in order; none of one that is gone.

        Raises:
            RegistryError: the registry does not answer.
        """
        path = f"/subjects/{quote(subject, safe='')}/versions{_deleted_query(deleted)}"
        try:
            return sorted(one for one in self._query_list(path) if isinstance(one, int))
        except UnknownSchemaError:
            return []

    def fetch_version(self, subject: str, version: int, deleted: bool) -> dict[str, Any]:
        """Return a version of a subject as the registry describes it.

        Raises:
            RegistryError: there is none, or the registry does not answer.
        """
        path = f"/subjects/{quote(subject, safe='')}/versions/{version}{_deleted_query(deleted)}"
        document = self._query(path)
        schema = _read_schema(document, None)
        kept = {name: document[name] for name in _OPTIONAL_PARTS if document.get(name)}
        required = {"subject": subject, "version": version, "id": schema.id, "schema": schema.text}
        return {**required, **kept}

    def compatibility(self, subject: str) -> str | None:
        """Return the level of compatibility that a subject has of its own; None for none.

        Raises:
            RegistryError: the registry does not answer.
        """
        try:
            document = self._query(f"/config/{quote(subject, safe='')}")
        except UnknownSchemaError:
            return None
        level = document.get("compatibilityLevel") if isinstance(document, dict) else None
        return None if level is None else str(level)

    def _query_list(self, path: str) -> list[Any]:
        answer = self._query(path)
        if not isinstance(answer, list):
            raise RegistryError(
                "the registry answers with no list; expected the URL of a Confluent schema registry"
            )
        return answer

    def probe(self) -> str:
        """Check that the registry answers.

        Raises:
            RegistryError: it does not.
        """
        self._query("/subjects")
        return "the registry answers"

    def _walk(self, schema: Schema, seen: dict[str, int]) -> Iterator[tuple[str, Schema]]:
        for reference in schema.references:
            known = seen.get(reference.name)
            if known is not None and known != reference.version:
                raise RegistryError(
                    f"duplicate reference '{reference.name}' version mismatch of {known} and "
                    f"{reference.version}, aborting in order to avoid invalid state"
                )
            if known is None:
                seen[reference.name] = reference.version
                other = self._version(reference.subject, str(reference.version))
                yield from self._walk(other, seen)
                yield reference.name, other

    def _version(self, subject: str, version: str) -> Schema:
        document = self._query(f"/subjects/{quote(subject, safe='')}/versions/{version}")
        return _read_schema(document, None)

    def _query(self, path: str) -> Any:
        """Return the answer to a question, after several tries where the registry is away."""
        self._check_cool_down()
        until = self._now() + REQUEST_TIMEOUT_S
        for pause in (*_PAUSES_S, None):
            try:
                status, document, text = self._request(path)
            except HttpError as error:
                why = f"the registry does not answer: {redact_urls(str(error))}"
            else:
                if status < 300:
                    return document
                why = _error_text(status, document, text)
                if status == 404:
                    raise UnknownSchemaError(why)
                if status not in _RETRIED_STATUSES:
                    raise RegistryError(why)
            if pause is None or self._now() + pause >= until:
                break
            self._sleep(pause)
        with self._lock:
            self._down = self._now() + _COOL_DOWN_S, why
        raise RegistryError(why)

    def _check_cool_down(self) -> None:
        with self._lock:
            if self._down is not None:
                until, why = self._down
                if self._now() < until:
                    raise RegistryError(why)
                self._down = None

    def _request(self, path: str) -> tuple[int, Any, str]:
        import httpx2

        url = self._url + path
        connection = self._pool.acquire()
        try:
            headers = {"Accept": _ACCEPT}
            signed = self._pool.signer.header("GET", url)
            if self._pool.tokens is not None:
                signed = self._pool.tokens.authorization_header(connection.client)
            if signed is not None:
                headers[AUTHORIZATION] = signed
            answer = connection.client.get(url, headers=encode_headers(headers.items()))
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise HttpError(str(error) or type(error).__name__) from None
        finally:
            self._pool.release(connection)
        try:
            return answer.status_code, answer.json(), answer.text
        except ValueError:
            if answer.status_code < 300:
                raise RegistryError(
                    "the registry answers with no JSON; expected the URL of a schema registry, "
                    "such as http://localhost:8081"
                ) from None
            return answer.status_code, None, answer.text


def _deleted_query(deleted: bool) -> str:
    return "?deleted=true" if deleted else ""


def _error_text(status: int, document: Any, text: str) -> str:
    message = document.get("message") if isinstance(document, dict) else None
    return str(message) if message else f"status {status}: {text.strip()[:200]}"


def _read_schema(document: Any, schema_id: int | None) -> Schema:
    try:
        references = tuple(
            SchemaReference(str(one["name"]), str(one["subject"]), int(one["version"]))
            for one in document.get("references") or ()
        )
        number = document["id"] if schema_id is None else schema_id
        kind = str(document.get("schemaType") or AVRO).upper()
        return Schema(int(number), kind, str(document["schema"]), references)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise RegistryError(
            "the registry answers with no schema; expected the URL of a Confluent schema registry"
        ) from None
