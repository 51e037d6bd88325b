"""Many small files of results become few, sorted by key, without what has expired or is replaced.

Results lie by the time when their windows end, in buckets of `Rules.width`. Rows that come into a
bucket are sorted together with the newest of its files, as long as these are not much larger: so a
row is written anew a few times only, and a bucket has a few files. Files of a bucket follow one
another in the order of micro-batches, without overlap.

DuckDB sorts, in one thread, with bounded memory: what is more goes to the disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from streamer.engine.results.latest_revision_sql import files_sql, ranked_sql, rows_sql, time_sql
from streamer.engine.results.layout import Layout, Manifest, ResultFile, write_atomically
from streamer.engine.results.rows import FILE_SCHEMA, SORT_COLUMNS, build_table

MEMORY_LIMIT: Final = "256MB"
ROWS_PER_GROUP: Final = 20_480
"""How many rows are read at least to find one."""

_MAX_FILES_PER_ROUND: Final = 200
_ENDS_KEY: Final = b"streamer.ends"


def write_batch_file(
    path: Path, portions: Iterable[bytes], epoch: int, now: int
) -> tuple[int, int]:
    """Write the file of a micro-batch; return the first and the last end of its windows, ns.

    Args:
        path: of the file.
        portions: what `rows.packed` made of its results.
        epoch: stands for the micro-batch.
        now: its time, ns.

    Raises:
        OSError: it cannot be written.
    """
    table = build_table(portions, epoch, now)
    ends = table.column("window_end").cast("int64").to_numpy()
    first, last = int(ends.min()), int(ends.max())
    table = table.replace_schema_metadata({_ENDS_KEY: f"{first} {last}"})

    def fill(draft: Path) -> None:
        pq.write_table(table, draft, compression="zstd", row_group_size=ROWS_PER_GROUP)

    write_atomically(path, fill)
    return first, last


def read_window_ends(path: Path) -> tuple[int, int]:
    """Return the same of a file that is there.

    Raises:
        OSError: it cannot be read.
    """
    try:
        first, last = pq.read_metadata(path).metadata[_ENDS_KEY].split()
        return int(first), int(last)
    except (ValueError, KeyError, TypeError) as e:
        raise OSError(f"{path} is not a file of results: {e}") from None


class Compaction:
    """One round; all files that it makes are complete and on the disk when it is done."""

    def __init__(self, layout: Layout, manifest: Manifest, cutoff: int) -> None:
        """Prepare.

        Args:
            layout: where the files are.
            manifest: what counts.
            cutoff: windows that end at or before this have expired, ns.
        """
        import duckdb

        self._layout = layout
        self._manifest = manifest
        self._cutoff = cutoff
        self._number = manifest.number
        self._stopped = False
        self._database = duckdb.connect(
            ":memory:",
            config={
                "threads": 1,
                "memory_limit": MEMORY_LIMIT,
                "temp_directory": str(layout.spill),
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            },
        )

    def stop(self) -> None:
        """Give up, from another thread."""
        self._stopped = True
        self._database.interrupt()

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def run(self, waiting: Sequence[int]) -> tuple[list[ResultFile], int]:
        """Sort micro-batches into the files that there are.

        Args:
            waiting: the micro-batches, in order; none to delete what has expired.

        Returns:
            The files that count from now on, and the number of the newest.

        Raises:
            OSError, duckdb.Error: it cannot be done.
        """
        files = [file for file in self._manifest.files if file.last > self._cutoff]
        for start in range(0, len(waiting), _MAX_FILES_PER_ROUND):
            some = waiting[start : start + _MAX_FILES_PER_ROUND]
            paths = [self._layout.path(epoch) for epoch in some]
            for begins, count in self._buckets(paths):
                files = self._merge_bucket(files, paths, begins, count, (some[0], some[-1]))
        return files, self._number

    def _buckets(self, paths: Sequence[Path]) -> list[tuple[int, int]]:
        """Return where the buckets begin that files have rows for, and how many."""
        width = self._manifest.rules.width
        rows = rows_sql(paths, [self._unexpired_sql])
        begins = f"e - ((e % {width}) + {width}) % {width}"
        return self._query_rows(
            f"SELECT {begins} AS begins, count(*) "
            f"FROM (SELECT epoch_ns(window_end) AS e FROM ({rows})) GROUP BY 1 ORDER BY 1"
        )

    def _query_rows(self, sql: str) -> list[Any]:
        if self._stopped:
            raise InterruptedError("the stream stops")
        return self._database.execute(sql).fetchall()

    @property
    def _unexpired_sql(self) -> str:
        return f"window_end > {time_sql(self._cutoff)}"

    def _merge_bucket(
        self,
        files: list[ResultFile],
        paths: Sequence[Path],
        begins: int,
        count: int,
        epochs: tuple[int, int],
    ) -> list[ResultFile]:
        """Return files with the rows of one bucket that other files have."""
        width = self._manifest.rules.width
        there = [file for file in files if (file.begins, file.width) == (begins, width)]
        taken: list[ResultFile] = []
        while there and there[-1].rows <= 2 * count:
            taken.append(there.pop())
            count += taken[-1].rows
        sources = [*(self._layout.files / file.name for file in reversed(taken)), *paths]
        made = self._write_sorted_file(sources, begins)
        kept = [file for file in files if file not in taken]
        return [*kept, self._describe_file(made, begins, taken, epochs)]

    def _write_sorted_file(self, sources: Sequence[Path], begins: int) -> Path:
        rules = self._manifest.rules
        bounds = [
            self._unexpired_sql,
            f"window_end >= {time_sql(begins)}",
            f"window_end < {time_sql(begins + rules.width)}",
        ]
        ranked = ranked_sql(rows_sql(sources, bounds), rules)
        columns = ", ".join(
            "CAST(CASE WHEN emit = 'forward' THEN earlier ELSE total - 1 END AS INTEGER) AS earlier"
            if name == "earlier"
            else name
            for name in FILE_SCHEMA.names
        )
        order = ", ".join(f"{name} NULLS LAST" for name in SORT_COLUMNS)
        self._number += 1
        path = self._layout.files / f"{self._number:012d}.parquet"

        def fill(draft: Path) -> None:
            target = str(draft).replace("'", "''")
            self._query_rows(
                f"COPY (SELECT {columns} FROM ({ranked}) WHERE latest ORDER BY {order}) "
                f"TO '{target}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROWS_PER_GROUP})"
            )

        write_atomically(path, fill)
        return path

    def _describe_file(
        self, path: Path, begins: int, taken: Sequence[ResultFile], epochs: tuple[int, int]
    ) -> ResultFile:
        rows, first, last = self._query_rows(
            "SELECT count(*), epoch_ns(min(window_end)), epoch_ns(max(window_end)) "
            f"FROM read_parquet({files_sql([path])})"
        )[0]
        oldest = min([epochs[0], *(file.oldest for file in taken)])
        width = self._manifest.rules.width
        return ResultFile(path.name, first, last, begins, width, rows, oldest, epochs[1])
