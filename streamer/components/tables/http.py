"""`http`: a lookup table that a server gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from streamer.connectors.formats.table_rows import (
    CSV_FIELDS,
    DELIMITER,
    TYPES,
    read_csv_rows,
    read_json_array_rows,
    read_json_line_rows,
)
from streamer.connectors.http_client.client import HttpClient
from streamer.connectors.http_client.fields import client_fields, client_problems
from streamer.core.execution import Execution
from streamer.core.lookup_tables import TableRow
from streamer.core.message import Message
from streamer.sdk.lookup_table import TABLE_BEGIN, TableLoader, table_fields, table_problems
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

FORMAT: Final = "format"


def _check(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    yield from client_problems(parsed)
    yield from table_problems(parsed)


SPEC: Final = Spec(
    Kind.TABLE,
    "http",
    "Looks up rows of what a server answers.",
    description=(
        "The driver makes the request: workers need no way to the server. See "
        "[lookup tables](../../lookup-tables.md)."
    ),
    fields=(
        *client_fields("GET"),
        Field(
            FORMAT,
            "string",
            "Format of the response: `json` for an array of objects, `json_lines` for an "
            "object on each line, `csv` for rows below a header.",
            default="json",
            options=("json", "json_lines", "csv"),
        ),
        *CSV_FIELDS,
        *table_fields("5m", "to make the request again"),
    ),
    check=_check,
    begin=TABLE_BEGIN,
    examples=(
        Example(
            "Exchange rates of an API",
            "pipeline:\n"
            "  processors:\n"
            '    - mutation: root.euro = this.amount * table("rates").get(this.currency).rate\n'
            "table_resources:\n"
            "  - label: rates\n"
            "    http:\n"
            "      url: http://localhost:8000/rates\n"
            "      key: currency\n"
            "      refresh_interval: 10m\n",
        ),
    ),
    categories=("Network",),
)


class AnswerRowSource:
    """Makes a request for the rows of a table."""

    def __init__(self, parsed: ParsedFields, client: HttpClient) -> None:
        """Take the fields, and what makes the request."""
        self._parsed, self._client = parsed, client

    def read_rows(self, ex: Execution) -> Iterable[TableRow]:
        """Give the rows; see `RowSource`."""
        body = self._client.send([Message(b"")], ex).body
        match self._parsed[FORMAT]:
            case "csv":
                return read_csv_rows(body, self._parsed[DELIMITER], self._parsed[TYPES])
            case "json_lines":
                return read_json_line_rows(body)
            case _:
                return read_json_array_rows(body)

    def change_sign(self) -> str | None:
        """Return None: only the answer tells."""
        return None


def build(parsed: ParsedFields, context: BuildContext) -> TableLoader:
    """Take what makes the request."""
    return TableLoader(parsed, AnswerRowSource(parsed, HttpClient(parsed, context)), context)
