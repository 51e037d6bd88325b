"""Writers of the outputs whose bytes return to the driver: files, and the standard output."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from streamer.core.disk import sync_data
from streamer.core.permissions import ALL, Permissions
from streamer.engine.driver.dynamic_output_writer import DynamicOutputWriter
from streamer.engine.driver.file_routes import RefusedRoutesError, draft_path, explain_unusable
from streamer.engine.driver.http_output_writer import HttpOutputWriter
from streamer.engine.driver.inproc_writer import InprocWriter
from streamer.engine.driver.journal import FileJournal
from streamer.engine.driver.success_files import (
    is_success_file,
    list_success_files,
    make_success_files,
)
from streamer.engine.report.result_frame import Frame
from streamer.plan import Plan
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import ParsedComponent

TABLE_OUTPUTS: Final = ("delta", "iceberg")
"""Outputs whose rows are committed to a table."""

_TABLE_NAME_LENGTH: Final = 16
"""Characters of the name of an output that has a table."""


class Writer(Protocol):
    """Writes the frames of one output."""

    def write(self, batch: int, frames: Sequence[Frame]) -> None:
        """Write a micro-batch, in order; when it returns, the bytes are safe.

        Raises:
            OSError: they could not be written; a second call writes the whole micro-batch again.
            RefusedRoutesError: some have no place where they could be; all others are written.
        """


class FileWriter:
    """Appends frames to the files that their routes name, exactly once."""

    def __init__(
        self,
        journal: Path,
        append: bool,
        permissions: Permissions = ALL,
        varies: bool = False,
        success_file: str = "",
    ) -> None:
        """Set up.

        Args:
            journal: the path of the journal.
            append: whether bytes are appended; without it each frame replaces its file.
            permissions: which files may be written.
            varies: whether routes depend on messages, which are to blame for one that is no file.
            success_file: the name of files that say that their directory is complete.
        """
        self._permissions = permissions
        self._journal = FileJournal(journal)
        self._append = append
        self._varies = varies
        self._success_file = success_file

    def write(self, batch: int, frames: Sequence[Frame]) -> None:
        """Write a micro-batch; on failure the files are as long as before."""
        if not frames:
            if self._journal.batch == batch:
                # What the micro-batch wrote beside its own messages it may not write again.
                self._journal.roll_back()
            return
        marks = [frame for frame in frames if is_success_file(frame, self._success_file)]
        if marks:
            frames = [frame for frame in frames if not is_success_file(frame, self._success_file)]
        refused: list[tuple[Frame, str]] = []
        if self._varies:
            problems = {
                route: explain_unusable(self._permissions.file(route), self._append)
                for route in {frame.route for frame in frames}
            }
            refused = [(frame, why) for frame in frames if (why := problems[frame.route])]
            frames = [frame for frame in frames if not problems[frame.route]]
        if frames:
            written = {posixpath.dirname(frame.route) for frame in frames}
            routes = (frame.route for frame in marks)
            self._write(batch, frames, list_success_files(routes, written, self._permissions))
        if refused:
            raise RefusedRoutesError(refused)

    def _write(self, batch: int, frames: Sequence[Frame], marks: Sequence[str]) -> None:
        if not self._append:
            for frame in frames:
                _replace(self._permissions.file(frame.route), frame.body)
            make_success_files(marks)
            return
        by_file: dict[str, list[bytes]] = {}
        for frame in frames:
            by_file.setdefault(self._permissions.file(frame.route), []).append(frame.body)
        self._journal.begin(batch, by_file, marks)
        try:
            for path, bodies in by_file.items():
                _append(path, bodies)
            make_success_files(marks)
        except OSError:
            self._journal.roll_back()
            raise


class Overlay(Protocol):
    """A status line at the bottom of a terminal, which makes space while text is printed."""

    def hide(self) -> AbstractContextManager[None]:
        """Take the line off the screen for as long as the block runs."""


class StreamWriter:
    """Writes frames to a stream such as the standard output; a replay repeats them.

    When `write` returns, all bytes are handed to the system, and no more: a pipe has no way to say
    that its reader has them. Spark commits the micro-batch after that, so a crash in between prints
    it a second time, and none is left out.
    """

    def __init__(self, stream: BinaryIO, overlay: Overlay | None = None) -> None:
        """Take the stream, and what shares its terminal."""
        self._stream = stream
        self._overlay = overlay

    def write(self, batch: int, frames: Sequence[Frame]) -> None:
        """Write a micro-batch and flush it."""
        if frames:
            with self._overlay.hide() if self._overlay is not None else nullcontext():
                self._stream.writelines(frame.body for frame in frames)
                self._stream.flush()


def make_writers(
    plan: Plan,
    directory: Path,
    stdout: BinaryIO,
    overlay: Overlay | None = None,
    stream: Callable[[], str] = str,
) -> list[Writer]:
    """Make the writers of what the driver writes, by number.

    Args:
        plan: the stream's plan.
        directory: where the journals of files are.
        stdout: the standard output.
        overlay: what shares its terminal.
        stream: returns the name of the checkpoint, which it has once a micro-batch is written.
    """
    writers: list[Writer] = []
    tables: dict[str, int] = {}
    names: dict[tuple[Path, str], str] = {}

    def local(output: ParsedComponent, journal: Path) -> Writer:
        if output.name == "file":
            return _make_file_writer(plan, output, journal, stream)
        if output.name in TABLE_OUTPUTS:
            # Imported here: its packages are an extra.
            from streamer.connectors.tables.routed_tables import RoutedTableOutput
            from streamer.engine.driver.routed_table_writer import RoutedTableWriter
            from streamer.engine.driver.table_writer import TableWriter

            table = plan.context().build(output).output
            # One that replaces another in a `dynamic` goes on with its name: the table knows it.
            place = (journal, table.describe())
            name = names[place] = names.get(place) or make_table_name(place[1], tables)
            if isinstance(table, RoutedTableOutput):
                return RoutedTableWriter(table, lambda: name_table_writer(stream(), name), journal)
            return TableWriter(table, lambda: name_table_writer(stream(), name))
        if output.name == "parquet":
            from streamer.engine.driver.parquet_writer import ParquetWriter

            return ParquetWriter(
                plan.context().build(output).output,
                journal,
                lambda: f"streamer-{stream()}-{output.path}",
                output.permissions,
            )
        return StreamWriter(stdout, overlay)

    for number, output in enumerate(plan.driver_outputs):
        # One that stands inside of another output is known by its place.
        name = output.path if number >= len(plan.outputs) else str(number)
        if output.name == "http_server":
            writers.append(HttpOutputWriter(output.config, output.file))
        elif output.name == "dynamic":
            writers.append(DynamicOutputWriter(plan, output, local, directory / f"dynamic-{name}"))
        elif output.name == "inproc":
            # A run that has finished takes its `files*.json` with it.
            writers.append(InprocWriter(output.config, directory / f"files-inproc-{name}.json"))
        else:
            writers.append(local(output, directory / f"files{f'-{name}' if number else ''}.json"))
    return writers


def _make_file_writer(
    plan: Plan, output: ParsedComponent, journal: Path, stream: Callable[[], str]
) -> Writer:
    file = plan.context().build(output).output
    if not file.is_location:
        return FileWriter(
            journal, file.append, output.permissions, file.is_dynamic, file.success_file
        )
    # Imported here: few outputs write objects.
    from streamer.engine.driver.location_writer import LocationWriter

    return LocationWriter(
        journal,
        file.append,
        output.permissions,
        lambda: f"streamer-{stream()}-{output.path}",
        file.success_file,
    )


def make_table_name(table: str, taken: dict[str, int]) -> str:
    """Return the name of an output by its table, wherever in the config the output stands.

    A deploy may move it, and what the table has of it must be known after that.

    Args:
        table: describes the table.
        taken: how many outputs of the stream have each table so far; it is counted there.
    """
    number = taken[table] = taken.get(table, 0) + 1
    name = sha256(table.encode()).hexdigest()[:_TABLE_NAME_LENGTH]
    return name if number == 1 else f"{name}-{number}"


def name_table_writer(stream: str, name: str) -> str:
    """Return the name by which a table knows an output of a stream.

    Args:
        stream: the identity of the checkpoint.
        name: of the output, as `make_table_name` makes it.
    """
    return f"streamer-{stream}-{name}"


def open_writers(writers: Sequence[Writer], context: InputContext) -> None:
    """Let those writers begin to listen that do, until the stream stops.

    Raises:
        StreamerError: one of them cannot.
    """
    for writer in writers:
        if isinstance(writer, HttpOutputWriter | DynamicOutputWriter | InprocWriter):
            writer.open(context)


def _append(path: str, bodies: list[bytes]) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab") as file:
        file.writelines(bodies)
        file.flush()
        sync_data(file.fileno())


def _replace(path: str, body: bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    draft = draft_path(path)
    with open(draft, "wb") as file:
        file.write(body)
        file.flush()
        sync_data(file.fileno())
    os.replace(draft, path)
