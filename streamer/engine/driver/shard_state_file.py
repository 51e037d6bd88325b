"""The state of a shard in a file: what a stream begins with, once its state was cut anew.

A file is an SQLite database with a value by (pane, seq), as `streamer.window.Store` has it: a state
may be larger than the memory, and a file that was not written to its end says so when it is read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from streamer.core.disk import sync_data
from streamer.core.errors import StreamerError
from streamer.window import StateStore
from streamer.window.state.layout import HEAD_KEY

_COUNT_FILE = "shards"
_TABLE = "CREATE TABLE state (pane INTEGER, seq INTEGER, body BLOB, PRIMARY KEY (pane, seq))"


def shard_state_path(directory: Path, shard: int) -> Path:
    """Return where the state of a shard is."""
    return directory / f"{shard}.state"


def write_shard_count(directory: Path, shards: int) -> None:
    """Write how many shards have a file: those that are missing are no shards that were added.

    Raises:
        OSError: the note cannot be written.
    """
    with open(directory / _COUNT_FILE, "x") as file:
        file.write(str(shards))
        file.flush()
        sync_data(file.fileno())


class ShardStateFile:
    """A file that is written, or read; see `streamer.window.Store`."""

    def __init__(self, path: Path, new: bool = False) -> None:
        """Open the file.

        Args:
            path: the file.
            new: it is not there yet, and is to be written; else it is only read.

        Raises:
            StreamerError: it cannot be opened.
        """
        self._path = path
        mode = "rwc" if new else "ro"
        try:
            self._connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True)
            if new:
                # Whoever is interrupted begins anew: nothing is mended, and `close` syncs.
                self._connection.execute("PRAGMA journal_mode = OFF")
                self._connection.execute("PRAGMA synchronous = FULL")
                self._connection.execute(_TABLE)
        except sqlite3.Error as e:
            raise self._make_error(e) from None

    def get(self, pane: int, seq: int) -> bytes | None:
        """Return the value, or None."""
        query = "SELECT body FROM state WHERE pane = ? AND seq = ?"
        try:
            row = self._connection.execute(query, (pane, seq)).fetchone()
        except sqlite3.Error as e:
            raise self._make_error(e) from None
        return None if row is None else bytes(row[0])

    def put(self, pane: int, seq: int, value: bytes) -> None:
        """Store a value, replacing what was there."""
        command = "INSERT OR REPLACE INTO state VALUES (?, ?, ?)"
        try:
            self._connection.execute(command, (pane, seq, value))
        except sqlite3.Error as e:
            raise self._make_error(e) from None

    def delete(self, pane: int, seq: int) -> None:
        """Remove a value; it is there."""
        try:
            self._connection.execute("DELETE FROM state WHERE pane = ? AND seq = ?", (pane, seq))
        except sqlite3.Error as e:
            raise self._make_error(e) from None

    def all(self) -> Iterator[tuple[int, int, bytes]]:
        """Give all values, each with its pane and its seq."""
        try:
            yield from self._connection.execute("SELECT pane, seq, body FROM state")
        except sqlite3.Error as e:
            raise self._make_error(e) from None

    def close(self) -> None:
        """Write what was put, so that it is on the disk, and close the file."""
        try:
            self._connection.commit()
            self._connection.close()
        except sqlite3.Error as e:
            raise self._make_error(e) from None

    def __enter__(self) -> ShardStateFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _make_error(self, error: sqlite3.Error) -> StreamerError:
        return StreamerError(
            f"the state of a shard in {self._path} cannot be read or written: {error}; restore the "
            "checkpoint from a copy, or free the disk"
        )


def load_initial_state(store: StateStore, path: Path) -> None:
    """Let a store begin with what is in a file, if nothing was ever put into it.

    A micro-batch that is tried again finds the store as it was, and does so again. A shard of a
    buffer that was added since the state was cut has no file, and begins with nothing.

    Raises:
        StreamerError: the file is needed, and cannot be read.
    """
    # All kinds of shards have their head there, from the first micro-batch on.
    if store.get(*HEAD_KEY) is None and not _is_new_shard(path):
        with ShardStateFile(path) as state:
            for pane, seq, value in state.all():
                store.put(pane, seq, value)


def _is_new_shard(path: Path) -> bool:
    """Return whether a shard is one of those that there were not when the state was cut."""
    if path.exists():
        return False
    try:
        return int(path.stem) >= int((path.parent / _COUNT_FILE).read_text())
    except (OSError, ValueError):
        return False
