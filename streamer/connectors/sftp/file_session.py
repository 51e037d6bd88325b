"""Sessions of SFTP: files go to the disk together with the position behind what was read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final, NamedTuple

from streamer.connectors.sftp.connection import SftpConnection
from streamer.connectors.sftp.errors import SftpError, sftp_errors
from streamer.connectors.sftp.remote_files import RemoteFile, RemoteStream, list_files
from streamer.connectors.spool.blocks import Record
from streamer.connectors.spool.reconnecting_receiver import (
    ConnectionLostError,
    Session,
    start_sessions,
)
from streamer.connectors.spool.scan_bytes import records_of_chunk
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.core.durations import SECOND
from streamer.core.execution import Execution
from streamer.core.permissions import NotPermittedError
from streamer.core.timestamps import format_rfc3339
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.input.scanning import START_MARK, ScanError, ScanInput, ScanMark, Scanner
from streamer.sdk.spec import ParsedFields

PATHS: Final = "paths"
DELETE_ON_FINISH: Final = "delete_on_finish"
WATCHER: Final = "watcher"
ENABLED: Final = "enabled"
MINIMUM_AGE: Final = "minimum_age"
POLL_INTERVAL: Final = "poll_interval"

_MAX_BLOCK_MESSAGES: Final = 1_000
_MAX_BLOCK_BYTES: Final = 4 << 20
_SEEN: Final = "seen"
_AT: Final = "at"


class FileInput:
    """An input before it is opened."""

    def __init__(self, parsed: ParsedFields, scanner: Scanner, labels: dict[str, str]) -> None:
        """Take the fields, what cuts files, and the labels of log lines and counts."""
        self._parsed = parsed
        self._scanner = scanner
        self._labels = labels

    def open(self, context: InputContext) -> SpoolSource:
        """Begin to read; return the source of what the spool holds."""

        def session(one: Session) -> None:
            try:
                with closing(SftpConnection(self._parsed)) as connection:
                    one.set_connected()
                    _FileReader(self._parsed, self._scanner, one, self._labels, connection).run()
            except (SftpError, NotPermittedError) as error:
                raise ConnectionLostError(str(error)) from None

        return start_sessions(context, "sftp", self._labels, session)

    def probe(self) -> str:
        """Check that the server lets the user in, and count the files."""
        with closing(SftpConnection(self._parsed)) as connection, sftp_errors():
            lists = [list_files(connection.files, one) for one in self._parsed[PATHS]]
        return f"{len({one.path for files in lists for one in files})} files"


class _Progress(NamedTuple):
    """A file that was read in part, and the place behind what was read."""

    file: RemoteFile
    mark: ScanMark


class _FileReader:
    """Reads files until the stream stops, or to the end of the last one."""

    def __init__(
        self,
        parsed: ParsedFields,
        scanner: Scanner,
        session: Session,
        labels: Mapping[str, str],
        connection: SftpConnection,
    ) -> None:
        self._parsed = parsed
        self._scanner = scanner
        self._session = session
        self._labels = labels
        self._files = connection.files
        context = session.context
        self._ex = Execution(time.time_ns, context.log, context.count)
        watcher = parsed[WATCHER]
        self._is_watching: bool = watcher[ENABLED]
        self._interval_s = watcher[POLL_INTERVAL] / SECOND
        self._minimum_age_s = watcher[MINIMUM_AGE] / SECOND
        mark = session.store.mark or {}
        self._seen: dict[str, None] = dict.fromkeys(mark.get(_SEEN, ()))
        self._progress = _load_progress(mark.get(_AT))
        self._unreadable: set[str] = set()
        self._records: list[Record] = []
        self._bytes = 0
        self._finished: list[str] = []

    def run(self) -> None:
        """Read.

        Raises:
            SftpError: the connection is lost, or a directory may not be read.
        """
        context = self._session.context
        while not context.stopping:
            for file in self._list_new():
                if context.stopping or not self._read_file(file):
                    return
            if not self._flush() or not self._is_watching:
                return
            context.wait(self._interval_s)

    def _list_new(self) -> list[RemoteFile]:
        """Return the files to read, in the order of `paths`; forget those that have gone."""
        listed: dict[str, RemoteFile] = {}
        for pattern in self._parsed[PATHS]:
            with sftp_errors():
                listed.update((one.path, one) for one in list_files(self._files, pattern))
        for path in self._seen.keys() - listed.keys():
            del self._seen[path]
        if self._parsed[DELETE_ON_FINISH]:
            # A start before this one has not come to that.
            self._delete([path for path in self._seen if path in listed])
        newest_s = time.time() - self._minimum_age_s
        return [
            one
            for path, one in listed.items()
            if path not in self._seen and (not self._is_watching or one.modified_s <= newest_s)
        ]

    def _read_file(self, file: RemoteFile) -> bool:
        """Read a file to its end; return whether the stream goes on."""
        since = self._resume(file)
        try:
            with sftp_errors(file.path), self._files.open(file.path, "rb") as opened:
                for chunk, mark in self._scan(file, RemoteStream(opened, file.size), since):
                    self._add(chunk, _Progress(file, mark))
                    if not self._is_full:
                        continue
                    if not self._flush() or self._session.context.stopping:
                        return False
        except SftpError as error:
            if error.is_connection_lost:
                raise
            if file.path not in self._unreadable:
                self._unreadable.add(file.path)
                self._session.context.log("ERROR", f"Failed to read {error}", self._labels)
                self._session.context.count("input_error", 1, **self._labels)
            return True
        self._unreadable.discard(file.path)
        self._progress = None
        self._seen[file.path] = None
        self._finished.append(file.path)
        return True

    def _resume(self, file: RemoteFile) -> ScanMark:
        """Return from where on a file is read."""
        progress = self._progress
        if progress is None or progress.file.path != file.path:
            return START_MARK
        if progress.file == file:
            return progress.mark
        text = f"{file.path} has changed while it was read; it is read again from its beginning"
        self._session.context.log("WARN", text, self._labels)
        return START_MARK

    def _scan(
        self, file: RemoteFile, stream: RemoteStream, since: ScanMark
    ) -> Iterator[tuple[list[Record], ScanMark]]:
        metadata = {
            "sftp_path": file.path,
            "sftp_mod_time": format_rfc3339(file.modified_s * SECOND),
        }
        source = ScanInput(stream, file.path, metadata, self._ex)
        try:
            for cut in self._scanner.scan_stream(source, since, _MAX_BLOCK_MESSAGES):
                yield records_of_chunk(cut.chunk), cut.mark
        except ScanError as error:
            fields = {**self._labels, "source": file.path}
            self._session.context.log("ERROR", f"Failed to read message: {error}", fields)
            self._session.context.count("input_error", 1, **self._labels)

    def _add(self, records: list[Record], progress: _Progress) -> None:
        self._records += records
        self._bytes += sum(len(one.body) for one in records)
        self._progress = progress

    @property
    def _is_full(self) -> bool:
        count = sum(one.messages for one in self._records)
        return count >= _MAX_BLOCK_MESSAGES or self._bytes >= _MAX_BLOCK_BYTES

    def _flush(self) -> bool:
        """Write what was read, and how far; return whether it is safe."""
        if self._records or self._finished:
            mark: dict[str, Any] = {_SEEN: list(self._seen)}
            if self._progress is not None:
                mark[_AT] = _save_progress(self._progress)
            if not self._session.write(self._records, mark):
                return False
            self._records, self._bytes = [], 0
            if self._parsed[DELETE_ON_FINISH]:
                self._delete(self._finished)
            self._finished = []
        return True

    def _delete(self, paths: list[str]) -> None:
        for path in paths:
            try:
                with sftp_errors(path):
                    self._files.remove(path)
            except SftpError as error:
                if error.is_connection_lost:
                    raise
                if "No such file" not in str(error) and path not in self._unreadable:
                    self._unreadable.add(path)
                    self._session.context.log("ERROR", f"Failed to delete {error}", self._labels)


def _save_progress(progress: _Progress) -> list[Any]:
    return [list(progress.file), list(progress.mark)]


def _load_progress(saved: Any) -> _Progress | None:
    if saved is None:
        return None
    file, mark = saved
    return _Progress(RemoteFile(*file), ScanMark(*mark))
