"""Versions of lookup tables: loaded by the driver, kept in the checkpoint, named for micro-batches.

A micro-batch looks up one version of each table, and the same one when it comes again. So a version
is in the checkpoint before the first micro-batch that looks it up begins, and stays there until no
replay can need it; `versions.json` has from which micro-batch on which versions hold. What was
begun before the program stopped keeps what it had: Spark's log of offsets tells up to which.

    tables/versions.json        {"batches": [[from, {label: version}], …]}
          /cities/4f….table     the rows, see `sdk.lookup_table`
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from streamer.core.execution import Execution
from streamer.core.log_format import LogLine
from streamer.engine.planner.checkpoint_path import CheckpointPath, remove_file, replace_file
from streamer.sdk.lookup_table import TableError, TableLoader, TableVersion, read_version

RECORD_NAME: Final = "versions.json"
SUFFIX: Final = ".table"
_KEPT_ENTRIES: Final = 2
"""Entries of the record that stay: the one that holds, and the one before it."""

_SECOND_NS: Final = 1_000_000_000
Versions = Mapping[str, str]
"""The versions of tables by label."""


class TableMeters(NamedTuple):
    """Receivers of the figures of tables.

    Attributes:
        add_one: adds one to a counter of a table, by the counter's name and the table's label.
        set_gauge: sets a gauge of a table.
    """

    add_one: Callable[[str, str], None]
    set_gauge: Callable[[str, str, float], None]


@dataclass(slots=True)
class _Table:
    """One table.

    Attributes:
        loader: loads it.
        version: the newest version; empty before the first.
        sign: what told of a change when it was loaded.
        loaded_at: when it was last found to be as it is, by the clock that never runs backwards.
        due_at: when to look again.
    """

    loader: TableLoader
    version: str = ""
    sign: str | None = None
    loaded_at: float = 0.0
    due_at: float = 0.0


class TableVersions:
    """The versions of a stream's tables."""

    def __init__(
        self,
        directory: CheckpointPath,
        loaders: Mapping[str, TableLoader],
        log: LogLine,
        meters: TableMeters,
        *,
        now: Callable[[], float] = time.monotonic,
        on_removed: Callable[[CheckpointPath], None] = lambda path: None,
    ) -> None:
        """Take the tables; nothing is loaded yet.

        Args:
            directory: `tables` of the checkpoint.
            loaders: what loads each table, by label.
            log: takes log lines.
            meters: takes figures.
            now: a clock that never runs backwards, seconds.
            on_removed: hears of a version that is about to be deleted.
        """
        self._directory = directory
        self._tables = {label: _Table(loader) for label, loader in loaders.items()}
        self._log, self._meters, self._now, self._on_removed = log, meters, now, on_removed
        self._execution = Execution(time.time_ns, log)
        self._entries = _read_entries(directory)
        self._begun_until = -1
        self._unannounced: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def path_of(self, label: str, version: str) -> CheckpointPath:
        """Return the file that a version is in."""
        return self._directory / label / f"{version}{SUFFIX}"

    def open(self, begun_until: int) -> None:
        """Load all tables, and look for changes from now on.

        A table that cannot be loaded stays what it was when the stream stopped.

        Args:
            begun_until: the number of the newest micro-batch that was planned; -1 for none.

        Raises:
            TableError: a table cannot be loaded, and there is no version of it.
        """
        self._begun_until = max(self._begun_until, begun_until)
        for label, table in self._tables.items():
            known = self._entries[-1][1].get(label, "") if self._entries else ""
            if known and self._is_whole(label, known):
                table.version = known
            self._load(label, table, is_start=True)
        if any(table.loader.refresh_interval for table in self._tables.values()):
            threading.Thread(target=self._refresh_forever, name="tables", daemon=True).start()

    def close(self) -> None:
        """End the checks for changes."""
        self._stopping.set()

    def versions_for(self, batch: int) -> Versions:
        """Return what a micro-batch looks up: what it did before, or the newest versions.

        They are in the checkpoint when this returns.

        Args:
            batch: its number, which grows.

        Raises:
            OSError: that cannot be written.
            TableError: a version that it looked up before is gone or damaged.
        """
        with self._lock:
            current = {label: table.version for label, table in self._tables.items()}
            held = next((one for first, one in reversed(self._entries) if first <= batch), None)
            if batch <= self._begun_until and held is not None:
                # A table that the config has only now cannot have been looked up before.
                named = {label: held.get(label) or current[label] for label in current}
                self._check_whole(named, batch)
                return named
            self._begun_until = max(self._begun_until, batch)
            if held != current:
                self._entries = [*self._entries[1 - _KEPT_ENTRIES :], (batch, current)]
                record = {"batches": self._entries}
                replace_file(self._directory / RECORD_NAME, json.dumps(record).encode())
                self._remove_unused()
            return current

    def refresh_due(self) -> None:
        """Check the tables whose time it is for changes, and load those that have changed."""
        for label, table in self._tables.items():
            if table.loader.refresh_interval and self._now() >= table.due_at:
                self._load(label, table)

    def read_ages(self) -> dict[str, float]:
        """Return how long ago each table was last found to be as it is, seconds, by label."""
        now = self._now()
        return {label: now - table.loaded_at for label, table in self._tables.items()}

    def _refresh_forever(self) -> None:
        while True:
            due = [one.due_at for one in self._tables.values() if one.loader.refresh_interval]
            if self._stopping.wait(max(min(due) - self._now(), 0.05)):
                return
            self.refresh_due()

    def _load(self, label: str, table: _Table, is_start: bool = False) -> None:
        """Load a table if it may have changed; keep what there is when that fails."""
        table.due_at = self._now() + table.loader.refresh_interval / _SECOND_NS
        sign = table.loader.change_sign()
        if not is_start and sign is not None and sign == table.sign:
            table.loaded_at = self._now()
            return
        try:
            loaded = table.loader.load(self._execution)
            self._keep(label, table, loaded)
        except (TableError, OSError) as e:
            self._meters.add_one("table_refresh_failed", label)
            if not table.version:
                raise TableError(f"table {label!r} cannot be loaded: {e}") from None
            text = f"Table {label!r} cannot be loaded, and stays as it was: {e}"
            self._log("WARN", text, {"label": label})
            return
        # A file that has changed meanwhile has another sign, and is loaded again.
        table.sign, table.loaded_at = sign, self._now()

    def _keep(self, label: str, table: _Table, loaded: TableVersion) -> None:
        self._meters.set_gauge("table_rows", label, loaded.rows)
        if loaded.version == table.version:
            return
        path = self.path_of(label, loaded.version)
        if isinstance(path, Path):
            path.parent.mkdir(parents=True, exist_ok=True)
        # A micro-batch that begins while the file is written leaves the file where it is.
        with self._lock:
            self._unannounced.add((label, loaded.version))
        try:
            if not self._is_whole(label, loaded.version):
                replace_file(path, loaded.body)
            with self._lock:
                table.version = loaded.version
        finally:
            with self._lock:
                self._unannounced.discard((label, loaded.version))
                self._remove_unused()
        self._meters.add_one("table_refreshed", label)
        text = f"Table {label!r} has been loaded: {loaded.rows:,} rows"
        level = "WARN" if loaded.remark else "INFO"
        self._log(level, f"{text}; {loaded.remark}" if loaded.remark else text, {"label": label})

    def _is_whole(self, label: str, version: str) -> bool:
        try:
            read_version(self.path_of(label, version).read_bytes())
        except (FileNotFoundError, ValueError):
            return False
        return True

    def _check_whole(self, versions: Versions, batch: int) -> None:
        for label, version in versions.items():
            if not self._is_whole(label, version):
                raise TableError(
                    f"{self.path_of(label, version)} is gone or damaged: micro-batch {batch} had "
                    f"begun with this version of the table {label!r}; restore the checkpoint from "
                    f"a backup, or delete {self._directory / RECORD_NAME}, and the micro-batch "
                    "looks up the rows of now"
                )

    def _remove_unused(self) -> None:
        """Delete the versions that no micro-batch can look up any more."""
        used = {(label, version) for _, held in self._entries for label, version in held.items()}
        used |= {(label, table.version) for label, table in self._tables.items()}
        used |= self._unannounced
        for path, label in self._files():
            if (label, path.name.removesuffix(SUFFIX)) not in used:
                self._on_removed(path)
                try:
                    remove_file(path)
                except OSError as e:
                    self._log("WARN", f"A version of a table cannot be deleted: {e}", {})

    def _files(self) -> Iterator[tuple[CheckpointPath, str]]:
        for directory in self._directory.glob("*"):
            if directory.name != RECORD_NAME:
                for path in directory.glob(f"*{SUFFIX}"):
                    yield path, directory.name


def _read_entries(directory: CheckpointPath) -> list[tuple[int, Versions]]:
    try:
        record = json.loads((directory / RECORD_NAME).read_bytes())
        return [(int(first), dict(held)) for first, held in record["batches"]]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError) as e:
        raise TableError(
            f"{directory / RECORD_NAME} is not what was written ({e}): restore the checkpoint from "
            "a backup; without the file a micro-batch that comes again may look up newer rows"
        ) from None
