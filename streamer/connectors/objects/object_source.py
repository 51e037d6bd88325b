"""The objects of a bucket as one replayable source.

The process that plans micro-batches lists the objects, and workers read them: many small objects
at once, a large one by several tasks where its messages can be cut anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from streamer.connectors.objects.batch_plan import BatchPlanner
from streamer.connectors.objects.listings import (
    ObjectListing,
    SingleListing,
    WatchingListing,
    WatchSettings,
)
from streamer.connectors.objects.object_offset import BatchObject, ObjectOffset, PartlyRead
from streamer.connectors.objects.object_pieces import ObjectPiece, split_objects
from streamer.connectors.objects.object_reader import ObjectReader
from streamer.connectors.objects.store import ListedObject, ObjectStore, StoreError
from streamer.core.execution import Execution
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.input.replayable import Chunk, LatestOffset, Limit, Offset
from streamer.sdk.input.scanning import Scanner

_THREADS: Final = 16
"""Requests at once for objects that are done with."""


class ObjectSource:
    """Objects as a source; see `ReplayableSource`. It is its own input, too."""

    def __init__(
        self,
        store: ObjectStore,
        scanner: Scanner,
        *,
        prefix: str = "",
        deletes: bool = False,
        tags: Mapping[str, str] | None = None,
        watch: WatchSettings | None = None,
        directory: Path | None = None,
        stops_on_replaced: bool = False,
    ) -> None:
        """Take the settings.

        Args:
            store: has the objects.
            scanner: cuts them.
            prefix: begins the keys of the objects.
            deletes: whether an object is deleted when it is read and safe.
            tags: that an object gets then; none for no tags.
            watch: how new objects are noticed; None to list once, and to end.
            directory: for what has to be remembered; set by `open`.
            stops_on_replaced: whether it is an error that an object was replaced which is read in
                part; else the new one is read from its beginning.
        """
        self._settings: dict[str, Any] = {
            "prefix": prefix,
            "deletes": deletes,
            "tags": tags,
            "watch": watch,
            "directory": directory,
            "stops_on_replaced": stops_on_replaced,
        }
        self._stops_on_replaced = stops_on_replaced
        self._store = store
        self._scanner = scanner
        self._deletes = deletes
        self._tags = dict(tags or {})
        self._watch = watch
        self._planner = BatchPlanner(store, scanner)
        self._listing: ObjectListing = (
            SingleListing(store, prefix)
            if watch is None
            else WatchingListing(store, prefix, watch, directory or Path())
        )
        self._prefix = prefix
        self._latest: tuple[Offset, Limit, LatestOffset] | None = None
        self._finished: Offset | None = None

    def __reduce__(self) -> Any:
        # What was listed stays in its process.
        return _make_source, (self._store, self._scanner, self._settings)

    def open(self, context: InputContext) -> ObjectSource:
        """Return the source, with the directory of the input; nothing is listed yet."""
        return _make_source(
            self._store, self._scanner, {**self._settings, "directory": context.directory}
        )

    def initial_offset(self) -> Offset:
        """Return the place before all objects."""
        return ObjectOffset().to_offset()

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Go on from `start` through objects that are listed, until the limit.

        Raises:
            StoreError: the store does not answer, or refuses.
        """
        if self._latest is not None and self._latest[:2] == (start, limit):
            return self._latest[2]
        latest = self._find_latest(start, now, limit)
        self._latest = (start, limit, latest) if latest.waiting else None
        return latest

    def _find_latest(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        position = ObjectOffset.from_offset(start, self._watch is not None)
        started, replacement = self._check_started(position.partly_read)
        following = self._listing.list_next(position, now)
        replaced_key = replacement.key if replacement is not None else None
        waiting = [BatchObject(one, is_reread=one.key == replaced_key) for one in following.objects]
        if replacement is not None and self._watch is None:
            waiting.insert(0, BatchObject(replacement, is_reread=True))
        contents = self._planner.plan_batch(started, iter(waiting), limit)
        if not contents.objects and contents.partly_read is None:
            return LatestOffset(start, 0, is_ended=following.is_ended and started is None)
        last = contents.partly_read or contents.objects[-1]
        after = "" if self._watch is not None else last.object.key
        end = ObjectOffset(
            after, contents.objects, contents.partly_read, self._listing.read_until()
        )
        has_more = contents.is_full or not following.is_all
        return LatestOffset(end.to_offset(), contents.messages, has_more=has_more)

    def _check_started(
        self, started: PartlyRead | None
    ) -> tuple[PartlyRead | None, ListedObject | None]:
        """Return the object that was read in part; or the one that has replaced it since."""
        if started is None:
            return None, None
        now = self._store.head(started.object.key)
        if now is None or now.version == started.object.version:
            # That one is not there any more is said where it is read.
            return started, None
        if self._stops_on_replaced:
            raise StoreError(
                f"{now.key} was replaced since it was read up to position "
                f"{started.mark.position:,}. Restore the former object to read the rest of it, or "
                "set on_replaced: restart to read this one from its beginning"
            )
        return None, now

    def watch(self, wake: Callable[[], None]) -> None:
        """Do nothing: a store does not say what is new."""

    def next_poll(self, start: Offset, now: int) -> int | None:
        """Return when new objects may be listed."""
        return self._listing.next_poll(now)

    def split(self, start: Offset, end: Offset, parts: int) -> list[Any]:
        """Cut what lies between two offsets into pieces, in order; see `split_objects`."""
        if start == end:
            return []  # An offset has the objects before it, and nothing lies between.
        bounds = ObjectOffset.from_offset(start), ObjectOffset.from_offset(end)
        return split_objects(self._store, self._scanner, *bounds, parts)

    def read(self, piece: ObjectPiece, ex: Execution) -> Iterator[Chunk]:
        """Read the messages of one piece; see `ObjectReader`."""
        reader = ObjectReader(self._store, self._scanner, is_pinned=self._watch is not None)
        return reader.read_piece(piece, ex)

    def partition_of(self, piece: ObjectPiece) -> str:
        """All objects are one partition, in the order of their keys."""
        return ""

    def on_committed(self, end: Offset) -> None:
        """Delete or tag the objects that were read to their ends, when the config says so.

        Raises:
            StoreError: the store refuses; the same is done again at the next start.
        """
        if end == self._finished or not (self._deletes or self._tags):
            return
        objects = [one.object for one in ObjectOffset.from_offset(end).objects]
        if objects:
            with ThreadPoolExecutor(_THREADS, "object store") as pool:
                # One that has come in the place of what was read is left as it is.
                current = pool.map(lambda one: self._store.head(one.key), objects)
                same = [
                    one.key
                    for one, now in zip(objects, current, strict=True)
                    if now is not None and now.version == one.version
                ]
                if self._tags:
                    list(pool.map(lambda key: self._store.tag(key, self._tags), same))
            failed = self._store.delete(same) if self._deletes and same else {}
            for key, text in failed.items():
                raise StoreError(
                    f"failed to delete {len(failed)} objects that were read, among them "
                    f"{key!r} of {self._store.place}: {text}"
                )
        self._finished = end

    def on_finished(self) -> None:
        """Do nothing: the last objects were committed before the end was reported."""

    def probe(self) -> str:
        """Check that objects can be listed; see `SupportsProbe`."""
        page = self._store.list_page(self._prefix, "", 1)
        if page.objects:
            return f"{self._store.place} has objects, the first is {page.objects[0].key!r}"
        return f"{self._store.place} has no objects yet with this prefix"


def _make_source(store: ObjectStore, scanner: Scanner, settings: dict[str, Any]) -> ObjectSource:
    return ObjectSource(store, scanner, **settings)
