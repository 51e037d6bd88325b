"""A bucket of Cloud Storage as a store of objects."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlencode

from streamer.connectors.google.storage import (
    ABSENT,
    CONDITION_FAILED,
    StorageClient,
    object_path,
)
from streamer.connectors.http_client.errors import HttpError
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
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.timestamps import format_rfc3339, parse_event_time
from streamer.sdk.output.each_message import ReceiverLostError
from streamer.sdk.spec import BuildContext, ParsedComponent, ParsedFields

T = TypeVar("T")

_TIMEOUT: Final = 60 * SECOND
_RANGE_BYTES: Final = 8 << 20
"""Bytes of one request, at most."""
_UNAVAILABLE: Final = (408, 429, 500, 502, 503, 504)
_MAX_RESULTS: Final = 1000


def deferred_storage(parsed: ParsedFields, context: BuildContext) -> Callable[[], StorageClient]:
    """Return what gives the client of a component in any process, one for each run."""
    make = partial(make_storage_client, parsed, context.component)
    return context.deferred_worker_resource("storage", make)


class _ClientContext:
    """The part of a build context that a client needs."""

    def __init__(self, component: ParsedComponent) -> None:
        self.component = component
        self._resources: dict[Hashable, Any] = {}

    def worker_resource(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._resources:
            self._resources[key] = make()
        return cast(T, self._resources[key])


def make_storage_client(parsed: ParsedFields, component: ParsedComponent) -> StorageClient:
    """Return a client by the fields of a component, whose requests are counted as those of it."""
    return StorageClient(parsed, cast(BuildContext, _ClientContext(component)), _TIMEOUT)


class CloudStorageStore:
    """The objects of a bucket; see `ObjectStore`."""

    def __init__(self, bucket: str, client: Callable[[], StorageClient]) -> None:
        """Take the bucket, and what gives the client."""
        self._bucket = bucket
        self._client = client

    @property
    def place(self) -> str:
        """The bucket, for messages."""
        return f"gs://{self._bucket}"

    def list_page(self, prefix: str, after: str, limit: int = PAGE_OBJECTS) -> ObjectPage:
        """Return objects behind a key; see `ObjectStore`."""
        query: dict[str, str | int] = {
            # The first one is the key itself, where it is still there.
            "maxResults": min(limit + bool(after), _MAX_RESULTS),
            "fields": "nextPageToken,items(name,size,generation,updated)",
        }
        if prefix:
            query["prefix"] = prefix
        if after:
            query["startOffset"] = after
        objects: list[ListedObject] = []
        while True:
            with self._store_errors("list objects"):
                page = self._client().list_objects(self._bucket, urlencode(query))
            items = page.get("items", ())
            objects += [_as_listed(one) for one in items if one["name"] != after]
            token = page.get("nextPageToken")
            if objects or not token:
                return ObjectPage(objects[:limit], not token and len(objects) <= limit)
            query["pageToken"] = token

    def open(
        self, key: str, start: int = 0, end: int | None = None, version: str = ""
    ) -> OpenObject:
        """Begin to read an object; see `ObjectStore`."""
        with self._store_errors(f"read {key!r}"):
            entry = self._client().find(self._bucket, key)
        if entry is None:
            raise ObjectMissingError(f"there is no object {key!r} in {self.place}")
        listed = _as_listed(entry)
        self._check_version(key, version, listed.version)
        end = listed.size if end is None else min(end, listed.size)
        stream = _RangeStream(self, listed, start, end)
        return OpenObject(self._make_info(listed, entry), stream)

    def _check_version(self, key: str, version: str, current: str) -> None:
        if version and current != version:
            raise ObjectReplacedError(f"{key!r} of {self.place} was replaced")

    def read_range(self, listed: ListedObject, start: int, end: int) -> bytes:
        """Return bytes of a version of an object.

        Raises:
            StoreError: they cannot be read.
        """
        query = {"alt": "media", "ifGenerationMatch": listed.version}
        path = f"{object_path(self._bucket, listed.key)}?{urlencode(query)}"
        # An object with Content-Encoding: gzip comes as it is stored only to those who take gzip.
        # For others the store decompresses it, and answers all of it whatever the range is.
        # Source: Cloud Storage's documentation, "Transcoding of gzip-compressed files".
        more = (("Range", f"bytes={start}-{end - 1}"), ("Accept-Encoding", "gzip"))
        with self._store_errors(f"read {listed.key!r}"):
            answer = self._client().exchange("GET", path, more=more, keeps_encoding=True)
            if answer.status == CONDITION_FAILED:
                raise ObjectReplacedError(f"{listed.key!r} of {self.place} was replaced")
            self._client().raise_refusal(answer)
        version = answer.headers.get("x-goog-generation", listed.version)
        self._check_version(listed.key, listed.version, version)
        return answer.body

    def _make_info(self, listed: ListedObject, entry: Mapping[str, Any]) -> ObjectInfo:
        metadata: dict[str, Any] = dict(entry.get("metadata") or {})
        metadata |= {
            "gcs_key": listed.key,
            "gcs_bucket": self._bucket,
            "gcs_last_modified": format_rfc3339(listed.modified // SECOND * SECOND),
            "gcs_last_modified_unix": listed.modified // SECOND,
            "gcs_content_type": entry.get("contentType", ""),
            "gcs_content_encoding": entry.get("contentEncoding", ""),
        }
        return ObjectInfo(listed.key, listed.size, listed.version, metadata, listed.modified)

    def head(self, key: str) -> ListedObject | None:
        """Return an object as it is now; see `ObjectStore`."""
        with self._store_errors(f"look at {key!r}"):
            entry = self._client().find(self._bucket, key)
        return None if entry is None else _as_listed(entry)

    def delete(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Delete objects; see `ObjectStore`."""
        return delete_each(keys, self._delete)

    def _delete(self, key: str) -> None:
        with self._store_errors(f"delete {key!r}"):
            self._client().delete(self._bucket, key)

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        """Refuse: see `ObjectStore`."""
        raise StoreError("Cloud Storage has no tags")

    @contextmanager
    def _store_errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except StreamerError as error:
            text = f"failed to {action} of {self.place}: {error}"
            status = error.status if isinstance(error, HttpError) else None
            if isinstance(error, ReceiverLostError) or status in _UNAVAILABLE:
                raise StoreUnavailableError(text) from None
            if status == ABSENT and action.startswith("read"):
                raise ObjectMissingError(text) from None
            raise StoreError(text) from None

    def close(self) -> None:
        """Free the connections; see `ObjectStore`."""


class _RangeStream:
    """The bytes of an object, by a request for each range."""

    def __init__(self, store: CloudStorageStore, listed: ListedObject, start: int, end: int):
        self._store = store
        self._listed = listed
        self._next, self._end = start, end
        self._block = b""

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes; see `ByteStream`."""
        if not self._block and self._next < self._end:
            end = min(self._next + _RANGE_BYTES, self._end)
            self._block = self._store.read_range(self._listed, self._next, end)
            self._next = end
        data, self._block = self._block[:size], self._block[size:]
        return data

    def close(self) -> None:
        """Free what was read."""
        self._block = b""
        self._next = self._end


def _as_listed(entry: Mapping[str, Any]) -> ListedObject:
    modified = parse_event_time(entry["updated"])
    return ListedObject(entry["name"], int(entry.get("size", 0)), entry["generation"], modified)
