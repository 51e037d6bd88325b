"""Files of a server: which there are, and their bytes."""

from __future__ import annotations

import fnmatch
import posixpath
import re
import stat
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from streamer.connectors.sftp.errors import SftpError, sftp_errors

_WINDOW_BYTES: Final = 1 << 20
"""Bytes that are asked for at once, in requests that do not wait for each other."""
_PATTERN: Final = re.compile(r"[*?\[]")


class RemoteFile(NamedTuple):
    """A file of a server.

    Attributes:
        path: of the file.
        modified_s: when it was written last, s since 1970, by the clock of the server.
        size: bytes.
    """

    path: str
    modified_s: int
    size: int


def list_files(files: Any, pattern: str) -> list[RemoteFile]:
    """Return the files that a path or a pattern names, in order of their paths.

    Args:
        files: paramiko's client.
        pattern: a path; `*`, `?` and `[…]` stand for parts of a name.

    Raises:
        SftpError: the connection is lost, or a directory may not be read.
    """
    listed = [RemoteFile(path, *entry) for path, *entry in _match(files, pattern)]
    return sorted(listed)


def _match(files: Any, pattern: str) -> Iterator[tuple[str, int, int]]:
    directory, name = posixpath.split(pattern)
    if not _PATTERN.search(pattern):
        attributes = _stat(files, pattern)
        if attributes is not None and stat.S_ISREG(attributes.st_mode or 0):
            yield pattern, attributes.st_mtime or 0, attributes.st_size or 0
        return
    for parent in _match_directories(files, directory):
        for entry in _list(files, parent):
            path = posixpath.join(parent, entry.filename)
            if not fnmatch.fnmatchcase(entry.filename, name):
                continue
            if stat.S_ISLNK(entry.st_mode or 0):
                entry = _stat(files, path)
            if entry is not None and stat.S_ISREG(entry.st_mode or 0):
                yield path, entry.st_mtime or 0, entry.st_size or 0


def _match_directories(files: Any, pattern: str) -> Iterator[str]:
    """Return the directories that a pattern may name; some of them may be none."""
    if not _PATTERN.search(pattern):
        yield pattern
        return
    above, name = posixpath.split(pattern)
    for parent in _match_directories(files, above):
        for entry in _list(files, parent):
            is_directory = stat.S_ISDIR(entry.st_mode or 0) or stat.S_ISLNK(entry.st_mode or 0)
            if is_directory and fnmatch.fnmatchcase(entry.filename, name):
                yield posixpath.join(parent, entry.filename)


def _stat(files: Any, path: str) -> Any:
    """Return the attributes of a file; None where there is none."""
    try:
        return files.stat(path)
    except FileNotFoundError:
        return None


def _list(files: Any, directory: str) -> list[Any]:
    try:
        with sftp_errors(directory or "."):
            entries: list[Any] = files.listdir_attr(directory or ".")
    except SftpError as error:
        # A directory that is not there yet has no files.
        if error.is_path_refused and "No such file" in str(error):
            return []
        raise
    return entries


class RemoteStream:
    """The bytes of a file, as scanners read them; see `ByteStream`."""

    def __init__(self, file: Any, size: int) -> None:
        """Take paramiko's file, and the bytes of it that are read."""
        self._file = file
        self._size = size
        self._at = 0
        self._window = b""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes; none at the end."""
        if not self._window:
            count = min(_WINDOW_BYTES, self._size - self._at)
            if count <= 0:
                return b""
            self._window = b"".join(self._file.readv([(self._at, count)]))
            # A file that is shorter than it was ends here.
            self._size = self._size if self._window else self._at
        taken, self._window = self._window[:size], self._window[size:]
        self._at += len(taken)
        return taken

    def seekable(self) -> bool:
        """Return True: what is left out is not fetched."""
        return True

    def seek(self, size: int, whence: int) -> None:
        """Leave out bytes from here on."""
        assert whence == 1
        self._at += size
        self._window = self._window[size:]
