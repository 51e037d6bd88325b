"""Writes the rows of an output whose messages name their table: a commit to each, and each once.

Tables have no transaction in common. So each has the number of the micro-batch that it has; when
a micro-batch comes again, only those get its rows that have not. Before the first commit, a file
beside the checkpoint names the tables, for what asks later which of them are ahead.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from streamer.connectors.tables.routed_tables import (
    OpenTables,
    RoutedTableOutput,
    join_route,
    split_route,
)
from streamer.connectors.tables.table_client import ImpossibleTableError, TableUnavailableError
from streamer.core.json.checksums import add_checksum, has_valid_checksum
from streamer.engine.driver.file_routes import RefusedRoutesError
from streamer.engine.driver.table_commits import TableCommits
from streamer.engine.driver.table_writer import TableWriter
from streamer.engine.planner.checkpoint_path import replace_file
from streamer.engine.report.result_frame import Frame

_SUFFIX: Final = ".tables"
"""Of the file beside a journal that names the tables of the newest micro-batch."""


class RoutedTableWriter:
    """Commits the rows of micro-batches to the tables that they name; see `Writer`."""

    def __init__(self, output: RoutedTableOutput, writer: Callable[[], str], journal: Path) -> None:
        """Take the output.

        Args:
            output: knows the tables.
            writer: returns the name of the output of the stream; see `TableWriter`.
            journal: the path of a file beside the checkpoint, whose name is changed.
        """
        self._output = output
        self._writer = writer
        self._file = journal.with_suffix(_SUFFIX)
        self._tables: OpenTables[TableWriter] = OpenTables()
        self._counts: Counter[str] = Counter()
        self._latest: TableCommits | None = None

    def write(self, batch: int, frames: Sequence[Frame]) -> None:
        """Commit a micro-batch to each of its tables that has it not.

        Raises:
            TableUnavailableError: some tables take nothing now; the others have their rows.
            RefusedRoutesError: some rows do not fit; all others are committed.
            StreamerError: the checkpoint is older than a table.
        """
        by_place: dict[str, list[Frame]] = {}
        for frame in frames:
            within, place = split_route(frame.route)
            by_place.setdefault(place, []).append(frame._replace(route=within))
        if not by_place:
            return
        self._note(batch, list(by_place))
        refused: list[tuple[Frame, str]] = []
        failure: TableUnavailableError | None = None
        for place, some in by_place.items():
            table = self._open(place)
            try:
                table.write(batch, some)
            except RefusedRoutesError as error:
                refused += (
                    (frame._replace(route=join_route(frame.route, place)), why)
                    for frame, why in error.refused
                )
            except ImpossibleTableError as error:
                # Messages have named it, and another try finds the same.
                refused += (
                    (frame._replace(route=join_route(frame.route, place)), str(error))
                    for frame in some
                )
                continue
            except TableUnavailableError as error:
                failure = failure or error
                continue
            # It may be closed before the counts of the micro-batch are taken.
            self._counts.update(table.take_counts(batch))
            self._latest = table.commits() or self._latest
        if failure is not None:
            raise failure
        if refused:
            raise RefusedRoutesError(refused)

    def _open(self, place: str) -> TableWriter:
        return self._tables.get(place, lambda: TableWriter(self._output.table(place), self._writer))

    def take_counts(self, batch: int) -> Mapping[str, int]:
        """Return what the commits of a micro-batch add to metrics; see `CountingWriter`."""
        counts, self._counts = self._counts, Counter()
        return counts

    def commits(self) -> TableCommits | None:
        """Return the newest commits of the table that was written last; None before the first."""
        return self._latest

    def find_ahead(self, batch: int) -> str:
        """Return which table has a micro-batch already; see `TableWriter.find_ahead`."""
        noted, places = self._read_note()
        if noted != batch:
            return ""
        return next((one for place in places if (one := self._open(place).find_ahead(batch))), "")

    def _note(self, batch: int, places: list[str]) -> None:
        """Make the tables of a micro-batch known before any of them has it.

        Of a micro-batch that comes again, tables that it had before stay named.
        """
        noted, before = self._read_note()
        if noted == batch:
            places = list(dict.fromkeys([*before, *places]))
            if places == before:
                return
        record = add_checksum({"batch": batch, "tables": places})
        replace_file(self._file, json.dumps(record).encode())

    def _read_note(self) -> tuple[int, list[str]]:
        try:
            record = json.loads(self._file.read_bytes())
        except (FileNotFoundError, ValueError):
            return -1, []
        if not has_valid_checksum(record):
            return -1, []
        return record["batch"], record["tables"]
