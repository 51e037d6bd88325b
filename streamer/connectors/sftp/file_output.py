"""Writing to files of a server."""

from __future__ import annotations

import posixpath
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from streamer.bloblang import compile_interpolation
from streamer.connectors.formats.codec import CODEC, WriterCodec, read_codec
from streamer.connectors.sftp.connection import SftpConnection, check_connection
from streamer.connectors.sftp.errors import SftpError, sftp_errors
from streamer.core.errors import MessageError, StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.mapping_query import interpolate
from streamer.sdk.output.protocols import NotConnectedError, Output, SendError
from streamer.sdk.output.rejection import Reason, Rejection, make_invalid_rejection
from streamer.sdk.spec import BuildContext, ParsedFields

PATH: Final = "path"

_PACKET_BYTES: Final = 1 << 15
"""Bytes of a request to write: appended at once, whoever else appends."""


class _Files:
    """The connection of a worker; threads take turns."""

    def __init__(self, parsed: ParsedFields) -> None:
        self._parsed = parsed
        self._connection: SftpConnection | None = None
        self._directories: set[str] = set()
        self.lock = threading.Lock()

    def connected(self) -> Any:
        """Return paramiko's client.

        Raises:
            SftpError: the server is not there, or refuses.
        """
        if self._connection is None:
            self._directories.clear()
            self._connection = SftpConnection(self._parsed)
        return self._connection.files

    def close(self) -> None:
        """Close the connection; the next use makes another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def write(self, path: str, blocks: Sequence[bytes], is_appended: bool) -> None:
        """Write to a file, which is made with its directories.

        Raises:
            SftpError: the connection is lost, or the server refuses.
        """
        files = self.connected()
        self._make_directory(files, posixpath.dirname(path))
        with sftp_errors(path), files.open(path, "ab" if is_appended else "wb", 0) as file:
            for block in blocks:
                file.write(block)

    def _make_directory(self, files: Any, path: str) -> None:
        if path in ("", "/") or path in self._directories:
            return
        with sftp_errors(path):
            try:
                files.stat(path)
            except FileNotFoundError:
                self._make_directory(files, posixpath.dirname(path))
                try:
                    files.mkdir(path)
                except OSError:
                    # Another task may have made it meanwhile.
                    files.stat(path)
        self._directories.add(path)


class SftpOutput(Output):
    """Writes messages to files of a server; see `SupportsProbe`."""

    def __init__(self, parsed: ParsedFields, context: BuildContext) -> None:
        """Compile the path; nothing is connected yet."""
        self.max_in_flight = 1
        self._parsed = parsed
        self._path = compile_interpolation(parsed[PATH])
        self._is_dynamic = "${!" in parsed[PATH]
        self._codec: WriterCodec = read_codec(parsed[CODEC])
        self._get_files: Callable[[], _Files] = lambda: context.worker_resource(
            "sftp", lambda: _Files(parsed)
        )

    def connect(self, ex: Execution) -> None:
        """Connect where nobody of the worker has."""
        files = self._get_files()
        with files.lock:
            try:
                files.connected()
            except StreamerError as error:
                raise SendError(str(error)) from None

    def send(self, batch: Batch, ex: Execution) -> None:
        """Write a batch; messages whose files are refused are named."""
        failed: dict[int, str] = {}
        paths: dict[int, str] = {}
        for index in range(len(batch)):
            try:
                paths[index] = self._path_of(batch, index, ex)
            except MessageError as error:
                failed[index] = make_invalid_rejection(str(error))
        files = self._get_files()
        with files.lock:
            for path, indices in self._runs(paths):
                try:
                    blocks = self._encode([batch[index].raw for index in indices])
                    files.write(path, blocks, self._codec.append)
                except SftpError as error:
                    if error.is_connection_lost:
                        files.close()
                        raise NotConnectedError(str(error)) from None
                    failed.update(dict.fromkeys(indices, self._failure_text(error)))
                except StreamerError as error:
                    raise SendError(str(error)) from None
        if failed:
            raise SendError(next(iter(failed.values())), failed)

    def _path_of(self, batch: Batch, index: int, ex: Execution) -> str:
        path = interpolate(PATH, self._path, batch, index, ex)
        if not posixpath.basename(path) or "\0" in path:
            raise MessageError(f"the path {path!r} names no file")
        return path

    def _runs(self, paths: dict[int, str]) -> Iterator[tuple[str, list[int]]]:
        """Return files, and the messages that are written to each in one go."""
        if not self._codec.append:
            yield from ((path, [index]) for index, path in paths.items())
            return
        for path, indices in groupby(paths, key=paths.__getitem__):
            yield path, list(indices)

    def _encode(self, raws: list[bytes]) -> list[bytes]:
        """Return blocks, of which none has a part of a message, but where one is too long."""
        blocks: list[bytes] = []
        current: list[bytes] = []
        size = 0
        for encoded in map(self._codec.encode_one, raws):
            if current and size + len(encoded) > _PACKET_BYTES:
                blocks.append(b"".join(current))
                current, size = [], 0
            current.append(encoded)
            size += len(encoded)
        return [*blocks, b"".join(current)]

    def _failure_text(self, error: SftpError) -> str:
        # A path that all messages share is not a message's fault.
        if error.is_path_refused and self._is_dynamic:
            return Rejection(str(error), Reason.REFUSED)
        return str(error)

    def probe(self) -> str:
        """Check that the server lets the user in."""
        return check_connection(self._parsed)
