"""A store of objects in memory, which does what a test says."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO

from streamer.connectors.objects.store import (
    PAGE_OBJECTS,
    ListedObject,
    ObjectInfo,
    ObjectMissingError,
    ObjectPage,
    ObjectReplacedError,
    OpenObject,
)


def _let_open(key: str) -> None:
    """Let an object be opened."""


class ScriptedStore:
    """Objects by key.

    Attributes:
        requests: what was requested, such as `open a 0-10`.
        before_open: called with a key before it is opened; may raise.
    """

    place = "scripted://objects"

    def __init__(self, **objects: bytes) -> None:
        self.requests: list[str] = []
        self.before_open: Callable[[str], None] = _let_open
        self.tags: dict[str, Mapping[str, str]] = {}
        self._keys: list[str] = []
        self._objects: dict[str, tuple[bytes, ListedObject]] = {}
        self._versions = 0
        for key, data in objects.items():
            self.put(key, data)

    def put(self, key: str, data: bytes, modified: int = 0) -> None:
        """Write an object."""
        if key not in self._objects:
            insort(self._keys, key)
        self._versions += 1
        listed = ListedObject(key, len(data), f"v{self._versions}", modified or self._versions)
        self._objects[key] = data, listed

    def keys(self) -> list[str]:
        """Return the keys."""
        return list(self._keys)

    def list_page(self, prefix: str, after: str, limit: int = PAGE_OBJECTS) -> ObjectPage:
        self.requests.append(f"list {after}")
        first = bisect_right(self._keys, max(after, prefix)) if after else 0
        keys = [key for key in self._keys[first:] if key.startswith(prefix)]
        objects = [self._objects[key][1] for key in keys[:limit]]
        return ObjectPage(objects, len(keys) <= limit)

    def open(
        self, key: str, start: int = 0, end: int | None = None, version: str = ""
    ) -> OpenObject:
        self.requests.append(f"open {key} {start}-{'' if end is None else end}")
        self.before_open(key)
        if key not in self._objects:
            raise ObjectMissingError(f"there is no {key}")
        data, listed = self._objects[key]
        if version and version != listed.version:
            raise ObjectReplacedError(f"{key} was replaced")
        info = ObjectInfo(key, len(data), listed.version, {"key": key})
        return OpenObject(info, BytesIO(data[start:end]))

    def head(self, key: str) -> ListedObject | None:
        self.requests.append(f"head {key}")
        return self._objects[key][1] if key in self._objects else None

    def delete(self, keys: Sequence[str]) -> Mapping[str, str]:
        for key in keys:
            if self._objects.pop(key, None) is not None:
                self._keys.remove(key)
        return {}

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        self.tags[key] = tags

    def close(self) -> None:
        pass


class NumberedStore(ScriptedStore):
    """A million objects and more, of which nothing is in memory: an object is its number."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def listed(self, number: int) -> ListedObject:
        return ListedObject(f"{number:09}", 9, "v", 1)

    def list_page(self, prefix: str, after: str, limit: int = PAGE_OBJECTS) -> ObjectPage:
        first = int(after) + 1 if after else 0
        numbers = range(first, min(first + limit, self.count))
        return ObjectPage([self.listed(number) for number in numbers], numbers.stop >= self.count)

    def open(
        self, key: str, start: int = 0, end: int | None = None, version: str = ""
    ) -> OpenObject:
        return OpenObject(ObjectInfo(key, 9, "v", {}), BytesIO(key.encode()[start:end]))

    def head(self, key: str) -> ListedObject | None:
        return self.listed(int(key))
