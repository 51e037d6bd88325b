"""Fields of an Iceberg table that is written which are about commits, files and columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.sdk.output.protocols import MAX_IN_FLIGHT
from streamer.sdk.spec import Access, Field, ParsedFields, duration_field

CASE_SENSITIVE: Final = "case_sensitive_columns"
COMMIT: Final = "commit"
MANIFEST_MERGE: Final = "manifest_merge_enabled"
MAX_SNAPSHOT_AGE: Final = "max_snapshot_age"
MAX_RETRIES: Final = "max_retries"
PARQUET: Final = "parquet"
SCHEMA_METADATA: Final = "schema_metadata"
TYPE_MAPPING: Final = "new_column_type_mapping"
REQUIRE_METADATA: Final = "require_schema_metadata"

CASE_FIELD: Final = Field(
    CASE_SENSITIVE,
    "bool",
    "Whether fields of messages belong to columns of exactly the same name. Without it, a field "
    "`COLUMN` belongs to a column `column`, at each depth. A message with two fields whose names "
    "differ by case alone is rejected then.",
    default=True,
    advanced=True,
)

COMMIT_FIELD: Final = Field(
    COMMIT,
    "object",
    "Commits of the table.",
    default={},
    advanced=True,
    children=(
        Field(
            MANIFEST_MERGE,
            "bool",
            "Whether a commit joins small manifests, as the properties `commit.manifest.…` of the "
            "table say.",
            default=True,
            advanced=True,
        ),
        duration_field(
            MAX_SNAPSHOT_AGE,
            "Snapshots that are older are removed from the table after a commit, once in an hour. "
            "Snapshots of branches and tags stay. Files stay too, until `remove_orphan_files` of "
            "Iceberg deletes them. 0s removes none. In Connect it is 24h unless the config says "
            "so.",
            default="0s",
            advanced=True,
            check=lambda ns: None if ns >= 0 else "must not be negative",
        ),
        Field(
            MAX_RETRIES,
            "int",
            "Has no effect: a commit is tried for as long as the stream runs.",
            default=3,
            advanced=True,
            check=lambda number: None if number >= 1 else f"is {number}; expected 1 or more",
        ),
    ),
)

PARQUET_FIELD: Final = Field(
    PARQUET,
    "object",
    "Data files.",
    default={},
    advanced=True,
    children=(
        Field(
            "string_encoding",
            "string",
            "Has no effect: PyIceberg writes texts with dictionaries, and plain where these are "
            "large. All readers take both.",
            default="delta_length_byte_array",
            options=("plain", "delta_length_byte_array"),
            advanced=True,
        ),
    ),
)

MAX_IN_FLIGHT_FIELD: Final = Field(
    MAX_IN_FLIGHT,
    "int",
    "Has no effect: the commits of a stream to its table follow one another.",
    default=4,
    advanced=True,
    check=lambda number: None if number >= 1 else f"is {number}; expected 1 or more",
)

NEW_COLUMN_FIELDS: Final = (
    Field(
        SCHEMA_METADATA,
        "string",
        "The metadata of messages that has their schema, in the common form of Connect: `type`, "
        "`name` and `children`. It gives the types and the order of new columns. Fields that "
        "messages do not have add no columns.",
        default="",
        advanced=True,
        access=Access.NONE,
        examples=("schema",),
    ),
    Field(
        TYPE_MAPPING,
        "string",
        "A mapping that chooses the type of a new column. It gets `name`, `path`, `value`, "
        "`inferred_type`, `message`, `namespace` and `table`, and returns the name of a type: "
        "`boolean`, `int`, `long`, `float`, `double`, `string`, `binary`, `date`, `timestamp`, "
        "`timestamptz` or `decimal(p,s)`. It is not called for fields of objects in a column.",
        optional=True,
        mapping=True,
        advanced=True,
        examples=('root = if this.name.has_suffix("_at") { "timestamptz" }',),
    ),
    Field(
        REQUIRE_METADATA,
        "bool",
        "Has no effect: a number never fits a column of times, with or without metadata.",
        default=False,
        advanced=True,
    ),
)


def new_column_problems(evolution: ParsedFields, place: str) -> Iterator[tuple[str, str]]:
    """Give what is wrong with the fields about new columns, which stand at a place."""
    if not evolution["enabled"]:
        for name in (SCHEMA_METADATA, TYPE_MAPPING):
            if evolution[name]:
                yield f"{place}.{name}", "has no effect without enabled: true"
    if evolution[REQUIRE_METADATA] and not evolution[SCHEMA_METADATA]:
        yield f"{place}.{REQUIRE_METADATA}", f"needs the field {SCHEMA_METADATA}"
