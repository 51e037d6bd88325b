"""Files on whatever Hadoop reads and writes (S3, HDFS, …), with Spark's own settings for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TypeVar

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from streamer.core.errors import StreamerError
from streamer.spark.compat import java_gateway, java_packages, java_spark

T = TypeVar("T")

_TIMEOUT_SETTINGS: Mapping[str, str] = {
    # By default an endpoint that does not answer is asked for a quarter of an hour.
    "fs.s3a.attempts.maximum": "2",
    "fs.s3a.retry.limit": "2",
    "fs.s3a.connection.establish.timeout": "5s",
    "fs.s3a.connection.timeout": "10s",
    # A file is looked at, for its length, and then read: of one that was replaced in between (a
    # lease is, every few seconds) it would be a part. This way that is noticed, and `read` begins
    # again; by default it is refused by the server, which does not say so.
    "fs.s3a.input.stream.type": "classic",
    "fs.s3a.change.detection.mode": "client",
    "fs.azure.io.retry.max.retries": "2",
    "fs.gs.http.connect-timeout": "5000",
    "fs.gs.http.read-timeout": "10000",
    "fs.gs.http.max.retry": "2",
    "ipc.client.connect.max.retries": "3",
    "ipc.client.connect.max.retries.on.timeouts": "1",
    "ipc.client.connect.timeout": "5000",
}
"""How the driver's own small files are read and written; Spark's have its settings."""

_FILE_CHANGED_CLASS: Final = "org.apache.hadoop.fs.s3a.RemoteFileChangedException"
_MAX_READ_ATTEMPTS: Final = 20
"""How often a file is read that is replaced while it is."""

_ATOMIC_UPLOAD_SCHEMES: Final = ("s3a://", "gs://")
"""Where a file is there when all of it was sent, and not before."""

_DELETING_RENAME_SCHEMES: Final = ("abfs://", "abfss://")
"""Where a rename deletes the file in its place first, and a new file is empty at first."""

_DRAFT_SUFFIX: Final = ".tmp"

_CONDITIONAL_CREATE_OPTION: Final = "fs.option.create.conditional.overwrite"
"""Create by `If-None-Match: *`: of two who create an object, one is refused."""


class FilesError(StreamerError, OSError):
    """A file system elsewhere refuses, or does not answer; the text says why."""


class HadoopFiles:
    """A Hadoop file system, by one connection of the driver's."""

    def __init__(self, session: SparkSession, url: str) -> None:
        """Connect.

        Args:
            session: whose settings (`spark.hadoop.…`) are used, and whose JVM does it.
            url: a place on it.

        Raises:
            FilesError: there is no such file system, or it refuses.
        """
        self._jvm = java_packages(session.sparkContext)
        self._gateway = java_gateway(session.sparkContext)
        hadoop = self._jvm.org.apache.hadoop
        conf = hadoop.conf.Configuration(java_spark(session.sparkContext).hadoopConfiguration())
        for name, value in _TIMEOUT_SETTINGS.items():
            conf.set(name, value)
        where = self._jvm.java.net.URI.create(url)
        self._files: Any = call_java(lambda: hadoop.fs.FileSystem.newInstance(where, conf))
        root = self.path(url)
        self._keeps_drafts = url.startswith(_DELETING_RENAME_SCHEMES)
        self._uploads_atomically = url.startswith(_ATOMIC_UPLOAD_SCHEMES)
        self._creates_conditionally = call_java(
            lambda: self._files.hasPathCapability(root, _CONDITIONAL_CREATE_OPTION)
        )

    def path(self, url: str) -> Any:
        """Return Hadoop's own path."""
        return self._jvm.org.apache.hadoop.fs.Path(url)

    def read(self, url: str) -> bytes:
        """Return what is in a file."""

        def read() -> bytes:
            stream = self._files.open(self.path(url))
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

        def read_whole() -> bytes:
            for _ in range(_MAX_READ_ATTEMPTS - 1):
                try:
                    return read()
                except Py4JJavaError as e:
                    if e.java_exception.getClass().getName() != _FILE_CHANGED_CLASS:
                        raise
            return read()

        if not self._keeps_drafts:
            return call_java(read_whole)
        return self._read_or_draft(url, read_whole)

    def _read_or_draft(self, url: str, read: Callable[[], bytes]) -> bytes:
        """Return what is in a file; of one that `put` has not finished, what was to be in it."""
        with suppress(FileNotFoundError):
            if body := call_java(read):
                return body
        with suppress(FileNotFoundError):
            stream = call_java(lambda: self._files.open(self.path(f"{url}{_DRAFT_SUFFIX}")))
            draft = call_java(lambda: bytes(stream.readAllBytes()))
            call_java(stream.close)
            if draft:
                return draft
        return call_java(read)

    def put(self, url: str, body: bytes) -> None:
        """Replace a file at once; on a file system without that it is renamed into its place.

        Where a rename deletes first, the draft stays until the file is whole, for `read`.
        """
        path = self.path(url)
        if self._uploads_atomically:
            call_java(lambda: self._write(self._files.create(path, True), body))
            return
        draft = self.path(f"{url}{_DRAFT_SUFFIX}")
        call_java(lambda: self._write(self._files.create(draft, True), body))
        if self._keeps_drafts:
            call_java(lambda: self._write(self._files.create(path, True), body))
            call_java(lambda: self._files.delete(draft, False))
            return
        call_java(lambda: self._rename(draft, path))

    def create(self, url: str, body: bytes) -> None:
        """Create a file.

        Raises:
            FileExistsError: it is there, perhaps by another program that was faster.
        """
        path = self.path(url)

        def create() -> None:
            if not self._creates_conditionally:
                return self._write(self._files.create(path, False), body)
            builder = (
                self._files.createFile(path).overwrite(True).must(_CONDITIONAL_CREATE_OPTION, True)
            )
            return self._write(builder.build(), body)

        call_java(create)

    def list_names(self, url: str) -> list[str]:
        """Return the names in a directory."""
        statuses = call_java(lambda: self._files.listStatus(self.path(url)))
        return [status.getPath().getName() for status in statuses]

    def exists(self, url: str) -> bool:
        """Return whether something is there."""
        return bool(call_java(lambda: self._files.exists(self.path(url))))

    def upload(self, directory: Path, url: str) -> None:
        """Copy a directory of this machine to where nothing is."""
        call_java(lambda: self._files.copyFromLocalFile(self._local(directory), self.path(url)))

    def download(self, url: str, directory: Path) -> None:
        """Copy a directory to where nothing is on this machine."""
        local = self._local(directory)
        # Without files of checksums beside the others.
        call_java(lambda: self._files.copyToLocalFile(False, self.path(url), local, True))

    def _local(self, path: Path) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._jvm.java.io.File(str(path)).toURI())

    def delete(self, url: str) -> None:
        """Delete a file, or a directory with all that is in it, if it is there."""
        call_java(lambda: self._files.delete(self.path(url), True))

    def _rename(self, draft: Any, path: Any) -> None:
        # A file system's own rename does not replace; that of a context does, at once.
        fs = self._jvm.org.apache.hadoop.fs
        context = fs.FileContext.getFileContext(path.toUri(), self._files.getConf())
        how = self._gateway.new_array(fs.Options.Rename, 1)
        how[0] = fs.Options.Rename.OVERWRITE
        context.rename(draft, path, how)

    @staticmethod
    def _write(stream: Any, body: bytes) -> None:
        try:
            stream.write(body)
        except BaseException:
            with suppress(Py4JError):
                stream.abort()
            raise
        stream.close()


