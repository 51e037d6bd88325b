"""The files of a directory of HDFS as a store of objects."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

from streamer.connectors.hdfs.client import HdfsClient, HdfsMissingError
from streamer.connectors.objects.store import (
    PAGE_OBJECTS,
    ListedObject,
    ObjectInfo,
    ObjectMissingError,
    ObjectPage,
    ObjectReplacedError,
    OpenObject,
    StoreError,
    StoreUnavailableError,
    delete_each,
)
from streamer.core.durations import MILLISECOND
from streamer.core.errors import StreamerError
from streamer.sdk.output.each_message import ReceiverLostError

_RANGE_BYTES: Final = 8 << 20
_SIGNED_ORDER: Final = bytes(byte ^ 0x80 for byte in range(256))


class HdfsStore:
    """The files of a directory, not those of directories in it; see `ObjectStore`.

    A NameNode lists in an order of its own (`order_name`), from the first name on. The listing that
    goes on is kept; in a new process, what was listed before is passed over once.
    """

    def __init__(self, directory: str, client: HdfsClient) -> None:
        """Take the directory, and the client."""
        self._directory = posixpath.join("/", directory)
        self._client = client
        self._listing: tuple[str, str, Iterator[Any]] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return (HdfsStore, (self._directory, self._client))

    @property
    def place(self) -> str:
        """The directory, for messages."""
        return f"{self._client.place}{self._directory}"

    def list_page(self, prefix: str, after: str, limit: int = PAGE_OBJECTS) -> ObjectPage:
        """Return files behind a name; see `ObjectStore`."""
        begun, self._listing = self._listing, None
        if begun is not None and begun[:2] == (prefix, after):
            files = begun[2]
        else:
            files = self._iter_files(prefix, after)
        with self._store_errors("list files"):
            objects = self._client.run(lambda _: [as_listed(one) for one in islice(files, limit)])
        is_last = len(objects) < limit
        if not is_last:
            self._listing = (prefix, objects[-1].key, files)
        return ObjectPage(objects, is_last)

    def _iter_files(self, prefix: str, after: str) -> Iterator[Any]:
        last = order_name(after)
        for one in self._client.run(lambda client: client.list_status(self._directory)):
            name = _name_of(one)
            if not one.isdir and name.startswith(prefix) and order_name(name) > last:
                yield one

    def open(
        self, key: str, start: int = 0, end: int | None = None, version: str = ""
    ) -> OpenObject:
        """Begin to read a file; see `ObjectStore`."""
        path = posixpath.join(self._directory, key)
        with self._store_errors(f"read {path!r}"):
            entry = self._client.run(lambda client: client.get_file_info(path))
            listed = as_listed(entry)
            if version and listed.version != version:
                raise ObjectReplacedError(f"{path!r} of {self.place} was replaced")
            file = self._client.run(lambda client: client.read(path))
        stop = listed.size if end is None else min(end, listed.size)
        metadata = {"hdfs_name": key, "hdfs_path": path}
        info = ObjectInfo(key, listed.size, listed.version, metadata, listed.modified)
        return OpenObject(info, _Body(self, file, path, start, stop))

    def read_range(self, file: Any, path: str, start: int, length: int) -> bytes:
        """Return bytes of an open file.

        Raises:
            StoreError: they cannot be read.
        """
        with self._store_errors(f"read {path!r}"):
            return bytes(self._client.run(lambda _: file.read_range(start, length)))

    def head(self, key: str) -> ListedObject | None:
        """Return a file as it is now; see `ObjectStore`."""
        path = posixpath.join(self._directory, key)
        try:
            with self._store_errors(f"look at {path!r}"):
                return as_listed(self._client.run(lambda client: client.get_file_info(path)))
        except ObjectMissingError:
            return None

    def delete(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Delete files; see `ObjectStore`."""
        return delete_each(keys, self._delete)

    def _delete(self, key: str) -> None:
        path = posixpath.join(self._directory, key)
        with self._store_errors(f"delete {path!r}"):
            self._client.run(lambda client: client.delete(path))

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        """Refuse: see `ObjectStore`."""
        raise StoreError("HDFS has no tags")

    @contextmanager
    def _store_errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except HdfsMissingError as error:
            raise ObjectMissingError(f"failed to {action}: {error}") from None
        except ReceiverLostError as error:
            raise StoreUnavailableError(f"failed to {action}: {error}") from None
        except StreamerError as error:
            raise StoreError(f"failed to {action}: {error}") from None

    def close(self) -> None:
        """Free the connections; see `ObjectStore`."""
        self._listing = None
        self._client.close()


class _Body:
    """The bytes of a file."""

    def __init__(self, store: HdfsStore, file: Any, path: str, start: int, end: int) -> None:
        self._store, self._file, self._path = store, file, path
        self._next, self._end = start, end

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes; see `ByteStream`."""
        length = min(size, self._end - self._next, _RANGE_BYTES)
        if length <= 0:
            return b""
        data = self._store.read_range(self._file, self._path, self._next, length)
        self._next += len(data)
        return data

    def close(self) -> None:
        """Read nothing any more."""
        self._end = self._next


def order_name(name: str) -> bytes:
    """Return what compares as a NameNode orders names: by their bytes in UTF-8, as signed ones.

    Source: a NameNode of Hadoop 3.5 lists "ä" before "a"; Java's bytes have a sign.
    """
    return name.encode().translate(_SIGNED_ORDER)


def _name_of(entry: Any) -> str:
    name: str = posixpath.basename(entry.path)
    return name


def as_listed(entry: Any) -> ListedObject:
    """Return a file; it has no version in HDFS but its time and its size."""
    version = f"{entry.modification_time}-{entry.length}"
    modified = int(entry.modification_time) * MILLISECOND
    return ListedObject(_name_of(entry), int(entry.length), version, modified)
