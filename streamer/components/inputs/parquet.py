"""`parquet`: "reads and decodes Parquet files into a stream of structured messages"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from streamer.bloblang.runtime.parquet_rows import row_documents
from streamer.connectors.files.file_fields import (
    BATCH_COUNT,
    BATCH_COUNT_FIELD,
    PATHS,
    paths_field,
)
from streamer.connectors.files.file_source import FileSource
from streamer.connectors.locations.file_input import (
    URLS,
    location_problems,
    make_file_input,
)
from streamer.connectors.locations.stores import location_packages
from streamer.connectors.objects.object_source import ObjectSource
from streamer.connectors.tables.input_fields import (
    COLUMNS,
    COLUMNS_FIELD,
    FILES_READ_ONCE_FIELD,
    HIVE_PARTITIONING,
    HIVE_PARTITIONING_FIELD,
    POLL_INTERVAL,
    POLL_INTERVAL_FIELD,
    READ_ONCE,
    WHERE,
    WHERE_FIELD,
    read_selection,
)
from streamer.core.message import Batch, Message
from streamer.sdk.input.scanning import (
    MAX_CUT_MESSAGES,
    START_MARK,
    ScanError,
    ScanInput,
    ScanMark,
    ScannedCut,
)
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec
from streamer.sdk.spec.nacks import AUTO_REPLAY_NACKS_FIELD
from streamer.sdk.spec.on_replaced import FIELD_ON_REPLACED, REPLACED_FIELD, RESTART

if TYPE_CHECKING:
    from streamer.connectors.tables.growing_files import GrowingFiles

_SELECTION_FIELDS: Final = (COLUMNS, WHERE, HIVE_PARTITIONING)


SPEC: Final = Spec(
    Kind.INPUT,
    "parquet",
    "Reads the rows of Parquet files once, in the order of the paths.",
    description=(
        "A row is an object. Times are the numbers that they are stored as; columns of bytes "
        "without a meaning are base64 in JSON, and decimals are texts. Adds the metadata "
        "`path`, `mod_time_unix` (seconds) and `mod_time` (RFC 3339). The checkpoint has the "
        "positions: a restart continues there. Several files are read in parallel, each by "
        "one worker.\n"
        "\n"
        "With `read_once: false` the input goes on with files that come to the directories, "
        "whatever their names are. Each is read once, in the order of notice; a list in the "
        "checkpoint has all of them. A file must be whole when it gets its name: write it under "
        "another one, and rename it. Names that begin with `_` or `.` are left out, and so is a "
        "file without a footer, until it has one. A path may then be a directory, which "
        "stands for all files in it whose names end in `.parquet`. `columns`, `where`, "
        "`hive_partitioning` and `poll_interval` are not in Connect.\n"
        "\n"
        f"{URLS} An object is read by ranges. With `read_once: false`, a URL that is no glob and "
        "does not end in `.parquet` is a directory; each poll lists it."
    ),
    fields=(
        paths_field("parquet", "/tmp/foo.parquet", "/tmp/data/**/*.parquet"),
        REPLACED_FIELD,
        BATCH_COUNT_FIELD,
        FILES_READ_ONCE_FIELD,
        POLL_INTERVAL_FIELD,
        COLUMNS_FIELD,
        WHERE_FIELD,
        HIVE_PARTITIONING_FIELD,
        AUTO_REPLAY_NACKS_FIELD,
    ),
    check=location_problems,
    examples=(
        Example(
            "All files of a folder",
            "input:\n  parquet:\n    paths: [ ./data/*.parquet ]\n",
        ),
        Example(
            "Files that come, of some days",
            "input:\n"
            "  parquet:\n"
            "    paths: [ ./rows ]\n"
            "    read_once: false\n"
            "    hive_partitioning: true\n"
            "    where: [[day, '>=', '2026-01-01']]\n",
        ),
    ),
    status="experimental",
    categories=("Local",),
    runs="worker",
    delivery="exactly once: read again from the same offsets",
    requires=location_packages(PATHS),
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

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut a file; see `Scanner`. A mark is a number of rows: their place in bytes is a guess.

        Raises:
            ScanError: it is no Parquet file.
        """
        import pyarrow as pa
        from pyarrow import parquet

        max_messages = -(-max_messages // self.batch) * self.batch
        stream: Any = source.stream
        size = stream.seek(0, 2)
        stream.seek(0)
        try:
            file = parquet.ParquetFile(stream)
            total = file.metadata.num_rows
            group, number = _row_group_of(file, since.number)
            groups = range(group, file.metadata.num_row_groups)
            pending = Batch()
            for rows in file.iter_batches(batch_size=max_messages, row_groups=list(groups)):
                over = min(max(since.number - number, 0), rows.num_rows)
                number += rows.num_rows
                decoded = row_documents(rows.slice(over), as_stored=True)
                pending += [Message.from_value(one, source.meta) for one in decoded]
                while len(pending) >= max_messages:
                    batch, pending = pending[:max_messages], pending[max_messages:]
                    yield self._make_cut(batch, number - len(pending), size, total)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise ScanError(f"{source.name}: {' '.join(str(error).split())}") from None
        if pending:
            yield self._make_cut(pending, number, size, total)

    def _make_cut(self, messages: Batch, number: int, size: int, total: int) -> ScannedCut:
        made = [messages[at : at + self.batch] for at in range(0, len(messages), self.batch)]
        return ScannedCut(made, ScanMark(size * number // total, number))


def _row_group_of(file: Any, number: int) -> tuple[int, int]:
    """Return the group of rows that a row is in, and the rows before the group."""
    before = 0
    for group in range(file.metadata.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if before + rows > number:
            return group, before
        before += rows
    return file.metadata.num_row_groups, before


def build(parsed: ParsedFields, context: BuildContext) -> FileSource | ObjectSource | GrowingFiles:
    """Make the input; its files are listed by `open`, when the stream starts."""
    if parsed[READ_ONCE] and not any(parsed[name] for name in _SELECTION_FIELDS):
        return make_file_input(parsed, context, ParquetScanner(parsed[BATCH_COUNT]), seeks=True)
    from streamer.connectors.tables.growing_files import FileSettings, GrowingFiles

    settings = FileSettings(
        tuple(parsed[PATHS]),
        read_selection(parsed),
        parsed[HIVE_PARTITIONING],
        parsed[FIELD_ON_REPLACED] == RESTART,
        parsed.permissions,
    )
    return GrowingFiles(
        settings, parsed[POLL_INTERVAL], parsed[BATCH_COUNT], read_once=parsed[READ_ONCE]
    )
