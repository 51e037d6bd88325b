"""The JSON schema that a model's answer must have: written in the config, or in a registry."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from streamer.connectors.ai.errors import ModelError
from streamer.connectors.schema_registry.client import RegistryClient
from streamer.connectors.schema_registry.fields import (
    CONNECTION_FIELDS,
    URL_FIELD,
    connection_problems,
)
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.json.parse import parse_json
from streamer.sdk.spec import Access, Field, ParsedFields, duration_field

RESPONSE_FORMAT: Final = "response_format"
JSON_SCHEMA: Final = "json_schema"
SCHEMA_REGISTRY: Final = "schema_registry"
NAME_PREFIX: Final = "name_prefix"
SUBJECT: Final = "subject"
REFRESH_INTERVAL: Final = "refresh_interval"

RESPONSE_FORMAT_FIELD: Final = Field(
    RESPONSE_FORMAT,
    "string",
    "The format of the answer. With `json`, the prompt must ask for JSON too. With `json_schema`, "
    "one of `json_schema` and `schema_registry` has the schema.",
    default="text",
    options=("text", "json", "json_object", "json_schema"),
)


def schema_problem(text: str) -> str | None:
    """Return what is wrong with the text of a schema, or None."""
    try:
        schema = parse_json(text.encode())
    except ValueError as error:
        return f"is no JSON: {error}"
    if not isinstance(schema, dict):
        return 'is no JSON schema; expected an object such as {"type": "object", ...}'
    return None


def schema_registry_field(*, names: bool) -> Field:
    """Return the field of a registry that has the schema.

    Args:
        names: whether schemas are sent with a name, which then has a prefix.
    """
    prefix = Field(
        NAME_PREFIX,
        "string",
        "Begin of the schema's name; its id comes behind.",
        default="schema_registry_id_",
        advanced=True,
        access=Access.NONE,
    )
    children = (
        URL_FIELD,
        *((prefix,) if names else ()),
        Field(SUBJECT, "string", "The subject whose newest schema is used.", access=Access.NONE),
        duration_field(
            REFRESH_INTERVAL,
            "Time after which the newest schema is requested again; without it, it is requested "
            "once.",
            optional=True,
        ),
        *CONNECTION_FIELDS,
    )
    return Field(
        SCHEMA_REGISTRY,
        "object",
        "A schema registry that has the JSON schema of the answer.",
        optional=True,
        advanced=True,
        children=tuple(replace(child, advanced=True) for child in children),
    )


def response_problems(parsed: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    registry = parsed[SCHEMA_REGISTRY]
    if registry is not None:
        yield from ((f"{SCHEMA_REGISTRY}.{n}", text) for n, text in connection_problems(registry))
    if parsed[RESPONSE_FORMAT] == JSON_SCHEMA:
        if parsed[JSON_SCHEMA] is None and registry is None:
            yield (
                RESPONSE_FORMAT,
                "is json_schema without a schema; set json_schema or schema_registry",
            )
        elif parsed[JSON_SCHEMA] is not None and registry is not None:
            yield SCHEMA_REGISTRY, "has no effect beside json_schema; set one of the two"


class NamedSchema(NamedTuple):
    """A schema of answers.

    Attributes:
        name: by which the model is told of it.
        schema: the JSON schema.
        description: what it is for; empty for nothing.
    """

    name: str
    schema: dict[str, Any]
    description: str = ""


class RegistrySchema:
    """The newest schema of a subject, requested when it is needed first. Threads may share it."""

    def __init__(self, parsed: ParsedFields, now: Callable[[], float] = time.monotonic) -> None:
        """Take the fields of `schema_registry_field`; nothing is asked yet."""
        self._client = RegistryClient(parsed)
        self._subject: str = parsed[SUBJECT]
        self._prefix: str = parsed.get(NAME_PREFIX, "")
        interval = parsed[REFRESH_INTERVAL]
        self._interval_s = interval / SECOND if interval else None
        self._now = now
        self._lock = threading.Lock()
        self._kept: tuple[float, NamedSchema] | None = None

    def __call__(self) -> NamedSchema:
        """Return the schema.

        Raises:
            ModelError: the registry does not have it.
        """
        with self._lock:
            if self._kept is not None:
                at, schema = self._kept
                if self._interval_s is None or self._now() < at + self._interval_s:
                    return schema
            schema = self._request()
            self._kept = self._now(), schema
            return schema

    def _request(self) -> NamedSchema:
        try:
            schema = self._client.latest_schema(self._subject)
        except StreamerError as error:
            raise ModelError(f"no schema for the subject {self._subject!r}: {error}") from None
        problem = schema_problem(schema.text)
        if problem is not None:
            raise ModelError(f"schema {schema.id} of the registry {problem}")
        return NamedSchema(f"{self._prefix}{schema.id}", parse_json(schema.text.encode()))
