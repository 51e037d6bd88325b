"""Listings of a bucket: which objects come next, with a page of them in memory.

Keys are listed in their order, so an input that lists once needs only the last key. One that
watches for new objects lists all again and again, since a new key may come before others; what was
read is in `read_objects`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from streamer.connectors.objects.object_offset import ObjectOffset
from streamer.connectors.objects.read_objects import FILE_NAME, ReadObjects
from streamer.connectors.objects.store import ListedObject, ObjectPage, ObjectStore

_MAX_LISTING_S: Final = 0.5
"""Seconds for which pages without anything new are listed in one go."""


class NextObjects(NamedTuple):
    """Objects that are to be read.

    Attributes:
        objects: in order.
        is_all: whether no other object follows these now.
        is_ended: whether none will.
    """

    objects: Sequence[ListedObject]
    is_all: bool
    is_ended: bool


class ObjectListing(Protocol):
    """Lists the objects behind a position."""

    def list_next(self, position: ObjectOffset, now: int) -> NextObjects:
        """Return objects behind a position.

        Args:
            position: all before it is in the log of micro-batches.
            now: the time, ns since 1970.

        Raises:
            StoreError: the store does not answer, or refuses.
        """

    def next_poll(self, now: int) -> int | None:
        """Return when there may be more, ns since 1970; None for never."""

    def read_until(self) -> int:
        """Return the time until which all objects are read, ns since 1970; 0 for unknown."""


class SingleListing:
    """Lists the objects once, in the order of their keys."""

    def __init__(self, store: ObjectStore, prefix: str) -> None:
        """Take the store, and how keys begin."""
        self._store = store
        self._prefix = prefix
        self._page: tuple[str, ObjectPage] | None = None

    def list_next(self, position: ObjectOffset, now: int) -> NextObjects:
        """Return the objects behind a position; see `ObjectListing`."""
        after = position.after
        if self._page is None or self._page[0] != after:
            self._page = after, self._cut_page(after)
        page = self._page[1]
        return NextObjects(page.objects, page.is_last, page.is_last and not page.objects)

    def _cut_page(self, after: str) -> ObjectPage:
        """Return what follows a key: of the page at hand, if it has that."""
        if self._page is not None:
            objects = self._page[1].objects
            keys = [one.key for one in objects]
            if after in keys and (after != keys[-1] or self._page[1].is_last):
                return ObjectPage(objects[keys.index(after) + 1 :], self._page[1].is_last)
        return self._store.list_page(self._prefix, after)

    def next_poll(self, now: int) -> int | None:
        """Return no time: a listing ends."""
        return None

    def read_until(self) -> int:
        """Return no time."""
        return 0


class WatchSettings(NamedTuple):
    """Settings of an input that watches for new objects.

    Attributes:
        poll_interval: ns between the end of a listing and the next one.
        minimum_age: ns since an object was modified before it is read.
    """

    poll_interval: int
    minimum_age: int


class WatchingListing:
    """Lists the objects again and again, and gives those that were not read."""

    def __init__(
        self,
        store: ObjectStore,
        prefix: str,
        settings: WatchSettings,
        directory: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the store and the settings.

        Args:
            store: has the objects.
            prefix: begins their keys.
            settings: of watching.
            directory: for the memory of what was read.
            clock: seconds, for how long to list in one go.
        """
        self._store = store
        self._prefix = prefix
        self._settings = settings
        self._path = directory / FILE_NAME
        self._clock = clock
        self._read: ReadObjects | None = None
        self._after = ""
        self._next_at = 0
        self._began_at = 0
        self._read_until = 0

    def list_next(self, position: ObjectOffset, now: int) -> NextObjects:
        """Return objects that were not read; see `ObjectListing`."""
        if self._read is None:
            self._read_until = position.read_until
            self._read = ReadObjects(self._path, position.read_until)
        self._read.add(one.object for one in position.objects)
        until = self._clock() + _MAX_LISTING_S
        while now >= self._next_at:
            if not self._after:
                self._begin(now)
            page = self._store.list_page(self._prefix, self._after)
            objects = self._choose_new(page, position, now)
            if objects:
                # The page is listed again until all of it is read.
                return NextObjects(objects, page.is_last, False)
            if page.is_last or not page.objects:
                self._end(now)
                break
            self._after = page.objects[-1].key
            if self._clock() >= until:
                break
        return NextObjects((), True, False)

    def _begin(self, now: int) -> None:
        assert self._read is not None
        self._read.begin_listing()
        self._began_at = now

    def _end(self, now: int) -> None:
        assert self._read is not None
        self._read.end_listing()
        self._after = ""
        self._next_at = now + self._settings.poll_interval
        self._read_until = max(self._began_at - self._settings.minimum_age, 0)

    def _choose_new(self, page: ObjectPage, position: ObjectOffset, now: int) -> list[ListedObject]:
        assert self._read is not None
        youngest = now - self._settings.minimum_age
        partly = position.partly_read
        new = []
        for one in page.objects:
            if self._read.is_read(one) or (partly is not None and one == partly.object):
                continue
            if one.modified > youngest:
                continue
            new.append(one)
        return new

    def next_poll(self, now: int) -> int | None:
        """Return when the next page is to be listed."""
        return max(self._next_at, now)

    def read_until(self) -> int:
        """Return the time until which all objects are read."""
        return self._read_until
