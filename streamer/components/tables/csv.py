"""`csv`: a lookup table in a CSV file."""

from __future__ import annotations

from typing import Final

from streamer.connectors.formats.table_rows import CSV_FIELDS, DELIMITER, TYPES, read_csv_rows
from streamer.connectors.locations.stores import location_packages
from streamer.connectors.locations.table_file import PATH, PATH_FIELD, REFRESH, TableFile
from streamer.sdk.lookup_table import TABLE_BEGIN, TableLoader, table_fields, table_problems
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec

SPEC: Final = Spec(
    Kind.TABLE,
    "csv",
    "Looks up rows of a CSV file.",
    description=(
        "The first row has the names of the columns. All values are texts, unless `types` says "
        "otherwise. See [lookup tables](../../lookup-tables.md)."
    ),
    fields=(PATH_FIELD, *CSV_FIELDS, *table_fields(*REFRESH)),
    check=table_problems,
    begin=TABLE_BEGIN,
    requires=location_packages(PATH),
    examples=(
        Example(
            "The country of a city",
            "pipeline:\n"
            "  processors:\n"
            '    - mutation: root.country = table("cities").get(this.city).country\n'
            "table_resources:\n"
            "  - label: cities\n"
            "    csv:\n"
            "      path: cities.csv\n"
            "      key: city\n",
        ),
    ),
    categories=("Local",),
)


def build(parsed: ParsedFields, context: BuildContext) -> TableLoader:
    """Take the file."""
    delimiter, types = parsed[DELIMITER], parsed[TYPES]
    source = TableFile(
        parsed[PATH], parsed.permissions, lambda raw: read_csv_rows(raw, delimiter, types)
    )
    return TableLoader(parsed, source, context)
