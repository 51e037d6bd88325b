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

from streamer.message import Batch, Message
from streamer.source.csv_rows import CsvRows, Rows
from streamer.source.files import Files
from streamer.source.scanning import MOST, START, Cut, Mark, Opened, skip
from streamer.spec import Access, BuildContext, Example, Field, Kind, Parsed, Spec
from streamer.spec.nacks import AUTO_REPLAY_NACKS_FIELD
from streamer.spec.replaced import FIELD_ON_REPLACED, REPLACED_FIELD, RESTART

PATHS: Final = "paths"
PARSE_HEADER_ROW: Final = "parse_header_row"
DELIMITER: Final = "delimiter"
LAZY_QUOTES: Final = "lazy_quotes"
DELETE_ON_FINISH: Final = "delete_on_finish"
BATCH_COUNT: Final = "batch_count"
HEADER: Final = "header"


def _delimiter(text: str) -> str | None:
    if len(text) == 1 and text not in '"\r\n\0':
        return None
    return f"is {text!r}; expected exactly one letter, other than a quote or a line break"


def _check(parsed: Parsed) -> Iterator[tuple[str, str]]:
    if not parsed[PATHS]:
        yield PATHS, "is an empty list; expected at least one path or glob"


SPEC: Final = Spec(
    kind=Kind.INPUT,
    name="csv",
    summary="Reads the rows of CSV files once, in the order of the paths.",
    description=(
        "A row is an object whose keys are those of the file's first row, or an array. Adds the "
        "metadata `path`, `mod_time_unix` (seconds), `mod_time` (RFC 3339) and, of objects, "
        "`header`: the keys in the order of the file. Positions are kept in the checkpoint: a "
        "restart goes on where it was. Several files are read at once, a file by one worker."
    ),
    fields=(
        Field(
            PATHS,
            "string",
            "Paths of files, or globs such as `./data/*.csv` (`**` goes into directories).",
            access=Access.FILE,
            shape="array",
            examples=(("/tmp/foo.csv", "/tmp/data/**/*.csv"),),
        ),
        Field(
            PARSE_HEADER_ROW,
            "bool",
            "Whether the first row of each file has the names of the fields. Then messages are "
            "objects, otherwise arrays.",
            default=True,
        ),
        Field(DELIMITER, "string", "The letter between fields.", default=",", check=_delimiter),
        Field(
            LAZY_QUOTES,
            "bool",
            "Whether a quote may stand in a field that is not quoted, and a single one in a field "
            "that is.",
            default=False,
        ),
        Field(
            DELETE_ON_FINISH,
            "bool",
            "Delete a file once all of it is safe in the checkpoint.",
            default=False,
            advanced=True,
        ),
        REPLACED_FIELD,
        Field(
            BATCH_COUNT,
            "int",
            "The rows of a batch; the last one of a file may be smaller.",
            default=1,
            advanced=True,
            check=lambda count: None if count >= 1 else f"is {count}; expected 1 or more",
        ),
        AUTO_REPLAY_NACKS_FIELD,
    ),
    check=_check,
    examples=(
        Example(
            "Files that are separated by semicolons",
            "input:\n  csv:\n    paths: [ ./data/*.csv ]\n    delimiter: ;\n",
        ),
    ),
    categories=("Local",),
    runs="worker",
    delivery="exactly once: read again from the same offsets",
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

    def cuts(self, source: Opened, since: Mark = START, most: int = MOST) -> Iterator[Cut]:
        """Cut a stream; see `Scanner`.

        Rows are read many at a time, and a batch may end amid them. So a mark is the place where
        they begin, with width, line and names there, and the number of messages to leave out.
        """
        skip(source.stream, since.position)
        width, line, names, over = since.state or (0, 0, None, 0)
        reader = CsvRows(source.stream, self.letter, self.lazy, (since.position, width, line))
        anchor = (since.position, width, line, names)
        number = since.number - over
        anchored, held = number, Batch()
        most = -(-most // self.batch) * self.batch
        for rows in reader.some(most):
            if self.header and names is None:
                names = rows.records[0]
                rows = Rows(rows.records[1:], {n - 1: text for n, text in rows.faults.items() if n})
            held += self._messages(rows, names, source)
            # What an earlier cut has given already.
            if over:
                gone = min(over, len(held))
                held, over, number = held[gone:], over - gone, number + gone
            made = [held[at : at + self.batch] for at in range(0, len(held), self.batch)]
            held = made.pop() if made and len(made[-1]) < self.batch else Batch()
            number += len(made) * self.batch
            if not held and not over:
                anchor, anchored = (reader.position, reader.width, reader.line, names), number
            if made:
                state = (*anchor[1:], number - anchored)
                yield Cut(made, Mark(anchor[0], number, state))
        if held:
            state = (reader.width, reader.line, names, 0)
            yield Cut([held], Mark(reader.position, number + len(held), state))

    def _messages(self, rows: Rows, names: list[str] | None, source: Opened) -> list[Message]:
        meta = source.meta
        if rows.faults:
            return self._forgiving(rows, names, source)
        if not names or (rows.records and len(names) < len(rows.records[0])):
            return [Message.of(record, meta) for record in rows.records]
        meta = {**meta, HEADER: names}
        return [Message.of(dict(zip(names, one, strict=False)), meta) for one in rows.records]

    def _forgiving(self, rows: Rows, names: list[str] | None, source: Opened) -> list[Message]:
        named = {**source.meta, HEADER: names}
        made = []
        for at, record in enumerate(rows.records):
            document: Any = record
            if not record:
                text = f"Failed to read message: {source.name}: {rows.faults[at]}"
                source.ex.log("ERROR", text, {"source": source.name})
                source.ex.count("input_error")
            elif names and len(names) >= len(record):
                made.append(Message.of(dict(zip(names, record, strict=False)), named))
            else:
                made.append(Message.of(document, source.meta))
        return made


def build(parsed: Parsed, context: BuildContext) -> Files:
    """Make the input; its files are listed by `opened`, when the stream starts."""
    scanner = RowScanner(
        parsed[DELIMITER].encode(),
        parsed[PARSE_HEADER_ROW],
        parsed[LAZY_QUOTES],
        parsed[BATCH_COUNT],
    )
    paths, delete = tuple(parsed[PATHS]), parsed[DELETE_ON_FINISH]
    restarts = parsed[FIELD_ON_REPLACED] == RESTART
    return Files(paths, scanner, delete, permissions=parsed.permissions, restarts=restarts)
