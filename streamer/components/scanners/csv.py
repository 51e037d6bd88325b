"""`csv`: a message of each row of comma-separated values.

It will "consume comma-separated values row by row, including support for custom delimiters", by the
rules of Go's `encoding/csv`. The metadata `csv_row` has the number of the row, from 0. A row that
is wrong ends the reading of its stream, or becomes a message that is marked as failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from streamer.connectors.files.csv_rows import CsvRows, Rows
from streamer.core.message import Batch, Message
from streamer.sdk.input.scanning import (
    MAX_CUT_MESSAGES,
    START_MARK,
    ScanError,
    ScanInput,
    ScanMark,
    ScannedCut,
    skip_bytes,
)
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

CUSTOM_DELIMITER: Final = "custom_delimiter"
PARSE_HEADER_ROW: Final = "parse_header_row"
LAZY_QUOTES: Final = "lazy_quotes"
CONTINUE_ON_ERROR: Final = "continue_on_error"

ROW: Final = "csv_row"


def _delimiter_problem(text: str) -> str | None:
    if text[:1] in ('"', "\r", "\n", "\0"):
        return f"is {text!r}; expected a letter other than a quote or a line break"
    return None


SPEC: Final = Spec(
    Kind.SCANNER,
    "csv",
    "Makes a message of each row of a CSV stream.",
    description="Adds the metadata `csv_row`, the number of the row from 0, to each message.",
    fields=(
        Field(
            CUSTOM_DELIMITER,
            "string",
            "Separator of fields instead of a comma; the first letter counts.",
            optional=True,
            check=_delimiter_problem,
        ),
        Field(
            PARSE_HEADER_ROW,
            "bool",
            "True if the first row has the names of the fields. Then messages are objects, "
            "otherwise arrays.",
            default=True,
        ),
        Field(
            LAZY_QUOTES,
            "bool",
            "True if a quote may stand in a field that is not quoted, and a single one in a field "
            "that is.",
            default=False,
        ),
        Field(
            CONTINUE_ON_ERROR,
            "bool",
            "True if a row that is wrong becomes a message marked with the error, and reading goes "
            "on. Otherwise the rest of the stream is left out.",
            default=False,
        ),
    ),
    examples=(
        Example(
            "A directory of CSV files",
            "input:\n  file:\n    paths: [ ./data/*.csv ]\n    scanner:\n      csv: {}\n",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class CsvScanner:
    """Reads row by row.

    Attributes:
        delimiter: one letter.
        header: whether the first row names the fields.
        lazy: whether quotes may stand anywhere.
        continues_on_error: whether a faulty row is a message.
    """

    delimiter: bytes = b","
    header: bool = True
    lazy: bool = False
    continues_on_error: bool = False

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut a stream; see `Scanner`. A mark's state is width, line and names."""
        skip_bytes(source.stream, since.position)
        width, line, names = since.state or (0, 0, None)
        rows = CsvRows(source.stream, self.delimiter, self.lazy, (since.position, width, line))
        number = since.number
        for some in rows.read_rows(max_messages):
            if self.header and names is None:
                names = some.records[0]
                if 0 in some.faults:
                    raise ScanError(f"{source.name}: {some.faults[0]}")
                some = Rows(some.records[1:], {n - 1: text for n, text in some.faults.items()})
            fault = None if self.continues_on_error else min(some.faults, default=None)
            made = self._make_batches(some, names, source, number, fault)
            number += len(made)
            if made:
                yield ScannedCut(
                    made, ScanMark(rows.position, number, (rows.width, rows.line, names))
                )
            if fault is not None:
                raise ScanError(f"{source.name}: {some.faults[fault]}")

    def _make_batches(
        self, rows: Rows, names: list[str] | None, source: ScanInput, first: int, end: int | None
    ) -> list[Batch]:
        meta = source.meta
        made: list[Batch] = []
        for number, record in enumerate(rows.records[:end], first):
            document: Any = dict(zip(names, record, strict=False)) if names else record
            made.append([Message.from_value(document, {**meta, ROW: number})])
        for at, text in rows.faults.items():
            if end is None:
                made[at] = [message.with_error(text) for message in made[at]]
        return made


def build(parsed: ParsedFields, context: BuildContext) -> CsvScanner:
    """Take the fields; an empty delimiter is a comma."""
    custom = parsed[CUSTOM_DELIMITER] or ","
    return CsvScanner(
        custom[0].encode(), parsed[PARSE_HEADER_ROW], parsed[LAZY_QUOTES], parsed[CONTINUE_ON_ERROR]
    )