@dataclass(frozen=True)
class HadoopPath:
    """A file or a directory there; a `RemoteLocation`."""

    files: HadoopFiles
    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.url.rpartition("/")[2]

    def __truediv__(self, name: str) -> HadoopPath:
        """Return what has this name in it."""
        return HadoopPath(self.files, f"{self.url}/{name}")

    def iterdir(self) -> Iterator[HadoopPath]:
        """Give what is in it."""
        for name in self.files.list_names(self.url):
            yield self / name

    def glob(self, pattern: str) -> Iterator[HadoopPath]:
        """Give what is in it, by a pattern of names; nothing where it is not there."""
        with suppress(FileNotFoundError):
            yield from (one for one in self.iterdir() if fnmatchcase(one.name, pattern))

    def put(self, body: bytes) -> None:
        """Replace the file at once: whoever reads it gets what was there, or this."""
        self.files.put(self.url, body)

    def receive(self, directory: Path) -> None:
        """Copy a directory of this machine here, where nothing is."""
        self.files.upload(directory, self.url)

    def fetch(self, directory: Path) -> None:
        """Copy the directory to one of this machine that is not there."""
        self.files.download(self.url, directory)

    def delete(self) -> None:
        """Delete the file or directory with all that is in it, if there is one."""
        self.files.delete(self.url)

    def exists(self) -> bool:
        """Return whether it is there."""
        return self.files.exists(self.url)

    def read_bytes(self) -> bytes:
        """Return what is in the file."""
        return self.files.read(self.url)

    def read_text(self, encoding: str | None = None) -> str:
        """Return what is in the file, as text; see `read_bytes`."""
        return self.read_bytes().decode(encoding or "utf-8")


def call_java(call: Callable[[], T]) -> T:
    """Call Java; what it raises comes as Python's own.

    Raises:
        FileNotFoundError: there is no such file.
        FileExistsError: there is one.
        FilesError: all else; the text says why in a line.
    """
    try:
        return call()
    except Py4JJavaError as e:
        raise _translate_error(e.java_exception) from None
    except Py4JError:
        raise FilesError("Spark's JVM has ended") from None


_NOT_FOUND_CLASSES: Final = ("java.io.FileNotFoundException",)
_EXISTS_CLASSES: Final = (
    "org.apache.hadoop.fs.FileAlreadyExistsException",
    # The condition of an object store: 409 or 412.
    "org.apache.hadoop.fs.s3a.RemoteFileChangedException",
)


def _translate_error(error: Any) -> OSError:
    kind, text = error.getClass().getName(), java_error_reason(error)
    if kind in _NOT_FOUND_CLASSES:
        return FileNotFoundError(text)
    if kind in _EXISTS_CLASSES:
        return FileExistsError(text)
    return FilesError(text)


_SDK_MESSAGE: Final = re.compile(r"software\.amazon\.\S+?: (.+?) \((?:Service|SDK Attempt)")
_STATUS_CODE: Final = re.compile(r"Status Code: (\d+)")


def java_error_reason(error: Any) -> str:
    """Return a line that says why: of an exception that says nothing, what has caused it."""
    message, depth = "", 0
    while error is not None and depth < 10:
        text = str(error.getMessage() or "").strip()
        message = text.splitlines()[0] if text else message or str(error.getClass().getSimpleName())
        if text:
            break
        error, depth = error.getCause(), depth + 1
    # Amazon's SDK says it twice, with numbers of requests.
    if (match := _SDK_MESSAGE.search(message)) is not None:
        status = _STATUS_CODE.search(message)
        return match[1].rstrip(".") + (f" (status {status[1]})" if status else "")
    return message
