"""`schema_registry`: reads the schemas of a Confluent schema registry once, and has ended then.

Each version of a subject is a message, the document that the registry gives of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from streamer.connectors.schema_registry.client import RegistryClient, RegistryError
from streamer.connectors.schema_registry.fields import (
    CONNECTION_FIELDS,
    URL_FIELD,
    connection_problems,
)
from streamer.connectors.spool.blocks import Record, pack_each
from streamer.connectors.spool.pointer import read_safe
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.regex_field import compile_pattern, pattern_problem
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

NAME: Final = "schema_registry"
INCLUDE_DELETED: Final = "include_deleted"
SUBJECT_FILTER: Final = "subject_filter"
FETCH_IN_ORDER: Final = "fetch_in_order"

SPEC: Final = Spec(
    Kind.INPUT,
    NAME,
    "Reads the schemas of a Confluent schema registry.",
    description=(
        "Each version of each subject is a message: a JSON document with `subject`, `version`, "
        "`id`, `schema`, and, if there are any, `schemaType` and `references`. The metadata are "
        "`schema_registry_subject`, `schema_registry_version` and, if the subject has one of its "
        "own, `schema_registry_subject_compatibility_level`. After the last schema, the input has "
        "ended. Reading that was interrupted begins again."
    ),
    fields=(
        URL_FIELD,
        Field(
            INCLUDE_DELETED,
            "bool",
            "True to read also what is marked as deleted.",
            default=False,
            advanced=True,
        ),
        Field(
            SUBJECT_FILTER,
            "string",
            "A regular expression (RE2) that the names of subjects match somewhere.",
            default="",
            advanced=True,
            access=Access.NONE,
            check=pattern_problem,
            examples=("^foo.*",),
        ),
        Field(
            FETCH_IN_ORDER,
            "bool",
            "True to give schemas in the order of their ids, so that a schema comes after those "
            "that it refers to. All are in memory then.",
            default=True,
            advanced=True,
        ),
        AUTO_REPLAY_NACKS_FIELD,
        *CONNECTION_FIELDS,
    ),
    check=connection_problems,
    examples=(
        Example(
            "All schemas of orders",
            "input:\n"
            "  schema_registry:\n"
            "    url: http://localhost:8081\n"
            "    subject_filter: ^orders\n",
        ),
    ),
    begin={"url": "http://localhost:8081"},
    categories=("Integration",),
    delivery="at least once: reading that was interrupted begins again",
)


@dataclass(frozen=True)
class SchemaRegistryInput:
    """An input before it is opened.

    Attributes:
        parsed: its fields.
        origin: who speaks in the log.
    """

    parsed: ParsedFields
    origin: ComponentRef

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to read schemas; return the source of what the spool holds."""
        if read_safe(context.directory).closed:
            return SpoolSource.for_input(context)
        client = RegistryClient(self.parsed)

        def session(one: Session) -> None:
            try:
                client.probe()
                one.set_connected()
                for document in self._list_schemas(client):
                    if context.stopping or not one.write([_make_record(client, document)]):
                        return
            except RegistryError as error:
                raise ConnectionLostError(str(error)) from None

        return start_sessions(context, NAME, self.origin.fields, session)

    def _list_schemas(self, client: RegistryClient) -> Iterator[dict[str, Any]]:
        deleted = self.parsed[INCLUDE_DELETED]
        pattern = compile_pattern(self.parsed[SUBJECT_FILTER])
        subjects = [one for one in client.list_subjects(deleted) if pattern.search(one)]
        documents = (
            client.fetch_version(subject, version, deleted)
            for subject in subjects
            for version in client.list_versions(subject, deleted)
        )
        if not self.parsed[FETCH_IN_ORDER]:
            return documents
        return iter(sorted(documents, key=lambda document: int(document["id"])))

    def probe(self) -> str:
        """Check that the registry answers."""
        return RegistryClient(self.parsed).probe()


def _make_record(client: RegistryClient, document: dict[str, Any]) -> Record:
    meta = {
        "schema_registry_subject": document["subject"],
        "schema_registry_version": document["version"],
    }
    level = client.compatibility(document["subject"])
    if level is not None:
        meta["schema_registry_subject_compatibility_level"] = level
    return pack_each([json.dumps(document, ensure_ascii=False).encode()], meta)


def build(parsed: ParsedFields, context: BuildContext) -> SchemaRegistryInput:
    """Take the fields; the registry is asked once the input is opened."""
    return SchemaRegistryInput(parsed, ComponentRef(context.component))
