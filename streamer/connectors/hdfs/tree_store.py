"""The files below the root of an HDFS as a store of objects, whose keys are their paths."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from streamer.connectors.hdfs.client import HdfsClient, HdfsMissingError
from streamer.connectors.hdfs.directory_store import HdfsStore, as_listed
from streamer.connectors.objects.store import PAGE_OBJECTS, ListedObject, ObjectPage


class HdfsTreeStore(HdfsStore):
    """All files; see `ObjectStore`. They are ordered by the parts of their paths.

    A directory is listed whole, and sorted, when the walk comes to it.
    """

    def __init__(self, client: HdfsClient) -> None:
        """Take the client."""
        super().__init__("/", client)

    def __reduce__(self) -> tuple[Any, ...]:
        return (HdfsTreeStore, (self._client,))

    def list_page(self, prefix: str, after: str, limit: int = PAGE_OBJECTS) -> ObjectPage:
        """Return files behind a path; see `ObjectStore`."""
        with self._store_errors("list files"):
            directory = prefix.rpartition("/")[0]
            files = self._walk(directory, prefix, after.split("/") if after else [])
            objects = list(islice(files, limit + 1))
        return ObjectPage(objects[:limit], len(objects) <= limit)

    def head(self, key: str) -> ListedObject | None:
        """Return a file as it is now; see `ObjectStore`."""
        listed = super().head(key)
        return None if listed is None else listed._replace(key=key)

    def _walk(self, directory: str, prefix: str, after: list[str]) -> Iterator[ListedObject]:
        for path, entry in self._list_directory(directory):
            parts = path.split("/")
            if entry.isdir:
                may_match = path.startswith(prefix) or prefix.startswith(f"{path}/")
                if may_match and parts >= after[: len(parts)]:
                    yield from self._walk(path, prefix, after)
            elif path.startswith(prefix) and parts > after:
                yield as_listed(entry)._replace(key=path)

    def _list_directory(self, directory: str) -> list[tuple[str, Any]]:
        """Return what is in a directory, by path; nothing where it is not there."""
        try:
            entries = self._client.run(lambda client: list(client.list_status(f"/{directory}")))
        except HdfsMissingError:
            return []
        by_path = [(one.path.lstrip("/"), one) for one in entries]
        return sorted(by_path, key=lambda one: one[0].split("/"))
