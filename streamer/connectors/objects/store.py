"""The protocol of a store of objects, and its errors.

A store is given by its component: it knows the bucket (or container, or directory), the credentials
and the names of metadata. All else about reading objects is in this package, the same for each.

A store is pickled to the process that plans micro-batches and to the workers, so it connects at its
first use. Threads may share it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from streamer.core.errors import StreamerError
from streamer.sdk.input.scanning import ByteStream

PAGE_OBJECTS: Final = 1000
"""Objects of a page of a listing, at most."""


class StoreError(StreamerError):
    """A request to a store was not answered, or was refused."""


class StoreUnavailableError(StoreError):
    """The store does not answer now; the same may work later."""

    transient = True


class ObjectMissingError(StoreError):
    """There is no such object any more."""


class ObjectReplacedError(StoreError):
    """The object is another version than the one that is to be read."""

    transient = True


class ObjectUnreadableError(StoreError):
    """This object alone cannot be read, for what it is, such as one in an archive."""


class ListedObject(NamedTuple):
    """An object as a listing has it.

    Attributes:
        key: its full key (or path).
        size: bytes.
        version: differs whenever its content is replaced: an ETag, a generation, or time and size.
        modified: ns since 1970, by the store's clock.
    """

    key: str
    size: int
    version: str
    modified: int


class ObjectPage(NamedTuple):
    """A page of a listing.

    Attributes:
        objects: in the order of their keys.
        is_last: whether no object follows.
    """

    objects: Sequence[ListedObject]
    is_last: bool


class ObjectInfo(NamedTuple):
    """An object as it is when it is read.

    Attributes:
        key: its full key.
        size: bytes of the whole object.
        version: see `ListedObject`.
        metadata: of each of its messages, by the names that the component documents.
        modified: ns since 1970, by the store's clock.
    """

    key: str
    size: int
    version: str
    metadata: Mapping[str, Any]
    modified: int = 0


class OpenObject(NamedTuple):
    """An object that is being read.

    Attributes:
        info: the object.
        stream: the bytes that were requested; its `read` raises a StoreError when they break off.
            It has a method `close`.
    """

    info: ObjectInfo
    stream: ClosableStream


class ClosableStream(ByteStream, Protocol):
    """Bytes of a connection."""

    def close(self) -> None:
        """Free the connection; bytes that were not read are left out."""


class ObjectStore(Protocol):
    """The objects of one bucket, container or directory.

    Each method raises a `StoreError` when it fails: a `StoreUnavailableError` when that may pass.
    """

    @property
    def place(self) -> str:
        """The place of the objects, for messages, such as `s3://bucket`; without secrets."""

    def list_page(self, prefix: str, after: str, limit: int = PAGE_OBJECTS) -> ObjectPage:
        """Return objects whose keys begin with a prefix, in the order of their keys.

        The order is the same at each call: that of the UTF-8 bytes of the keys, or another one by
        which the store can go on behind a key.

        Args:
            prefix: begins the keys; empty for all objects.
            after: the key behind which the page begins; empty for the beginning. It need not exist.
            limit: objects of the page, at most.
        """

    def open(
        self, key: str, start: int = 0, end: int | None = None, version: str = ""
    ) -> OpenObject:
        """Begin to read an object.

        Args:
            key: its key.
            start: the first byte; one at or behind the end of the object gives no bytes.
            end: behind the last byte; None for the end of the object.
            version: the version that must be read; empty for the newest.

        Raises:
            ObjectMissingError: there is none.
            ObjectReplacedError: it has another version.
            ObjectUnreadableError: it cannot be read as it is.
        """

    def head(self, key: str) -> ListedObject | None:
        """Return an object as it is now; None when there is none."""

    def delete(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Delete objects; one that is not there is deleted.

        Returns:
            By key, why an object was not deleted.
        """

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        """Add tags to an object, in place of tags with the same names.

        Raises:
            StoreError: it fails, or the store has no tags.
        """

    def close(self) -> None:
        """Free the connections; the next use makes others."""


def delete_each(keys: Sequence[str], delete: Callable[[str], None]) -> dict[str, str]:
    """Delete objects by a request for each; returns by key why an object was not deleted.

    Args:
        keys: the keys of the objects.
        delete: deletes one; an `ObjectMissingError` says that it is not there.

    Raises:
        StoreUnavailableError: the store does not answer.
    """
    failed: dict[str, str] = {}
    for key in keys:
        try:
            delete(key)
        except ObjectMissingError:
            continue
        except StoreUnavailableError:
            raise
        except StoreError as error:
            failed[key] = str(error)
    return failed
