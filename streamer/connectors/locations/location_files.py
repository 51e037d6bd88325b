"""Objects by URL that are read, written and deleted whole."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from streamer.connectors.locations.stores import KeptClient, make_client, open_store
from streamer.connectors.objects.object_stream import ObjectStream
from streamer.connectors.objects.store import ListedObject, ObjectMissingError, ObjectStore
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.locations import AZURE, GCS, S3, Location, is_location, parse_location
from streamer.core.permissions import Permissions
from streamer.sdk.input.scanning import silent_execution

_CHUNK_BYTES: Final = 16 << 20
_EXISTS_CODES: Final = frozenset(
    ("PreconditionFailed", "412", "ConditionalRequestConflict", "409", "BlobAlreadyExists")
)


class LocationError(StreamerError, OSError):
    """A store does not answer, or refuses; the text says why."""


class LocationFiles:
    """Objects by URL; a client of each bucket is kept. Threads may share it."""

    def __init__(self, permissions: Permissions) -> None:
        """Take whether they may be opened."""
        self._permissions = permissions
        self._clients: dict[str, Callable[[], Any]] = {}
        self._stores: dict[str, ObjectStore] = {}

    def __reduce__(self) -> Any:
        return LocationFiles, (self._permissions,)

    def _locate(self, url: str) -> Location:
        try:
            return parse_location(self._permissions.file(url))
        except ValueError as error:
            raise LocationError(f"the URL {error}") from None

    def _client(self, location: Location) -> Any:
        make = partial(make_client, location)
        return self._clients.setdefault(location.root, KeptClient(make))()

    def _store(self, location: Location) -> ObjectStore:
        if location.root not in self._stores:
            client = self._clients.setdefault(
                location.root, KeptClient(partial(make_client, location))
            )
            self._stores[location.root] = open_store(location, lambda name, make: client)
        return self._stores[location.root]

    def read(self, url: str, ex: Execution | None = None) -> bytes:
        """Return the content of an object.

        Raises:
            FileNotFoundError: there is none.
            LocationError: it cannot be read.
        """
        location = self._locate(url)
        with _location_errors(url):
            stream = ObjectStream(self._store(location), location.key, ex or silent_execution())
            blocks = []
            try:
                size = stream.info.size
                while block := stream.read(max(size, 1)):
                    blocks.append(block)
            finally:
                stream.close()
            return b"".join(blocks)

    def version(self, url: str) -> str:
        """Return what changes when an object is replaced.

        Raises:
            FileNotFoundError: there is none.
            LocationError: it cannot be looked at.
        """
        listed = self._head(url)
        return f"{listed.version} {listed.modified} {listed.size}"

    def size(self, url: str) -> int:
        """Return the bytes of an object.

        Raises:
            FileNotFoundError: there is none.
            LocationError: it cannot be looked at.
        """
        return self._head(url).size

    def _head(self, url: str) -> ListedObject:
        location = self._locate(url)
        with _location_errors(url):
            listed: ListedObject | None = self._store(location).head(location.key)
        if listed is None:
            raise FileNotFoundError(f"there is no object {url}")
        return listed

    def delete(self, url: str) -> None:
        """Delete an object; one that is not there is deleted.

        Raises:
            LocationError: it cannot be deleted.
        """
        location = self._locate(url)
        with _location_errors(url):
            failed = self._store(location).delete([location.key])
        for text in failed.values():
            raise LocationError(f"failed to delete {url}: {text}")

    def put(self, url: str, data: bytes, *, is_new: bool = False) -> bool:
        """Write an object, which is there when it is whole.

        Args:
            url: its place.
            data: its content.
            is_new: whether it is written only where there is none.

        Returns:
            False where there is one.

        Raises:
            LocationError: it cannot be written.
        """
        location = self._locate(url)
        with _location_errors(url):
            client = self._client(location)
            if location.store == S3:
                return _put_s3(client, location, data, is_new)
            if location.store == GCS:
                generation = 0 if is_new else None
                written: bool = client.write(
                    location.bucket,
                    location.key,
                    data,
                    {},
                    generation=generation,
                    chunk_bytes=_CHUNK_BYTES,
                )
                return written
            if location.store == AZURE:
                return _put_blob(client, location, data, is_new)
            return _put_hdfs(client, location, data, is_new)

    def check(self, url: str) -> str:
        """Check that a bucket answers; return that in words.

        Raises:
            LocationError: it does not, or refuses.
        """
        location = self._locate(url)
        with _location_errors(url):
            store = self._store(location)
            store.list_page(location.key.partition("${")[0].rpartition("/")[0], "", 1)
        return f"{location.root} answers"


def _put_s3(client: Any, location: Location, data: bytes, is_new: bool) -> bool:
    from streamer.connectors.aws.errors import AwsError

    condition = {"IfNoneMatch": "*"} if is_new else {}
    try:
        client.run(
            lambda one: one.put_object(
                Bucket=location.bucket, Key=location.key, Body=data, **condition
            )
        )
    except AwsError as error:
        if is_new and error.code in _EXISTS_CODES:
            return False
        raise
    return True


def _put_blob(client: Any, location: Location, data: bytes, is_new: bool) -> bool:
    from streamer.connectors.azure.errors import AzureError, azure_errors

    try:
        with azure_errors():
            blob = client.client.get_blob_client(location.bucket, location.key)
            blob.upload_blob(data, overwrite=not is_new)
    except AzureError as error:
        if is_new and error.code in _EXISTS_CODES:
            return False
        raise
    return True


def _put_hdfs(client: Any, location: Location, data: bytes, is_new: bool) -> bool:
    from streamer.connectors.hdfs.client import HdfsExistsError

    path = f"/{location.key}"
    if is_new:
        try:
            client.write(path, data, overwrite=False)
        except HdfsExistsError:
            return False
        return True
    directory, name = posixpath.split(path)
    draft = posixpath.join(directory, f".{name}.tmp")
    client.write(draft, data)
    client.run(lambda one: one.rename(draft, path, overwrite=True))
    return True


@contextmanager
def _location_errors(url: str) -> Iterator[None]:
    try:
        yield
    except ObjectMissingError:
        raise FileNotFoundError(f"there is no object {url}") from None
    except OSError:
        raise
    except StreamerError as error:
        raise LocationError(f"{url}: {error}") from None


def read_path(path: str, permissions: Permissions) -> bytes:
    """Return the content of a file, or of an object that a URL names.

    Raises:
        NotPermittedError: it is out of reach.
        OSError: it cannot be read.
    """
    if is_location(path):
        return LocationFiles(permissions).read(path)
    return permissions.read(path)
