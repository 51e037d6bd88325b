"""`json_lines`: a lookup table in a file with an object on each line."""

from __future__ import annotations

from typing import Final

from streamer.connectors.formats.table_rows import read_json_line_rows
from streamer.connectors.locations.stores import location_packages
from streamer.connectors.locations.table_file import PATH, PATH_FIELD, REFRESH, TableFile
from streamer.sdk.lookup_table import TABLE_BEGIN, TableLoader, table_fields, table_problems
from streamer.sdk.spec import BuildContext, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.TABLE,
    "json_lines",
    "Looks up objects of a file that has one on each line.",
    description="See [lookup tables](../../lookup-tables.md).",
    fields=(PATH_FIELD, *table_fields(*REFRESH)),
    check=table_problems,
    begin=TABLE_BEGIN,
    requires=location_packages(PATH),
    categories=("Local",),
)


def build(parsed: ParsedFields, context: BuildContext) -> TableLoader:
    """Take the file."""
    source = TableFile(parsed[PATH], parsed.permissions, read_json_line_rows)
    return TableLoader(parsed, source, context)
