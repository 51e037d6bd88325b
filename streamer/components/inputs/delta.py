"""`delta`: reads the rows of a Delta table, and those that are appended to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamer.connectors.delta.delta_fields import (
    PATH,
    PATH_FIELD,
    STORAGE_OPTIONS,
    STORAGE_OPTIONS_FIELD,
)
from streamer.connectors.tables.input_fields import (
    METADATA_DESCRIPTION,
    ON_CHANGE,
    ROWS_DESCRIPTION,
    TABLE_INPUT_FIELDS,
    make_table_source,
    read_selection,
    start_from_field,
)
from streamer.sdk.spec import BuildContext, Example, Kind, Package, ParsedFields, Spec
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD

if TYPE_CHECKING:
    from streamer.connectors.tables.table_source import TableSource

SPEC: Final = Spec(
    Kind.INPUT,
    "delta",
    "Reads the rows of a Delta table, and then those that are appended.",
    description=(
        f"{ROWS_DESCRIPTION}\n"
        "\n"
        "With `on_change: rows` and the change data feed of the table "
        "(`delta.enableChangeDataFeed`), changed rows come as the feed has them. Without it, "
        "all rows of a file that is written anew come as `delete`, then as `insert`. Not in "
        "Connect.\n"
        "\n"
        f"{METADATA_DESCRIPTION}"
    ),
    fields=(
        PATH_FIELD,
        start_from_field("A number of a version"),
        *TABLE_INPUT_FIELDS,
        STORAGE_OPTIONS_FIELD,
        AUTO_REPLAY_NACKS_FIELD,
    ),
    examples=(
        Example(
            "Follow a table",
            "input:\n  delta:\n    path: ./table\n",
        ),
        Example(
            "Some columns of some rows, once",
            "input:\n"
            "  delta:\n"
            "    path: ./table\n"
            "    columns: [light, cars]\n"
            "    where: [[light, '=', north]]\n"
            "    read_once: true\n",
        ),
    ),
    categories=("Tables",),
    runs="worker",
    delivery="exactly once: read again from the same version, file and row",
    limits="no deletion vectors, no mapping of column names",
    requires=(Package("deltalake"),),
)


def build(parsed: ParsedFields, context: BuildContext) -> TableSource:
    """Take the table; it is opened when the stream starts."""
    from streamer.connectors.delta.delta_reader import DeltaReader

    reader = DeltaReader(
        parsed.permissions.file(parsed[PATH]),
        parsed[STORAGE_OPTIONS],
        read_selection(parsed),
        parsed[ON_CHANGE],
    )
    return make_table_source(parsed, reader)
