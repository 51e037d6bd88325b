"""Writes the rows of a Parquet output: new files for each micro-batch, and each once.

A file is written under a name that readers leave out, and renamed when it is whole and durable. Its
journal has the files of the micro-batch in hand before they are there, so that one that comes again
removes them first. Beside the journal are the columns, so that all files agree in their types.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from streamer.connectors.locations.location_files import LocationFiles
from streamer.connectors.tables.column_types import parse_column_type
from streamer.connectors.tables.parquet_output import ParquetOutput
from streamer.connectors.tables.row_collector import collect_rows
from streamer.connectors.tables.rows import describe_columns
from streamer.core.disk import sync_data, sync_directory
from streamer.core.errors import StreamerError
from streamer.core.json.checksums import add_checksum, has_valid_checksum
from streamer.core.locations import is_location, location_problem
from streamer.core.permissions import Permissions
from streamer.engine.driver.commit_counts import BYTES, COMMITS, FILES, RETRIES, ROWS
from streamer.engine.driver.file_routes import RefusedRoutesError, explain_unusable_directory
from streamer.engine.driver.journal import FileJournal
from streamer.engine.driver.success_files import (
    drop_existing_objects,
    list_success_files,
    make_success_files,
)
from streamer.engine.planner.checkpoint_path import replace_file
from streamer.engine.report.result_frame import Frame

_COLUMNS_SUFFIX: Final = ".columns"
"""Of the file beside a journal that has the columns."""


class ParquetWriter:
    """Writes the rows of micro-batches to files; see `Writer`."""

    def __init__(
        self,
        output: ParquetOutput,
        journal: Path,
        name: Callable[[], str],
        permissions: Permissions,
    ) -> None:
        """Take the output.

        Args:
            output: says how files are written.
            journal: the path of the journal.
            name: returns the name of the output of the stream, which begins the names of files.
            permissions: which files may be written.

        Raises:
            StreamerError: the journal or the columns are damaged.
        """
        self._output = output
        self._files = LocationFiles(permissions)
        self._journal = FileJournal(journal, self._remove)
        self._columns_file = journal.with_suffix(_COLUMNS_SUFFIX)
        self._columns = _read_columns(self._columns_file)
        self._name = name
        self._permissions = permissions
        self._counts: Counter[str] = Counter()

    def write(self, batch: int, frames: Sequence[Frame]) -> None:
        """Write a micro-batch; what it wrote before is removed first.

        Raises:
            OSError: files could not be written; none of them is there under its name.
            RefusedRoutesError: some rows fit nowhere; all others are written.
        """
        if not frames:
            if self._journal.batch == batch:
                self._journal.roll_back()
            return
        refused: list[tuple[Frame, str]] = []
        tables = list(self._collect(frames, refused))
        self._keep_columns([table.schema for _, table in tables])
        routes = (frame.route for frame in frames if not frame.body)
        directories = {directory for directory, _ in tables}
        marks = list_success_files(routes, directories, self._permissions)
        marks = drop_existing_objects(marks, self._files, self._journal.files_of(batch))
        names = {
            directory: list(self._name_files(directory, batch, table.num_rows))
            for directory, table in tables
        }
        files = [path for paths in names.values() for path in paths]
        drafts = [_draft_path(path) for path in files if not is_location(path)]
        self._journal.begin(batch, (), [*files, *drafts, *marks])
        try:
            for directory, table in tables:
                self._write_files(names[directory], table)
            make_success_files(marks, self._files)
        except OSError:
            self._counts[RETRIES] += 1
            self._journal.roll_back()
            raise
        self._count(files, sum(table.num_rows for _, table in tables))
        if refused:
            raise RefusedRoutesError(refused)

    def _remove(self, path: str) -> None:
        """Remove a file or an object that a micro-batch has written before."""
        if is_location(path):
            self._files.delete(path)
        else:
            Path(path).unlink(missing_ok=True)

    def _count(self, files: Sequence[str], rows: int) -> None:
        self._counts[COMMITS] += bool(files)
        self._counts[FILES] += len(files)
        self._counts[ROWS] += rows
        with suppress(FileNotFoundError):
            # Whoever reads them may delete them at once.
            self._counts[BYTES] += sum(
                os.stat(path).st_size for path in files if not is_location(path)
            )

    def take_counts(self, batch: int) -> Mapping[str, int]:
        """Return what the files of a micro-batch add to metrics; see `CountingWriter`."""
        counts, self._counts = self._counts, Counter()
        return counts

    def _collect(
        self, frames: Sequence[Frame], refused: list[tuple[Frame, str]]
    ) -> Iterator[tuple[str, pa.Table]]:
        """Give the rows of each directory."""
        by_directory: dict[str, list[Frame]] = {}
        for frame in frames:
            if frame.body:
                by_directory.setdefault(self._permissions.file(frame.route), []).append(frame)
        columns = self._output.columns_of(self._columns)
        for directory, some in by_directory.items():
            if problem := _explain_unusable(directory):
                refused += [(frame, problem) for frame in some]
                continue
            rows, _, misfits = collect_rows([frame.body for frame in some], columns)
            refused += [(some[one.source]._replace(body=one.body), one.reason) for one in misfits]
            if rows.num_rows:
                # The next directory has the columns of this one too.
                columns = self._output.columns_of(rows.schema)
                yield directory, rows

    def _name_files(self, directory: str, batch: int, rows: int) -> Iterator[str]:
        for part in range(-(-rows // self._output.max_file_rows)):
            yield os.path.join(directory, f"{self._name()}-{batch:010d}-{part:03d}.parquet")

    def _write_files(self, paths: Sequence[str], table: pa.Table) -> None:
        size = self._output.max_file_rows
        if is_location(paths[0]):
            self._put_objects(paths, table)
            return
        for number, path in enumerate(paths):
            draft = _draft_path(path)
            with open(draft, "wb") as file:
                pq.write_table(
                    table.slice(number * size, size), file, compression=self._output.compression
                )
                file.flush()
                sync_data(file.fileno())
            os.replace(draft, path)
        directory = os.open(os.path.dirname(paths[0]) or ".", os.O_RDONLY)
        try:
            sync_directory(directory)
        finally:
            os.close(directory)

    def _put_objects(self, paths: Sequence[str], table: pa.Table) -> None:
        size = self._output.max_file_rows
        for number, path in enumerate(paths):
            body = BytesIO()
            rows = table.slice(number * size, size)
            pq.write_table(rows, body, compression=self._output.compression)
            self._files.put(path, body.getvalue())
            self._counts[BYTES] += body.tell()

    def _keep_columns(self, schemas: Sequence[pa.Schema]) -> None:
        """Note the columns of a micro-batch, before a file has them."""
        columns = pa.unify_schemas([self._columns, *schemas])
        if columns != self._columns:
            document = add_checksum({"columns": describe_columns(columns)})
            replace_file(self._columns_file, json.dumps(document).encode())
            self._columns = columns


def _explain_unusable(directory: str) -> str:
    if not is_location(directory):
        return explain_unusable_directory(directory)
    problem = location_problem(directory)
    return f"cannot write to the directory: its URL {problem}" if problem else ""


def _draft_path(path: str) -> str:
    directory, name = os.path.split(path)
    return os.path.join(directory, f".{name}.tmp")


def _read_columns(path: Path) -> pa.Schema:
    try:
        document: Any = json.loads(path.read_bytes())
        if not has_valid_checksum(document):
            raise ValueError("its check sum is another one")
        return pa.schema(
            [(name, parse_column_type(text)) for name, text in document["columns"].items()]
        )
    except FileNotFoundError:
        return pa.schema([])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StreamerError(
            f"{path} has the types of the columns of Parquet files, and is damaged ({error}). "
            "Restore it from a backup; or delete it, and name the types in the field columns"
        ) from None
