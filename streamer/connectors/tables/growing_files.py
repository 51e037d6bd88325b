"""Parquet files of directories to which others come: each is read once, in the order of notice.

The rounds in which files are noticed are the versions of this reader; see `TableReader`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from streamer.bloblang.runtime.parquet_rows import row_documents
from streamer.connectors.tables.file_columns import RowSelection, read_selected
from streamer.connectors.tables.growing_places import (
    FileReplacedError,
    GrowingPlaces,
    open_places,
)
from streamer.connectors.tables.parquet_journal import FileJournal, NoticedFile
from streamer.connectors.tables.parquet_rows import open_parquet
from streamer.connectors.tables.table_client import TableUnavailableError
from streamer.connectors.tables.table_reader import (
    NO_VERSION,
    DataFile,
    TablePiece,
    TableReadError,
    TableRows,
    TableStep,
)
from streamer.connectors.tables.table_source import TableSource, TableWatch
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.permissions import ALL, Permissions
from streamer.core.timestamps import format_rfc3339
from streamer.sdk.input.input_context import InputContext

_ROUND_FILES: Final = 10_000
_MAX_KNOWN_COUNTS: Final = 50_000
_NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
_UNREADABLE_ROWS: Final = 1
"""Rows of a file that has a damaged footer: so a worker comes to it, and logs the damage."""

_WARN_AFTER_S: Final = 60


class FileSettings(NamedTuple):
    """The files that an input reads, and how.

    Attributes:
        paths: directories, files and globs.
        selection: what is read of each row.
        has_partitions: whether directories such as `day=2026-01-01` are columns.
        restarts: whether a file that was replaced before it was read is read as it is now.
        permissions: whether files may be read.
    """

    paths: tuple[str, ...]
    selection: RowSelection = RowSelection()
    has_partitions: bool = False
    restarts: bool = False
    permissions: Permissions = ALL


def partition_values(path: str) -> dict[str, pa.Scalar]:
    """Return the columns that the directories of a path name; their values are texts.

    Whether a text is a number cannot be seen in one path: `01` and `10` are months.

    Example:
        >>> partition_values("rows/year=2026/k=a%20b/part-0.parquet")["k"].as_py()
        'a b'
    """
    values: dict[str, pa.Scalar] = {}
    for part in os.path.dirname(path).split(os.sep):
        name, mark, text = part.partition("=")
        if mark and name:
            value = None if text == _NULL_PARTITION else unquote(text)
            values[unquote(name)] = pa.scalar(value, pa.string())
    return values


@dataclass(frozen=True)
class GrowingFilesReader:
    """Files that are noticed in rounds; see `TableReader`.

    Attributes:
        settings: the files.
        directory: of the input, in the checkpoint.
    """

    settings: FileSettings
    directory: str
    _known: _Known = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_known", _Known())

    def __reduce__(self) -> Any:
        return GrowingFilesReader, (self.settings, self.directory)

    def describe(self) -> str:
        """Return the paths."""
        return f"the files {', '.join(self.settings.paths)}"

    @property
    def name(self) -> str:
        """The paths."""
        return ", ".join(self.settings.paths)

    def identity(self) -> str:
        """Return nothing: a directory has no identity."""
        return ""

    def newest_version(self) -> int | None:
        """Notice files that are new, and return the number of the newest round."""
        journal = self._journal()
        for noticed in self._places().iter_new(journal.select_new):
            for first in range(0, len(noticed), _ROUND_FILES):
                journal.append(noticed[first : first + _ROUND_FILES])
        return len(journal) - 1

    def find_start(self, text: str) -> int:
        """Return the place before the first round."""
        return NO_VERSION

    def versions_after(self, version: int) -> Iterator[int]:
        """Give the rounds that follow one; new files are noticed when there is none."""
        journal = self._journal()
        if version >= len(journal):
            raise TableReadError(
                f"the journal of {self.describe()} in {self.directory} ends with round "
                f"{len(journal) - 1}, and this stream has read round {version}: restore the "
                "checkpoint from a backup, or delete it to read all files again"
            )
        if version == len(journal) - 1:
            self.newest_version()
        yield from range(version + 1, len(journal))

    def count_groups(self, step: TableStep) -> int:
        """Return one: a round is one list."""
        return 1

    def list_files(self, step: TableStep, group: int) -> Sequence[DataFile]:
        """Return the files of a round, by path."""
        files = self._journal().read_round(step.version)
        return [DataFile(one.path, -1, one.size, "", one) for one in files]

    def count_rows(self, file: DataFile) -> int:
        """Return the number of rows by the footer of a file."""
        counts = self._known.counts
        if file.path not in counts:
            if len(counts) >= _MAX_KNOWN_COUNTS:
                counts.clear()
            try:
                with self._places().open(file.path, file.detail.version) as source:
                    counts[file.path] = int(open_parquet(source).metadata.num_rows)
            except TableUnavailableError:
                raise
            except (pa.ArrowException, OSError, ValueError, FileReplacedError):
                counts[file.path] = _UNREADABLE_ROWS
        return counts[file.path]

    def context_of(self, step: TableStep) -> Any:
        """Return nothing: each file has its own columns."""
        return None

    def metadata_of(self, piece: TablePiece) -> dict[str, Any]:
        """Return the path of the file, and when it was written."""
        one: NoticedFile = piece.file.detail
        modified = one.modified_at // SECOND
        return {
            "path": one.display_path,
            "mod_time_unix": modified,
            "mod_time": format_rfc3339(modified * SECOND),
        }

    def documents_of(self, rows: pa.RecordBatch) -> Iterator[dict[str, Any]]:
        """Give an object for each row; times are the numbers that they are stored as."""
        return row_documents(rows, as_stored=True)

    def read(self, piece: TablePiece, ex: Execution) -> Iterator[TableRows]:
        """Read rows of a file; one that is damaged is logged and left out.

        Raises:
            TableReadError: it is gone, or another one than that which was noticed.
        """
        noticed: NoticedFile = piece.file.detail
        try:
            version = "" if self._is_replaced(noticed, ex) else noticed.version
            with self._places().open(noticed.path, version) as source:
                constants = {}
                if self.settings.has_partitions:
                    constants = partition_values(noticed.path)
                schema = open_parquet(source).schema_arrow
                for name, value in constants.items():
                    if name not in schema.names:
                        schema = schema.append(pa.field(name, value.type))
                rows = (piece.first, piece.row_count)
                selection = self.settings.selection
                for batch in read_selected(source, rows, schema, constants, selection):
                    yield TableRows(batch)
        except FileNotFoundError:
            raise TableReadError(
                f"{noticed.path} is gone: somebody has deleted it before this stream has read it, "
                "or it is not on this machine. Restore it, or delete the stream's checkpoint to "
                "read the files that there are"
            ) from None
        except (pa.ArrowException, ValueError) as error:
            text = " ".join(str(error).split())
            ex.log("ERROR", f"Failed to read message: {text}", {"source": noticed.display_path})
            ex.count("input_error")

    def _is_replaced(self, noticed: NoticedFile, ex: Execution) -> bool:
        """Return whether a file is another one than that which was noticed, and is to be read."""
        try:
            self._places().check_same(noticed)
        except FileReplacedError as error:
            if not self.settings.restarts:
                raise TableReadError(
                    f"{noticed.path} was replaced since it was noticed: {error}. Restore the "
                    "former file, or set on_replaced: restart to read this one"
                ) from None
            text = "A file was replaced before it was read; the new one is read"
            ex.log("WARN", text, {"source": noticed.display_path})
            return True
        return False

    def check(self) -> str:
        """Check that the files can be read; return how many there are, in words."""
        return self._places().check()

    def ping(self) -> None:
        """Check that a store answers; see `TableWatch`."""
        self._places().ping()

    def find_partial_files(self) -> list[str]:
        """Return files that have no footer, though they were written a while ago."""
        return list(self._places().iter_partial(self._known.clock() - _WARN_AFTER_S))

    def find_missing(self) -> str:
        """Return a path that is no glob and names nothing; empty where there is none."""
        return self._places().find_missing()

    def _places(self) -> GrowingPlaces:
        if self._known.places is None:
            self._known.places = open_places(self.settings.paths, self.settings.permissions)
        return self._known.places

    def _journal(self) -> FileJournal:
        if self._known.journal is None:
            self._known.journal = FileJournal(Path(self.directory))
        return self._known.journal


@dataclass(frozen=True)
class GrowingFiles:
    """An input of files to which others come; see `OpenableInput`.

    Attributes:
        settings: the files.
        poll_interval: how often to look for new files, ns.
        batch_count: rows of a batch.
        read_once: whether the input ends with the files that there are at the first start.
    """

    settings: FileSettings
    poll_interval: int
    batch_count: int
    read_once: bool = False

    def open(self, context: InputContext) -> TableSource:
        """Return the source; its journal is in the directory of the input.

        Raises:
            StreamerError: it is read once, and a path that is no glob is not there.
        """
        reader = GrowingFilesReader(self.settings, str(context.directory))
        if self.read_once:
            return self._open_bounded(reader, context)
        context.start("report partial files", lambda: self._report_partial_files(reader, context))
        watch = TableWatch(reader.ping, self.poll_interval, context)
        context.start(f"watch {reader.describe()}", watch.run)
        return TableSource(reader, poll_interval=self.poll_interval, batch_count=self.batch_count)

    def _open_bounded(self, reader: GrowingFilesReader, context: InputContext) -> TableSource:
        until = context.load_state()
        if until is None:
            if missing := reader.find_missing():
                raise StreamerError(f"input parquet: there is no file {missing!r}")
            # The planner, which writes the journal otherwise, is not there yet.
            until = reader.newest_version()
        # What a start does not save is forgotten at the next one.
        context.save_state(until)
        return TableSource(reader, read_once=True, until=until, batch_count=self.batch_count)

    def _report_partial_files(self, reader: GrowingFilesReader, context: InputContext) -> None:
        reported: set[str] = set()
        while not context.wait(max(self.poll_interval / SECOND, _WARN_AFTER_S)):
            for path in reader.find_partial_files():
                if path not in reported:
                    reported.add(path)
                    text = "A file has no footer, and is not read before it has one"
                    context.log("WARN", text, {"path": path})

    def probe(self) -> str:
        """Check the files; see `SupportsProbe`."""
        reader = GrowingFilesReader(self.settings, "")
        return f"{reader.describe()} {reader.check()}"


class _Known:
    """Knowledge of one process about the files."""

    def __init__(self) -> None:
        self.journal: FileJournal | None = None
        self.places: GrowingPlaces | None = None
        self.counts: dict[str, int] = {}
        self.clock = time.time
