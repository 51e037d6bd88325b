"""The places of Parquet files to which others come: directories, or objects by URL."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, Protocol

import pyarrow as pa

from streamer.connectors.locations.pattern_store import PatternStore
from streamer.connectors.locations.patterns import is_glob
from streamer.connectors.locations.ranged_file import open_ranged
from streamer.connectors.objects.store import (
    ListedObject,
    ObjectMissingError,
    ObjectReplacedError,
    StoreError,
    StoreUnavailableError,
)
from streamer.connectors.tables.parquet_journal import NoticedFile
from streamer.connectors.tables.table_client import TableUnavailableError
from streamer.connectors.tables.table_reader import TableReadError
from streamer.core.locations import is_location
from streamer.core.permissions import Permissions
from streamer.sdk.input.scanning import silent_execution

SelectNew = Callable[[Sequence[str]], Sequence[str]]
"""Returns the paths that were not noticed before."""

_MAGIC: Final = b"PAR1"
_SUFFIX: Final = ".parquet"
_CHECK_THREADS: Final = 8
_COUNTED_OBJECTS: Final = 10_000
"""Objects that a check counts, at most."""


class FileReplacedError(Exception):
    """A file is another one than that which was noticed; the text says how."""


class GrowingPlaces(Protocol):
    """Files that match paths, and files that come.

    Each method raises TableUnavailableError where a store does not answer.
    """

    def iter_new(self, select: SelectNew) -> Iterator[Sequence[NoticedFile]]:
        """Give files that are new and whole, some at a time, in the order of their names."""

    def find_missing(self) -> str:
        """Return a path that is no glob and names nothing; empty where there is none."""

    def check_same(self, noticed: NoticedFile) -> None:
        """Check that a file is the one that was noticed.

        Raises:
            FileNotFoundError: it is gone.
            FileReplacedError: it is another one.
        """

    def open(self, path: str, version: str = "") -> Any:
        """Return a file that can be read anywhere.

        Args:
            path: as it was noticed.
            version: of an object; empty for the one that is there.
        """

    def check(self) -> str:
        """Check that files can be read; return how many there are, in words."""

    def ping(self) -> None:
        """Check that a store answers."""

    def iter_partial(self, before: float) -> Iterator[str]:
        """Give files that have no footer, though they were written before a time, Unix seconds."""


def open_places(paths: Sequence[str], permissions: Permissions) -> GrowingPlaces:
    """Return the places that paths name: all of them are of files, or all are URLs."""
    if any(map(is_location, paths)):
        return ObjectPlaces(paths, permissions)
    return DirectoryPlaces(paths, permissions)


def _is_visible(path: str) -> bool:
    """Return whether a name is that of a file: others write files under hidden names first."""
    return not path.rpartition("/")[2].startswith(("_", "."))


class DirectoryPlaces:
    """Files of the machine; see `GrowingPlaces`."""

    def __init__(self, paths: Sequence[str], permissions: Permissions) -> None:
        """Take directories, files and globs."""
        self._paths, self._permissions = paths, permissions

    def _list_files(self) -> dict[str, str]:
        """Return the files that paths match now, in order; by absolute path, as they are written.

        Of a directory, all files whose names end in `.parquet` are matched.
        """
        files: dict[str, str] = {}
        for path in map(self._permissions.file, self._paths):
            pattern = path
            if os.path.isdir(path):
                pattern = os.path.join(glob.escape(path), "**", f"*{_SUFFIX}")
            for match in sorted(glob.glob(pattern, recursive=True)):
                if _is_visible(match) and os.path.isfile(match):
                    files.setdefault(os.path.abspath(match), match)
        return files

    def iter_new(self, select: SelectNew) -> Iterator[Sequence[NoticedFile]]:
        """Give files that are new; see `GrowingPlaces`."""
        paths = self._list_files()
        noticed: list[NoticedFile] = []
        for path in select(list(paths)):
            try:
                stat = os.stat(path)
                # One that is not whole yet is looked at again.
                if _is_whole_file(path, stat.st_size):
                    one = NoticedFile(path, paths[path], stat.st_size, stat.st_mtime_ns)
                    noticed.append(one)
            except FileNotFoundError:
                continue
        yield noticed

    def find_missing(self) -> str:
        """Return a path that names nothing; see `GrowingPlaces`."""
        for path in map(self._permissions.file, self._paths):
            if not (glob.has_magic(path) or os.path.exists(path)):
                return path
        return ""

    def check_same(self, noticed: NoticedFile) -> None:
        """Check the size of a file; see `GrowingPlaces`."""
        size = os.stat(noticed.path).st_size
        if size != noticed.size:
            raise FileReplacedError(f"it has {size:,} bytes, and had {noticed.size:,}")

    def open(self, path: str, version: str = "") -> Any:
        """Return a file; see `GrowingPlaces`."""
        return pa.OSFile(self._permissions.file(path), "rb")

    def check(self) -> str:
        """Open each file; see `GrowingPlaces`."""
        files = self._list_files()
        for path in files:
            with open(self._permissions.file(path), "rb"):
                pass
        return f"are {len(files):,} now"

    def ping(self) -> None:
        """Do nothing: see `GrowingPlaces`."""

    def iter_partial(self, before: float) -> Iterator[str]:
        """Give files without a footer; see `GrowingPlaces`."""
        for path, shown in self._list_files().items():
            stat = os.stat(path)
            if stat.st_mtime < before and not _is_whole_file(path, stat.st_size):
                yield shown


def _is_whole_file(path: str, size: int) -> bool:
    """Return whether a file ends as Parquet does."""
    if size < 2 * len(_MAGIC):
        return False
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(handle, len(_MAGIC), size - len(_MAGIC)) == _MAGIC
    finally:
        os.close(handle)


class ObjectPlaces:
    """Objects that URLs name; see `GrowingPlaces`.

    A URL that is no glob is an object where it ends in `.parquet`, and else a directory.
    """

    def __init__(self, paths: Sequence[str], permissions: Permissions) -> None:
        """Take URLs and globs of URLs; nothing is requested yet."""
        self._paths = tuple(map(_as_pattern, paths))
        self._stores = [PatternStore([one], permissions) for one in self._paths]
        self._store = PatternStore(self._paths, permissions)

    def iter_new(self, select: SelectNew) -> Iterator[Sequence[NoticedFile]]:
        """Give a page of objects at a time; see `GrowingPlaces`."""
        with ThreadPoolExecutor(_CHECK_THREADS, "parquet footers") as pool:
            for page in self._iter_pages():
                listed = {one.key: one for one in page if _is_visible(one.key)}
                new = [listed[key] for key in select(list(listed))]
                whole = pool.map(self._is_whole, new)
                yield [
                    NoticedFile(one.key, one.key, one.size, one.modified, one.version)
                    for one, is_whole in zip(new, whole, strict=True)
                    if is_whole
                ]

    def _iter_pages(self) -> Iterator[Sequence[ListedObject]]:
        """Give all objects; one that several paths name may come several times."""
        for store in self._stores:
            after, is_last = "", False
            while not is_last:
                try:
                    with _store_errors():
                        page = store.list_page("", after)
                except FileNotFoundError:
                    break  # It is not there yet.
                if page.objects:
                    yield page.objects
                    after = page.objects[-1].key
                is_last = page.is_last

    def _is_whole(self, listed: ListedObject) -> bool:
        """Return whether an object ends as Parquet does: some stores show parts of one."""
        if listed.size < 2 * len(_MAGIC):
            return False
        start = listed.size - len(_MAGIC)
        try:
            with _store_errors():
                opened = self._store.open(listed.key, start, listed.size, listed.version)
                data = opened.stream.read(len(_MAGIC))
                opened.stream.close()
        except (FileNotFoundError, FileReplacedError):
            return False  # It is looked at again.
        return data == _MAGIC

    def find_missing(self) -> str:
        """Return a URL that names nothing; see `GrowingPlaces`."""
        for path in self._paths:
            if not is_glob(path):
                with _store_errors():
                    if self._store.head(path) is None:
                        return path
        return ""

    def check_same(self, noticed: NoticedFile) -> None:
        """Check the version of an object; see `GrowingPlaces`."""
        with _store_errors():
            listed = self._store.head(noticed.path)
        if listed is None:
            raise FileNotFoundError(noticed.path)
        if listed.version != noticed.version:
            raise FileReplacedError("it has another version in its store")

    def open(self, path: str, version: str = "") -> Any:
        """Return an object; see `GrowingPlaces`."""
        with _store_errors():
            return open_ranged(self._store, path, silent_execution(), version)

    def check(self) -> str:
        """List objects; see `GrowingPlaces`."""
        count = 0
        for page in self._iter_pages():
            count += sum(_is_visible(one.key) for one in page)
            if count >= _COUNTED_OBJECTS:
                return f"are {count:,} or more now"
        return f"are {count:,} now"

    def ping(self) -> None:
        """List a page of objects; see `GrowingPlaces`."""
        next(self._iter_pages(), None)

    def iter_partial(self, before: float) -> Iterator[str]:
        """Give none: each object would need a request of its own, again and again."""
        return iter(())


def _as_pattern(url: str) -> str:
    if is_glob(url) or url.endswith(_SUFFIX):
        return url
    return f"{url.rstrip('/')}/**/*{_SUFFIX}"


@contextmanager
def _store_errors() -> Iterator[None]:
    """Raise what a store's errors are for a reader of tables."""
    try:
        yield
    except ObjectMissingError as error:
        raise FileNotFoundError(str(error)) from None
    except ObjectReplacedError as error:
        raise FileReplacedError(str(error)) from None
    except StoreUnavailableError as error:
        raise TableUnavailableError(str(error)) from None
    except StoreError as error:
        raise TableReadError(str(error)) from None
