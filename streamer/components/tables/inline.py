"""`inline`: a lookup table whose rows stand in the config."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from streamer.core.execution import Execution
from streamer.core.lookup_tables import TableRow
from streamer.sdk.lookup_table import (
    REFRESH_INTERVAL,
    TABLE_BEGIN,
    TableLoader,
    table_fields,
    table_problems,
)
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

ROWS: Final = "rows"


def _check_rows(rows: Any) -> str | None:
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            return f"has no object in the place {number}; expected objects, such as {{id: 1}}"
    return None


SPEC: Final = Spec(
    Kind.TABLE,
    "inline",
    "Looks up rows that stand in the config.",
    description=(
        "For a few rows, and in unit tests in the place of another table. See "
        "[lookup tables](../../lookup-tables.md)."
    ),
    fields=(
        Field(
            ROWS,
            "unknown",
            "The rows, objects.",
            shape="array",
            check=_check_rows,
            examples=([{"city": "Berlin", "country": "de"}],),
        ),
        *(one for one in table_fields("0s", "") if one.name != REFRESH_INTERVAL),
    ),
    check=table_problems,
    begin=TABLE_BEGIN,
    examples=(
        Example(
            "The country of a city",
            "pipeline:\n"
            "  processors:\n"
            '    - mutation: root.country = table("cities").get(this.city).country\n'
            "table_resources:\n"
            "  - label: cities\n"
            "    inline:\n"
            "      key: city\n"
            "      rows:\n"
            "        - city: Berlin\n"
            "          country: de\n"
            "        - city: Paris\n"
            "          country: fr\n",
        ),
    ),
    categories=("Utility",),
)


class InlineRows:
    """Rows that are known."""

    def __init__(self, rows: Iterable[TableRow]) -> None:
        """Take the rows."""
        self._rows = rows

    def read_rows(self, ex: Execution) -> Iterable[TableRow]:
        """Give the rows; see `RowSource`."""
        return self._rows

    def change_sign(self) -> str | None:
        """Return the same text always: they do not change."""
        return ""


def build(parsed: ParsedFields, context: BuildContext) -> TableLoader:
    """Take the rows."""
    return TableLoader(parsed, InlineRows(parsed[ROWS]), context)
