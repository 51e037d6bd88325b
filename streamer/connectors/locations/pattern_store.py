"""The objects that patterns of URLs name, as one store whose keys are URLs.

They are in the order of the patterns, those of one pattern in the order of their keys. One that
several patterns name belongs to the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from streamer.connectors.locations.patterns import LocationPattern, parse_pattern
from streamer.connectors.locations.stores import Deferral, defer_alone, open_store
from streamer.connectors.objects.store import (
    PAGE_OBJECTS,
    ListedObject,
    ObjectMissingError,
    ObjectPage,
    ObjectStore,
    OpenObject,
    StoreError,
)
from streamer.core.durations import SECOND
from streamer.core.locations import parse_location
from streamer.core.permissions import Permissions
from streamer.core.timestamps import format_rfc3339

_MAX_RESUMES: Final = 16
"""Places in listings that are remembered, at most."""


class PatternStore:
    """Objects by URL; see `ObjectStore`."""

    def __init__(
        self, patterns: Sequence[str], permissions: Permissions, defer: Deferral = defer_alone
    ) -> None:
        """Take the patterns.

        Args:
            patterns: URLs and globs of URLs.
            permissions: whether they may be opened.
            defer: gives clients in any process.

        Raises:
            ValueError: a pattern is no URL of an object.
        """
        self._texts = tuple(patterns)
        self._permissions = permissions
        self._stores: dict[str, ObjectStore] = {}
        for pattern in map(parse_pattern, self._texts):
            if pattern.location.root not in self._stores:
                self._stores[pattern.location.root] = open_store(pattern.location, defer)
        self._resumes: dict[str, str] = {}

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "_resumes": {}}
        state.pop("_patterns", None)
        return state

    @cached_property
    def _patterns(self) -> tuple[LocationPattern, ...]:
        return tuple(map(parse_pattern, self._texts))

    @property
    def place(self) -> str:
        """The patterns, for messages."""
        return ", ".join(self._texts)

    def _find_store(self, url: str) -> tuple[ObjectStore, str]:
        """Return the store of a URL, and the key there."""
        location = parse_location(self._permissions.file(url))
        return self._stores[location.root], url.removeprefix(location.root)

    def list_page(self, prefix: str, after: str, limit: int = PAGE_OBJECTS) -> ObjectPage:
        """Return objects behind a URL; see `ObjectStore`. All have an empty prefix.

        Raises:
            ObjectMissingError: a URL that is no glob names nothing.
        """
        first = self._find_pattern(after) if after else 0
        for number in range(first, len(self._patterns)):
            is_last_pattern = number == len(self._patterns) - 1
            page = self._list_pattern(number, after if number == first else "", limit)
            if page.objects or not page.is_last:
                return ObjectPage(page.objects, page.is_last and is_last_pattern)
        return ObjectPage((), True)

    def _find_pattern(self, url: str) -> int:
        for number, pattern in enumerate(self._patterns):
            if pattern.matches(url):
                return number
        return 0

    def _list_pattern(self, number: int, after: str, limit: int) -> ObjectPage:
        pattern = self._patterns[number]
        root = self._permissions.file(pattern.location.root)
        store = self._stores[root]
        if pattern.keys is None:
            if after:
                return ObjectPage((), True)
            listed = store.head(pattern.prefix)
            if listed is None:
                raise ObjectMissingError(f"there is no object {root}{pattern.prefix}")
            return ObjectPage(self._choose(number, [listed]), True)
        since = self._resumes.get(after, after.removeprefix(root))
        while True:
            page = store.list_page(pattern.prefix, since, limit)
            matching = self._choose(number, page.objects)
            if page.objects:
                since = page.objects[-1].key
            if matching and not page.is_last:
                # What the store has listed already is not listed again.
                self._resumes[matching[-1].key] = since
                while len(self._resumes) > _MAX_RESUMES:
                    del self._resumes[next(iter(self._resumes))]
            if matching or page.is_last or not page.objects:
                return ObjectPage(matching, page.is_last or not page.objects)

    def _choose(self, number: int, objects: Sequence[ListedObject]) -> list[ListedObject]:
        """Return those that a pattern is the first to name, by their URLs."""
        pattern, earlier = self._patterns[number], self._patterns[:number]
        named = [one._replace(key=f"{pattern.location.root}{one.key}") for one in objects]
        return [
            one
            for one in named
            # An empty object whose name ends with a slash stands for a directory.
            if not one.key.endswith("/")
            and pattern.matches(one.key)
            and not any(other.matches(one.key) for other in earlier)
        ]

    def open(
        self, key: str, start: int = 0, end: int | None = None, version: str = ""
    ) -> OpenObject:
        """Begin to read an object; see `ObjectStore`. Its metadata are those of a file."""
        store, name = self._find_store(key)
        opened = store.open(name, start, end, version)
        seconds = opened.info.modified // SECOND
        metadata = {
            "path": key,
            "mod_time_unix": seconds,
            "mod_time": format_rfc3339(seconds * SECOND),
        }
        return OpenObject(opened.info._replace(key=key, metadata=metadata), opened.stream)

    def head(self, key: str) -> ListedObject | None:
        """Return an object as it is now; see `ObjectStore`."""
        store, name = self._find_store(key)
        listed = store.head(name)
        return None if listed is None else listed._replace(key=key)

    def delete(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Delete objects; see `ObjectStore`."""
        by_root: dict[str, list[str]] = {}
        for key in keys:
            by_root.setdefault(parse_location(key).root, []).append(key)
        failed: dict[str, str] = {}
        for root, urls in by_root.items():
            names = [self._permissions.file(url).removeprefix(root) for url in urls]
            why = self._stores[root].delete(names)
            failed |= {f"{root}{name}": text for name, text in why.items()}
        return failed

    def tag(self, key: str, tags: Mapping[str, str]) -> None:
        """Refuse: see `ObjectStore`."""
        raise StoreError("objects that are named by URL get no tags")

    def close(self) -> None:
        """Free the connections; see `ObjectStore`."""
        for store in self._stores.values():
            store.close()
