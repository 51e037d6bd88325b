"""Objects of S3 by notifications: a queue says which objects are new.

The notification's objects go to the driver's disk by name, and then the notification is deleted
from the queue. Workers read the objects.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import unquote_plus

from streamer.bloblang.runtime.paths import find_value, split_path
from streamer.connectors.aws.queue import Queue, QueueSettings, ReceivedMessage
from streamer.connectors.aws.queue_session import make_queue_client, probe_queue, start_receiving
from streamer.connectors.objects.object_offset import BatchObject, ObjectOffset
from streamer.connectors.objects.object_pieces import ObjectPiece, split_objects
from streamer.connectors.objects.object_reader import ObjectReader
from streamer.connectors.objects.store import ListedObject, ObjectStore, StoreError
from streamer.connectors.spool.blocks import Record, pack_each
from streamer.connectors.spool.pointer import read_read_position
from streamer.connectors.spool.spool_source import SpoolSource
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.json.parse import parse_json
from streamer.sdk.input.batch_chunks import split_chunks
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.input.replayable import Chunk, LatestOffset, Limit, Offset
from streamer.sdk.input.scanning import Scanner, silent_execution
from streamer.sdk.spec import ParsedFields

MAX_NOTIFIED: Final = 500
"""Objects of a micro-batch, about."""
_THREADS: Final = 16
_TEST_EVENT: Final = "s3:TestEvent"


class NotifiedObject(NamedTuple):
    """An object that a notification names."""

    bucket: str
    key: str


class NotificationPaths(NamedTuple):
    """Places of a notification's parts, as dot paths.

    Attributes:
        key: of the objects' keys.
        bucket: of their buckets; empty for none.
        envelope: of the text that has the notification as JSON; empty where the message itself is
            the notification.
        default_bucket: of objects without a bucket.
    """

    key: str
    bucket: str
    envelope: str
    default_bucket: str


def parse_notification(text: str, paths: NotificationPaths) -> list[NotifiedObject]:
    """Return the objects that a notification names; none for the test that S3 sends at first.

    Raises:
        MessageError: it is no JSON, or names no objects.
    """
    document = _parse_json(text, "the message")
    if paths.envelope:
        inner = find_value(document, split_path(paths.envelope))
        if not isinstance(inner, str):
            raise MessageError(f"there is no text at envelope_path {paths.envelope!r}")
        document = _parse_json(inner, f"the text at envelope_path {paths.envelope!r}")
    if isinstance(document, dict) and document.get("Event") == _TEST_EVENT:
        return []
    keys = _list_texts(find_value(document, split_path(paths.key)))
    if not keys:
        raise MessageError(f"there is no key at key_path {paths.key!r}")
    buckets = _list_texts(find_value(document, split_path(paths.bucket))) if paths.bucket else []
    objects = []
    for place, key in enumerate(keys):
        bucket = buckets[place] if place < len(buckets) else paths.default_bucket
        if not bucket:
            raise MessageError(
                f"there is no bucket at bucket_path {paths.bucket!r}, and the field bucket is empty"
            )
        objects.append(NotifiedObject(bucket, unquote_plus(key)))
    return objects


def _parse_json(text: str, name: str) -> Any:
    try:
        return parse_json(text.encode(errors="replace"))
    except ValueError as error:
        raise MessageError(f"{name} is not JSON: {error}") from None


def _list_texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for one in value for text in _list_texts(one)]
    return []


class MakeStore(Protocol):
    """Gives the store of a bucket; it can be pickled."""

    def __call__(self, bucket: str) -> ObjectStore:
        """Return the objects of a bucket."""


class NotifiedInput:
    """An input before it is opened."""

    def __init__(
        self,
        parsed: ParsedFields,
        settings: QueueSettings,
        paths: NotificationPaths,
        objects: ObjectSettings,
        labels: Mapping[str, str],
    ) -> None:
        """Take the settings.

        Args:
            parsed: the fields of the session.
            settings: of receiving from the queue.
            paths: of the parts of a notification.
            objects: how objects are read.
            labels: of log lines and counts.
        """
        self._parsed = parsed
        self._settings = settings
        self._paths = paths
        self._objects = objects
        self._labels = labels

    def open(self, context: InputContext) -> NotifiedSource:
        """Begin to receive notifications."""
        spool = start_receiving(
            "aws_s3", context, self._labels, self._open_queue, self._settings, self._make_record
        )
        return NotifiedSource(spool, self._objects)

    def _open_queue(self) -> Queue:
        client = make_queue_client(
            self._parsed, self._settings.wait_s, self._objects.queue_endpoint
        )
        return Queue(client, self._settings)

    def _make_record(self, received: ReceivedMessage) -> Record | None:
        objects = parse_notification(received.message.get("Body", ""), self._paths)
        return pack_each([dump_json(list(one)) for one in objects], {}) if objects else None

    def probe(self) -> str:
        """Check that the queue is there; see `SupportsProbe`."""
        return f"the queue has {probe_queue(self._open_queue())}"


class ObjectSettings(NamedTuple):
    """Settings of reading notified objects.

    Attributes:
        make_store: gives the store of a bucket.
        scanner: cuts objects.
        deletes: whether an object is deleted when it is read and safe.
        tags: that an object gets then.
        queue_endpoint: the endpoint of the queue; empty for that of the session.
    """

    make_store: MakeStore
    scanner: Scanner
    deletes: bool = False
    tags: Mapping[str, str] | None = None
    queue_endpoint: str = ""


class _NotifiedPiece(NamedTuple):
    """Objects of one bucket."""

    bucket: str
    objects: ObjectPiece


class NotifiedSource:
    """Objects whose names are in a spool; see `ReplayableSource`."""

    def __init__(self, spool: SpoolSource, settings: ObjectSettings) -> None:
        """Take the spool of their names, and how they are read."""
        self._spool = spool
        self._settings = settings

    def initial_offset(self) -> Offset:
        """Return the beginning of the spool."""
        return self._spool.initial_offset()

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Go on through the notifications that are on the disk."""
        return self._spool.latest_offset(start, now, limit.within(Limit(MAX_NOTIFIED)))

    def watch(self, wake: Callable[[], None]) -> None:
        """Do nothing: the receiver wakes the planner."""

    def next_poll(self, start: Offset, now: int) -> int | None:
        """Return no time: the receiver wakes the planner."""
        return None

    def split(self, start: Offset, end: Offset, parts: int) -> list[Any]:
        """Cut the objects between two offsets into pieces, in order.

        Raises:
            StoreError: a store does not answer, or refuses.
        """
        pieces: list[_NotifiedPiece] = []
        names = self._read_names(start, end)
        for bucket, some in groupby(names, lambda one: one.bucket):
            keys = [one.key for one in some]
            store = self._settings.make_store(bucket)
            share = max(parts * len(keys) // len(names), 1)
            position = ObjectOffset(objects=_list_current(store, keys))
            pieces += (
                _NotifiedPiece(bucket, piece)
                for piece in split_objects(
                    store, self._settings.scanner, ObjectOffset(), position, share
                )
            )
        return pieces

    def _read_names(self, start: Offset, end: Offset) -> list[NotifiedObject]:
        if start == end:
            return []
        ex = silent_execution()
        names = []
        for piece in self._spool.split(start, end, 1):
            for batch in split_chunks(self._spool.read(piece, ex)):
                names += [NotifiedObject(*json.loads(message.raw)) for message in batch]
        return names

    def read(self, piece: _NotifiedPiece, ex: Execution) -> Iterator[Chunk]:
        """Read the messages of one piece; see `ObjectReader`."""
        store = self._settings.make_store(piece.bucket)
        return ObjectReader(store, self._settings.scanner).read_piece(piece.objects, ex)

    def partition_of(self, piece: _NotifiedPiece) -> str:
        """All objects are one partition, in the order of their notifications."""
        return ""

    def on_committed(self, end: Offset) -> None:
        """Delete or tag the objects before the position, when the config says so.

        Raises:
            StoreError: a store refuses; the same is done again at the next start.
        """
        if self._settings.deletes or self._settings.tags:
            before = read_read_position(self._spool.directory)
            start = self.initial_offset() if before is None else dict(before._asdict())
            names = sorted(set(self._read_names(start, end)))
            for bucket, some in groupby(names, lambda one: one.bucket):
                self._finish_objects(bucket, [one.key for one in some])
        self._spool.on_committed(end)

    def _finish_objects(self, bucket: str, keys: Sequence[str]) -> None:
        store, tags = self._settings.make_store(bucket), self._settings.tags
        if tags:
            with ThreadPoolExecutor(_THREADS, "object store") as pool:
                existing = [one.key for one in pool.map(store.head, keys) if one is not None]
                list(pool.map(lambda key: store.tag(key, tags), existing))
        failed = store.delete(keys) if self._settings.deletes else {}
        for key, text in failed.items():
            raise StoreError(
                f"failed to delete {len(failed)} objects that were read, among them {key!r} of "
                f"{store.place}: {text}"
            )

    def on_finished(self) -> None:
        """Do nothing: a queue has no end."""


def _list_current(store: ObjectStore, keys: Sequence[str]) -> list[BatchObject]:
    """Return objects as they are now; one that is gone is reported where it is read."""
    with ThreadPoolExecutor(_THREADS, "object store") as pool:
        current = list(pool.map(store.head, keys))
    return [
        BatchObject(one or ListedObject(key, 0, "", 0))
        for key, one in zip(keys, current, strict=True)
    ]
