"""The `csv` input: rows of CSV files, read once from the first file to the last, as Benthos does.

It "reads one or more CSV files as structured records following the format described in RFC 4180".
It forgives more than the `csv` scanner: a row with fewer fields than the header is an object of
those, one with more is an array, and of a row that is wrong the fields before the fault are taken.
A row without any is logged as an error and left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from streamer.connectors.files.csv_rows import CsvRows, Rows
from streamer.connectors.files.file_fields import (
    BATCH_COUNT,
    BATCH_COUNT_FIELD,
    DELETE_FIELD,
    PATHS,
    paths_field,
)
from streamer.connectors.files.file_source import FileSource
from streamer.connectors.locations.file_input import URLS, location_problems, make_file_input
from streamer.connectors.locations.stores import location_packages
from streamer.connectors.objects.object_source import ObjectSource
from streamer.core.message import Batch, Message
from streamer.sdk.input.scanning import (
    MAX_CUT_MESSAGES,
    START_MARK,
    ScanInput,
    ScanMark,
    ScannedCut,
    skip_bytes,
)
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD
from streamer.sdk.spec.on_replaced import REPLACED_FIELD

PARSE_HEADER_ROW: Final = "parse_header_row"
DELIMITER: Final = "delimiter"
LAZY_QUOTES: Final = "lazy_quotes"
HEADER: Final = "header"


def _delimiter_problem(text: str) -> str | None:
    if len(text) == 1 and text not in '"\r\n\0':
        return None
    return f"is {text!r}; expected exactly one letter, other than a quote or a line break"


SPEC: Final = Spec(
    kind=Kind.INPUT,
    name="csv",
    summary="Reads the rows of CSV files once, in the order of the paths.",
    description=(
        "A row is an object whose keys are those of the file's first row, or an array. Adds "
        "the metadata `path`, `mod_time_unix` (seconds), `mod_time` (RFC 3339) and, of "
        "objects, `header`: the keys in the order of the file. The checkpoint has the "
        "positions: a restart continues there. Several files are read in parallel, each by "
        f"one worker. {URLS}"
    ),
    fields=(
        paths_field("csv", "/tmp/foo.csv", "/tmp/data/**/*.csv"),
        Field(
            PARSE_HEADER_ROW,
            "bool",
            "True if the first row of each file has the names of the fields. Then messages are "
            "objects, otherwise arrays.",
            default=True,
        ),
        Field(
            DELIMITER, "string", "The letter between fields.", default=",", check=_delimiter_problem
        ),
        Field(
            LAZY_QUOTES,
            "bool",
            "True if a quote may stand in a field that is not quoted, and a single one in a field "
            "that is.",
            default=False,
        ),
        DELETE_FIELD,
        REPLACED_FIELD,
        BATCH_COUNT_FIELD,
        AUTO_REPLAY_NACKS_FIELD,
    ),
    check=location_problems,
    examples=(
        Example(
            "Files that are separated by semicolons",
            "input:\n  csv:\n    paths: [ ./data/*.csv ]\n    delimiter: ;\n",
        ),
    ),
    categories=("Local",),
    runs="worker",
    delivery="exactly once: read again from the same offsets",
    requires=location_packages(PATHS),
)


@dataclass(frozen=True, slots=True)
class RowScanner:
    """Cuts files into batches of rows.

    Attributes:
        letter: what stands between fields.
        header: whether the first row names them.
        lazy: whether quotes may stand anywhere.
        batch: rows of a batch.
    """

    letter: bytes = b","
    header: bool = True
    lazy: bool = False
    batch: int = 1

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut a stream; see `Scanner`.

        Rows are read many at a time, and a batch may end amid them. So a mark is the place where
        they begin, with width, line and names there, and the number of messages to leave out.
        """
        skip_bytes(source.stream, since.position)
        width, line, names, over = since.state or (0, 0, None, 0)
        reader = CsvRows(source.stream, self.letter, self.lazy, (since.position, width, line))
        anchor = (since.position, width, line, names)
        number = since.number - over
        anchored, pending = number, Batch()
        max_messages = -(-max_messages // self.batch) * self.batch
        for rows in reader.read_rows(max_messages):
            if self.header and names is None:
                names = rows.records[0]
                rows = Rows(rows.records[1:], {n - 1: text for n, text in rows.faults.items() if n})
            pending += self._make_messages(rows, names, source)
            # What an earlier cut has given already.
            if over:
                skipped = min(over, len(pending))
                pending, over, number = pending[skipped:], over - skipped, number + skipped
            made = [pending[at : at + self.batch] for at in range(0, len(pending), self.batch)]
            pending = made.pop() if made and len(made[-1]) < self.batch else Batch()
            number += len(made) * self.batch
            if not pending and not over:
                anchor, anchored = (reader.position, reader.width, reader.line, names), number
            if made:
                state = (*anchor[1:], number - anchored)
                yield ScannedCut(made, ScanMark(anchor[0], number, state))
        if pending:
            state = (reader.width, reader.line, names, 0)
            yield ScannedCut([pending], ScanMark(reader.position, number + len(pending), state))

    def _make_messages(
        self, rows: Rows, names: list[str] | None, source: ScanInput
    ) -> list[Message]:
        meta = source.meta
        if rows.faults:
            return self._make_messages_with_faults(rows, names, source)
        if not names or (rows.records and len(names) < len(rows.records[0])):
            return [Message.from_value(record, meta) for record in rows.records]
        meta = {**meta, HEADER: names}
        return [
            Message.from_value(dict(zip(names, one, strict=False)), meta) for one in rows.records
        ]

    def _make_messages_with_faults(
        self, rows: Rows, names: list[str] | None, source: ScanInput
    ) -> list[Message]:
        named = {**source.meta, HEADER: names}
        made = []
        for at, record in enumerate(rows.records):
            document: Any = record
            if not record:
                text = f"Failed to read message: {source.name}: {rows.faults[at]}"
                source.ex.log("ERROR", text, {"source": source.name})
                source.ex.count("input_error")
            elif names and len(names) >= len(record):
                made.append(Message.from_value(dict(zip(names, record, strict=False)), named))
            else:
                made.append(Message.from_value(document, source.meta))
        return made


def build(parsed: ParsedFields, context: BuildContext) -> FileSource | ObjectSource:
    """Make the input; its files are listed by `open`, when the stream starts."""
    scanner = RowScanner(
        parsed[DELIMITER].encode(),
        parsed[PARSE_HEADER_ROW],
        parsed[LAZY_QUOTES],
        parsed[BATCH_COUNT],
    )
    return make_file_input(parsed, context, scanner)
