"""`aws_dynamodb`: "inserts items into a DynamoDB table"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.bloblang.runtime.paths import find_or_null, split_path
from streamer.connectors.aws.attribute_values import Attribute, make_attribute
from streamer.connectors.aws.fields import (
    PACKAGES,
    SESSION_FIELDS,
    TESTED,
    session_problems,
)
from streamer.connectors.aws.output_base import (
    OutgoingRecord,
    RecordFailure,
    RecordOutput,
    retry_fields,
)
from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.protocols import max_in_flight_field
from streamer.sdk.processing.batching import BATCHING_FIELD, batching_problems
from streamer.sdk.spec import (
    Access,
    BuildContext,
    Example,
    Field,
    Kind,
    ParsedFields,
    Spec,
    duration_field,
)
from streamer.sdk.spec.checks import join_checks

TABLE: Final = "table"
STRING_COLUMNS: Final = "string_columns"
JSON_MAP_COLUMNS: Final = "json_map_columns"
TTL: Final = "ttl"
TTL_KEY: Final = "ttl_key"


def _problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    if not (parsed[STRING_COLUMNS] or parsed[JSON_MAP_COLUMNS]):
        yield "", "has no column; set string_columns or json_map_columns"
    if (parsed[TTL] is None) != (not parsed[TTL_KEY]):
        yield TTL, "ttl and ttl_key need each other"


SPEC: Final = Spec(
    Kind.OUTPUT,
    "aws_dynamodb",
    "Puts items into a table of AWS DynamoDB.",
    description=(
        "The items of a batch are put in requests of up to 25. What the table does not take for "
        "now is put again as `max_retries` and `backoff` say. An item that it refuses, such as one "
        "without its key, is rejected alone. Items of one key are put in the order of their "
        "messages with a `max_in_flight` of 1.\n"
        "\n"
        "An item takes the place of one with its key, so a message that is sent again after a "
        "failure of the program changes nothing but the time in `ttl_key`.\n"
        "\n"
        "Numbers of documents are stored as numbers. A path that leads to nothing gives null."
        f"\n\n{TESTED}"
    ),
    fields=(
        Field(TABLE, "string", "The table.", access=Access.REMOTE),
        Field(
            STRING_COLUMNS,
            "string",
            "Texts of the item, by the names of their columns.",
            default={},
            shape="map",
            interpolated=True,
            examples=({"id": "${! this.id }", "full_content": "${! content() }"},),
        ),
        Field(
            JSON_MAP_COLUMNS,
            "string",
            "Values of the item, by the names of their columns: paths in the document, `.` or an "
            "empty path for all of it. An empty name puts the fields of an object into the item "
            "itself.",
            default={},
            shape="map",
            access=Access.NONE,
            examples=({"user": "path.to.user", "whole_document": "."}, {"": "."}),
        ),
        duration_field(
            TTL, "Lifetime of items, from the moment they are sent.", default="", advanced=True
        ),
        Field(
            TTL_KEY,
            "string",
            "The column for the end of the lifetime, s since 1970.",
            default="",
            advanced=True,
        ),
        max_in_flight_field(),
        BATCHING_FIELD,
        *SESSION_FIELDS,
        *retry_fields(3),
    ),
    check=join_checks(session_problems, _problems, batching_problems),
    begin={STRING_COLUMNS: {"id": "${! this.id }"}},
    examples=(
        Example(
            "Documents with an ID",
            "output:\n"
            "  aws_dynamodb:\n"
            "    table: orders\n"
            "    string_columns:\n"
            "      id: ${! this.id }\n"
            "    json_map_columns:\n"
            "      order: .\n"
            "    region: eu-west-1\n",
        ),
    ),
    categories=("Services", "AWS"),
    requires=PACKAGES,
)


class _TableService:
    """Puts items into a table."""

    name = "dynamodb"
    max_records = 25
    # Items have up to 400 kB, so as many as a request takes are below its 16 MB.
    max_bytes = 1 << 24

    def __init__(self, parsed: ParsedFields) -> None:
        self._table = parsed[TABLE]
        self._texts = {
            name: compile_interpolation(text) for name, text in parsed[STRING_COLUMNS].items()
        }
        self._paths = {
            name: split_path(path) if path not in ("", ".") else ()
            for name, path in parsed[JSON_MAP_COLUMNS].items()
        }
        self._ttl = parsed[TTL]
        self._ttl_key = parsed[TTL_KEY]
        self._keys: tuple[str, ...] = ()

    def make_record(self, batch: Batch, index: int, ex: Execution) -> OutgoingRecord:
        """Return a message as an item."""
        item: dict[str, Attribute] = {}
        if self._ttl is not None:
            item[self._ttl_key] = {"N": str((ex.now() + self._ttl) // SECOND)}
        for name, text in self._texts.items():
            item[name] = {"S": interpolate(f"string column {name}", text, batch, index, ex)}
        for name, path in self._paths.items():
            attribute = make_attribute(find_or_null(batch[index].doc, path))
            if not name and "M" in attribute:
                item |= attribute["M"]
            else:
                item[name] = attribute
        return OutgoingRecord(self._table, item, 0)

    def put(self, client: Any, target: str, entries: Sequence[Any]) -> Mapping[int, RecordFailure]:
        """Put items into the table: those of one key by several requests."""
        failures: dict[int, RecordFailure] = {}
        for places in self._split(entries):
            requests = [{"PutRequest": {"Item": entry}} for entry in places.values()]
            answer = client.batch_write_item(RequestItems={target: requests})
            failed = answer.get("UnprocessedItems", {}).get(target, ())
            keys = {self._key_of(one["PutRequest"]["Item"]) for one in failed}
            of_key = [place for place in places if self._key_of(entries[place]) in keys]
            # Where it cannot be told which, all are put again.
            again = of_key if len(of_key) == len(failed) else list(places)
            failures |= dict.fromkeys(again, RecordFailure("the table is busy"))
            if failures:
                rest = range(max(places) + 1, len(entries))
                return failures | dict.fromkeys(rest, RecordFailure("the table is busy"))
        return failures

    def _split(self, entries: Sequence[Any]) -> Iterator[dict[int, Any]]:
        """Cut items, by place, so that no request has a key twice, which is refused."""
        places: dict[int, Any] = {}
        keys: set[str] = set()
        for place, entry in enumerate(entries):
            if (key := self._key_of(entry)) in keys:
                yield places
                places, keys = {}, set()
            places[place] = entry
            keys.add(key)
        yield places

    def _key_of(self, item: Mapping[str, Any]) -> str:
        return repr([item.get(name) for name in self._keys])

    def check(self, client: Any) -> str:
        """Request the description of the table, with its key."""
        table = client.describe_table(TableName=self._table)["Table"]
        self._keys = tuple(one["AttributeName"] for one in table["KeySchema"])
        return f"the table is {table['TableStatus'].lower()}"


def build(parsed: ParsedFields, context: BuildContext) -> RecordOutput:
    """Compile the fields; nothing is connected yet."""
    return RecordOutput(_TableService(parsed), parsed, context)
