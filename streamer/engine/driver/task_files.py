"""Data files that the tasks of a micro-batch have written, on their way into a commit.

A file that does not fit the table any more is read back, and its rows go the way of all others.
Files that come into no commit are deleted. Those that an attempt of a commit has named are not:
its answer may be lost, and the table may have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamer.connectors.tables.arrow_streams import encode_table
from streamer.connectors.tables.table_client import TableClient
from streamer.connectors.tables.written_files import WrittenFile, decode_files, names_files


class TaskFiles:
    """The files of the tasks of one output."""

    def __init__(self, client: TableClient) -> None:
        """Take the table."""
        self._client = client
        self._attempted: set[str] = set()
        self._dropped: dict[str, WrittenFile] = {}

    def take(self, bodies: Sequence[bytes]) -> tuple[list[bytes], list[WrittenFile]]:
        """Return the rows of tasks, and the files that fit the table as it is now.

        Args:
            bodies: of frames: rows, or the names of files.

        Returns:
            As many bodies, of rows alone; and the files.

        Raises:
            TableUnavailableError: the table, or a file, cannot be read now.
        """
        if not any(map(names_files, bodies)):
            return list(bodies), []
        writer = self._client.open_file_writer()
        layout = "" if writer is None else writer.layout
        fitting: list[WrittenFile] = []
        rows: list[bytes] = []
        for body in bodies:
            if not names_files(body):
                rows.append(body)
                continue
            files = decode_files(body)
            old = [one for one in files if one.layout != layout]
            fitting += [one for one in files if one.layout == layout]
            # One body for each frame, in its place: a row that is refused names its frame.
            rows.append(b"".join(encode_table(self._client.read_file(one)) for one in old))
            self.drop(old)
        return rows, fitting

    def note_attempt(self, files: Iterable[WrittenFile]) -> None:
        """Note files that a commit names, before it is tried."""
        self._attempted = {one.path for one in files}
        for path in self._attempted:
            self._dropped.pop(path, None)

    def drop(self, files: Iterable[WrittenFile]) -> None:
        """Note files that come into no commit."""
        self._dropped |= {one.path: one for one in files if one.path not in self._attempted}

    def delete_dropped(self) -> None:
        """Delete the files that were dropped: the rows of all are in the table."""
        dropped, self._dropped = self._dropped, {}
        if dropped:
            self._client.delete_files(list(dropped.values()))
