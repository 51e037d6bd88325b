"""`parquet`: "reads and decodes Parquet files into a stream of structured messages"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from streamer.formats.parquet_rows import documents
from streamer.message import Batch, Message
from streamer.source.files import Files
from streamer.source.scanning import MOST, START, Cut, Mark, Opened, ScanError
from streamer.spec import Access, BuildContext, Example, Field, Kind, Parsed, Spec
from streamer.spec.nacks import AUTO_REPLAY_NACKS_FIELD
from streamer.spec.replaced import FIELD_ON_REPLACED, REPLACED_FIELD, RESTART

PATHS: Final = "paths"
BATCH_COUNT: Final = "batch_count"


def _check(parsed: Parsed) -> Iterator[tuple[str, str]]:
    if not parsed[PATHS]:
        yield PATHS, "is an empty list; expected at least one path or glob"


SPEC: Final = Spec(
    Kind.INPUT,
    "parquet",
    "Reads the rows of Parquet files once, in the order of the paths.",
    description=(
        "A row is an object. Times are the numbers that they are stored as; columns of bytes "
        "without a meaning are base64 in JSON, and decimals are texts. Adds the metadata `path`, "
        "`mod_time_unix` (seconds) and `mod_time` (RFC 3339). Positions are kept in the "
        "checkpoint: a restart goes on where it was. Several files are read at once, a file by one "
        "worker."
    ),
    fields=(
        Field(
            PATHS,
            "string",
            "Paths of files, or globs such as `./data/*.parquet` (`**` goes into directories).",
            access=Access.FILE,
            shape="array",
            examples=(("/tmp/foo.parquet", "/tmp/data/**/*.parquet"),),
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
            "All files of a folder",
            "input:\n  parquet:\n    paths: [ ./data/*.parquet ]\n",
        ),
    ),
    status="experimental",
    categories=("Local",),
    runs="worker",
    delivery="exactly once: read again from the same offsets",
)


@dataclass(frozen=True, slots=True)
class ParquetScanner:
    """Cuts files into batches of rows.

    Attributes:
        batch: rows of a batch.
        expansion: about how many bytes are in one of a file.
    """

    batch: int = 1
    expansion: int = 4

    def cuts(self, source: Opened, since: Mark = START, most: int = MOST) -> Iterator[Cut]:
        """Cut a file; see `Scanner`. A mark is a number of rows: their place in bytes is a guess.

        Raises:
            ScanError: it is no Parquet file.
        """
        import pyarrow as pa
        from pyarrow import parquet

        most = -(-most // self.batch) * self.batch
        stream: Any = source.stream
        size = stream.seek(0, 2)
        stream.seek(0)
        try:
            file = parquet.ParquetFile(stream)
            total = file.metadata.num_rows
            group, number = _group_of(file, since.number)
            groups = range(group, file.metadata.num_row_groups)
            held = Batch()
            for rows in file.iter_batches(batch_size=most, row_groups=list(groups)):
                over = min(max(since.number - number, 0), rows.num_rows)
                number += rows.num_rows
                found = documents(rows.slice(over), as_stored=True)
                held += [Message.of(one, source.meta) for one in found]
                while len(held) >= most:
                    given, held = held[:most], held[most:]
                    yield self._cut(given, number - len(held), size, total)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise ScanError(f"{source.name}: {' '.join(str(error).split())}") from None
        if held:
            yield self._cut(held, number, size, total)

    def _cut(self, messages: Batch, number: int, size: int, total: int) -> Cut:
        made = [messages[at : at + self.batch] for at in range(0, len(messages), self.batch)]
        return Cut(made, Mark(size * number // total, number))


def _group_of(file: Any, number: int) -> tuple[int, int]:
    """Return the group of rows that a row is in, and the rows before the group."""
    before = 0
    for group in range(file.metadata.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if before + rows > number:
            return group, before
        before += rows
    return file.metadata.num_row_groups, before


def build(parsed: Parsed, context: BuildContext) -> Files:
    """Make the input; its files are listed by `opened`, when the stream starts."""
    scanner, restarts = ParquetScanner(parsed[BATCH_COUNT]), parsed[FIELD_ON_REPLACED] == RESTART
    permissions = parsed.permissions
    return Files(tuple(parsed[PATHS]), scanner, permissions=permissions, restarts=restarts)
