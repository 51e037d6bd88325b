"""Writes the rows of a Parquet output: new files for each micro-batch, and each once.

A file is written under a name that readers leave out, and renamed when it is whole and durable. The
record beside the checkpoint has the files of the newest micro-batch before they are there, so that
one that comes again removes them first; and the columns, so that all files agree in their types.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from streamer.connectors.tables.column_types import parse_column_type
from streamer.connectors.tables.parquet_output import ParquetOutput
from streamer.connectors.tables.row_collector import collect_rows
from streamer.connectors.tables.rows import describe_columns
from streamer.core.disk import sync_data, sync_directory
from streamer.core.errors import StreamerError
from streamer.core.json.checksums import add_checksum, has_valid_checksum
from streamer.core.permissions import Permissions
from streamer.engine.driver.file_routes import RefusedRoutesError, explain_unusable_directory
from streamer.engine.report.result_frame import Frame

_DRAFT_SUFFIX: Final = ".tmp"


class ParquetWriter:
    """Writes the rows of micro-batches to files; see `Writer`."""

    def __init__(
        self,
        output: ParquetOutput,
        record: Path,
        name: Callable[[], str],
        permissions: Permissions,
    ) -> None:
        """Take the output.

        Args:
            output: says how files are written.
            record: the file in the checkpoint that has what must be known after a crash.
            name: returns the name of the output of the stream, which begins the names of files.
            permissions: which files may be written.

        Raises:
            StreamerError: the record is damaged.
        """
        self._output = output
        self._record = record
        self._name = name
        self._permissions = permissions
        self._batch, self._files, self._columns = _read_record(record)

    def write(self, batch: int, frames: Sequence[Frame]) -> None:
        """Write a micro-batch; what it wrote before is removed first.

        Raises:
            OSError: files could not be written; none of them is there under its name.
            RefusedRoutesError: some rows fit nowhere; all others are written.
        """
        if self._batch == batch:
            _remove(self._files)
        if not frames:
            return
        refused: list[tuple[Frame, str]] = []
        tables = list(self._collect(frames, refused))
        known = self._columns
        for _, table in tables:
            known = pa.unify_schemas([known, table.schema])
        marks = self._list_marks(frames, {directory for directory, _ in tables})
        names = {
            directory: list(self._name_files(directory, batch, table.num_rows))
            for directory, table in tables
        }
        files = [*(path for paths in names.values() for path in paths), *marks]
        self._write_record(batch, files, known)
        for directory, table in tables:
            self._write_files(names[directory], table)
        for mark in marks:
            os.close(os.open(mark, os.O_WRONLY | os.O_CREAT, 0o666))
            _sync_directory_of(mark)
        if refused:
            raise RefusedRoutesError(refused)

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
            if problem := explain_unusable_directory(directory):
                refused += [(frame, problem) for frame in some]
                continue
            rows, misfits = collect_rows([frame.body for frame in some], columns)
            refused += [(some[one.source]._replace(body=one.body), one.reason) for one in misfits]
            if rows is not None:
                # The next directory has the columns of this one too.
                columns = self._output.columns_of(rows.schema)
                yield directory, rows

    def _list_marks(self, frames: Sequence[Frame], directories: set[str]) -> list[str]:
        """Return the success files of directories that something is written to, each once."""
        routes = dict.fromkeys(frame.route for frame in frames if not frame.body)
        paths = [self._permissions.file(route) for route in routes]
        return [path for path in paths if posixpath.dirname(path) in directories]

    def _name_files(self, directory: str, batch: int, rows: int) -> Iterator[str]:
        for part in range(-(-rows // self._output.max_file_rows)):
            yield os.path.join(directory, f"{self._name()}-{batch:010d}-{part:03d}.parquet")

    def _write_files(self, paths: Sequence[str], table: pa.Table) -> None:
        size = self._output.max_file_rows
        for number, path in enumerate(paths):
            directory, name = os.path.split(path)
            draft = os.path.join(directory, f".{name}{_DRAFT_SUFFIX}")
            with open(draft, "wb") as file:
                pq.write_table(
                    table.slice(number * size, size), file, compression=self._output.compression
                )
                file.flush()
                sync_data(file.fileno())
            os.replace(draft, path)
        if paths:
            _sync_directory_of(paths[0])

    def _write_record(self, batch: int, files: Sequence[str], columns: pa.Schema) -> None:
        document = {"batch": batch, "files": files, "columns": describe_columns(columns)}
        draft = self._record.with_suffix(_DRAFT_SUFFIX)
        with draft.open("wb") as out:
            out.write(json.dumps(add_checksum(document)).encode())
            out.flush()
            sync_data(out.fileno())
        draft.replace(self._record)
        self._batch, self._files, self._columns = batch, list(files), columns


def _read_record(path: Path) -> tuple[int, list[str], pa.Schema]:
    try:
        document: Any = json.loads(path.read_bytes())
        if not has_valid_checksum(document):
            raise ValueError("its check sum is another one")
        columns = [(name, parse_column_type(text)) for name, text in document["columns"].items()]
        return int(document["batch"]), list(document["files"]), pa.schema(columns)
    except FileNotFoundError:
        return -1, [], pa.schema([])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StreamerError(
            f"{path} says which Parquet files the last micro-batch has written, and is damaged "
            f"({error}): its rows could come twice. Restore it from a backup; or remove the newest "
            "files of the output, and delete it"
        ) from None


def _remove(paths: Sequence[str]) -> None:
    for path in paths:
        Path(path).unlink(missing_ok=True)
        directory, name = os.path.split(path)
        Path(directory, f".{name}{_DRAFT_SUFFIX}").unlink(missing_ok=True)


def _sync_directory_of(path: str) -> None:
    directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        sync_directory(directory)
    finally:
        os.close(directory)
