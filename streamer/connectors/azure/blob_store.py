"""A container of Blob Storage as a store of objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from streamer.connectors.azure.blobs import ABSENT, BlobAccount
from streamer.connectors.azure.errors import AzureError, azure_errors
from streamer.connectors.objects.store import (
    PAGE_OBJECTS,
    ListedObject,
    ObjectInfo,
    ObjectMissingError,
    ObjectPage,
    ObjectReplacedError,
    ObjectUnreadableError,
    OpenObject,
    StoreError,
    StoreUnavailableError,
    delete_each,
)
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.timestamps import format_rfc3339
from streamer.sdk.output.each_message import ReceiverLostError
from streamer.sdk.spec import BuildContext, ParsedFields

_MISSING: Final = "BlobNotFound"
_REPLACED: Final = 412
_UNREADABLE: Final = ("BlobArchived", "BlobBeingRehydrated")
_UNAVAILABLE: Final = (408, 429, 500, 502, 503, 504)
_MAX_MARKERS: Final = 16


def deferred_account(parsed: ParsedFields, context: BuildContext) -> Callable[[], BlobAccount]:
    """Return what gives the account of a component in any process, one for each run."""
    return context.deferred_worker_resource("blobs", partial(BlobAccount, parsed))


class BlobStore:
    """The blobs of a container; see `ObjectStore`.

    Azure lists on behind a page that it has answered, not behind any name. The places of the last
    pages are known here; in a new process, what was listed before is passed over once.
    """

    def __init__(self, container: str, account: Callable[[], BlobAccount]) -> None:
        """Take the container, and what gives the account."""
        self._container = container
        self._account = account
        self._markers: dict[tuple[str, str], str] = {}

    @property
    def place(self) -> str:
        """The container, for messages."""
        return f"azure://{self._container}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (BlobStore, (self._container, self._account))

    def list_page(self, prefix: str, after: str, limit: int = PAGE_OBJECTS) -> ObjectPage:
        """Return blobs behind a name; see `ObjectStore`."""
        marker = self._markers.get((prefix, after), "") if after else ""
        is_passing = bool(after) and not marker
        last = after.encode()
        while True:
            with self._store_errors("list objects"), azure_errors():
                pages = (
                    self._account()
                    .client.get_container_client(self._container)
                    .list_blobs(name_starts_with=prefix or None, results_per_page=limit)
                    .by_page(continuation_token=marker or None)
                )
                listed = [_as_listed(one) for one in next(pages, ())]
                marker = pages.continuation_token or ""
            objects = [one for one in listed if not is_passing or one.key.encode() > last]
            if objects and marker:
                self._keep_marker(prefix, objects[-1].key, marker)
            if objects or not marker:
                return ObjectPage(objects, not marker)

    def _keep_marker(self, prefix: str, key: str, marker: str) -> None:
        self._markers[prefix, key] = marker
        while len(self._markers) > _MAX_MARKERS:
            del self._markers[next(iter(self._markers))]

    def open(
        self, key: str, start: int = 0, end: int | None = None, version: str = ""
    ) -> OpenObject:
        """Begin to read a blob; see `ObjectStore`."""
        from azure.core import MatchConditions

        same: dict[str, Any] = {}
        if version:
            same = {"etag": f'"{version}"', "match_condition": MatchConditions.IfNotModified}
        with self._store_errors(f"read {key!r}"), azure_errors():
            blob = self._account().client.get_blob_client(self._container, key)
            properties = blob.get_blob_properties(**same)
            size = int(properties.size)
            stop = size if end is None else min(end, size)
            body = None
            if start < stop:
                # All that is read is the version of which the description is.
                body = blob.download_blob(
                    offset=start,
                    length=stop - start,
                    etag=properties.etag,
                    match_condition=MatchConditions.IfNotModified,
                )
        return OpenObject(self._make_info(key, properties), _Body(body, self, key))

    def _make_info(self, key: str, properties: Any) -> ObjectInfo:
        modified = _to_ns(properties.last_modified)
        content = properties.content_settings
        metadata: dict[str, Any] = dict(properties.metadata or {})
        metadata |= {
            "blob_storage_key": key,
            "blob_storage_container": self._container,
            "blob_storage_last_modified": format_rfc3339(modified),
            "blob_storage_last_modified_unix": modified // SECOND,
        }
        texts = {
            "blob_storage_content_type": content.content_type,
            "blob_storage_content_encoding": content.content_encoding,
        }
        metadata |= {name: text for name, text in texts.items() if text}
        version = str(properties.etag).strip('"')
        return ObjectInfo(key, int(properties.size), version, metadata, modified)

    def head(self, key: str) -> ListedObject | None:
        """Return a blob as it is now; see `ObjectStore`."""
        try:
            with self._store_errors(f"read {key!r}"), azure_errors():
                client = self._account().client.get_blob_client(self._container, key)
                return _as_listed(client.get_blob_properties())
        except ObjectMissingError:
            return None

    def delete(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Delete blobs with their snapshots; see `ObjectStore`."""
        return delete_each(keys, self._delete)

    def _delete(self, key: str) -> None:
        with self._store_errors(f"delete {key!r}"), azure_errors():
            blob = self._account().client.get_blob_client(self._container, key)
            blob.delete_blob(delete_snapshots="include")

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        """Refuse: see `ObjectStore`."""
        raise StoreError("blobs get no tags here")

    @contextmanager
    def _store_errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except StreamerError as error:
            raise _as_store_error(error, f"failed to {action} of {self.place}") from None

    def read_body(self, body: Any, key: str, size: int) -> bytes:
        """Return at most so many bytes of a blob that is being read.

        Raises:
            StoreError: they cannot be read.
        """
        with self._store_errors(f"read {key!r}"), azure_errors():
            data: bytes = body.read(size)
        return data

    def close(self) -> None:
        """Free the connections; see `ObjectStore`."""
        self._account().close()


class _Body:
    """The bytes of a blob."""

    def __init__(self, body: Any, store: BlobStore, key: str) -> None:
        self._body = body
        self._store = store
        self._key = key

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes; see `ByteStream`."""
        return b"" if self._body is None else self._store.read_body(self._body, self._key, size)

    def close(self) -> None:
        """Free the connection."""
        self._body = None


def _as_store_error(error: StreamerError, text: str) -> StoreError:
    text = f"{text}: {error}"
    if isinstance(error, ReceiverLostError):
        return StoreUnavailableError(text)
    if not isinstance(error, AzureError):
        return StoreError(text)
    if error.status in _UNAVAILABLE:
        return StoreUnavailableError(text)
    if error.code in _UNREADABLE:
        return ObjectUnreadableError(text)
    if error.status == _REPLACED:
        return ObjectReplacedError(text)
    # An answer without a body has no code.
    if error.code == _MISSING or (error.status == ABSENT and "Container" not in error.code):
        return ObjectMissingError(text)
    return StoreError(text)


def _as_listed(entry: Any) -> ListedObject:
    # A listing has the tag of a version without the quotation marks of headers.
    version = str(entry.etag).strip('"')
    return ListedObject(entry.name, int(entry.size), version, _to_ns(entry.last_modified))


def _to_ns(moment: Any) -> int:
    """Return a time of the client as ns since 1970."""
    return int(moment.timestamp()) * SECOND
