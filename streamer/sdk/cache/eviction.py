"""Eviction from a cache of fixed size: three policies, as hashicorp/golang-lru has them.

`LeastRecentlyUsed` evicts what was not used for longest. `TwoQueues` keeps what was used once apart
from what was used more often, so that a burst of new keys does not push the often used ones out.
`AdaptiveReplacement` (ARC) moves the border between these two by what turns out to be missed. The
latter two remember the keys of what they have lately evicted, without the values. None is safe for
threads.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, Protocol, TypeVar

V = TypeVar("V")


class EvictingMap(Protocol[V]):
    """Values by key, of which there are never more than its size."""

    def peek(self, key: str) -> V | None:
        """Return a value, without using it."""

    def get(self, key: str) -> V | None:
        """Return a value and use it."""

    def put(self, key: str, value: V) -> None:
        """Keep a value, and use it; another one may go."""

    def remove(self, key: str) -> None:
        """Forget a key, if it is there."""


class LeastRecentlyUsed(Generic[V]):
    """Evicts the item that was not used for longest."""

    def __init__(self, size: int) -> None:
        """Begin empty; `size` is the most there may be."""
        self._size = size
        self._items: OrderedDict[str, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: str) -> bool:
        return key in self._items

    def peek(self, key: str) -> V | None:
        """Return a value, without using it."""
        return self._items.get(key)

    def get(self, key: str) -> V | None:
        """Return a value and use it."""
        if key not in self._items:
            return None
        self._items.move_to_end(key)
        return self._items[key]

    def put(self, key: str, value: V) -> None:
        """Keep a value, and use it; the oldest may go."""
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._size:
            self.evict_oldest()

    def pop(self, key: str) -> V | None:
        """Return a value that is there no longer."""
        return self._items.pop(key, None)

    def evict_oldest(self) -> tuple[str, V]:
        """Evict the item that was not used for longest, and return it."""
        return self._items.popitem(last=False)

    def remove(self, key: str) -> None:
        """Forget a key, if it is there."""
        self._items.pop(key, None)


class TwoQueues(Generic[V]):
    """Keeps what was used once apart from what was used more often."""

    def __init__(self, size: int, recent_ratio: float, ghost_ratio: float) -> None:
        """Begin empty.

        Args:
            size: the most there may be.
            recent_ratio: how much of the size is meant for what was used once, 0 to 1.
            ghost_ratio: how many keys are remembered of what has gone, as a part of the size.
        """
        self._size = size
        self._recent_size = int(size * recent_ratio)
        self._recent: LeastRecentlyUsed[V] = LeastRecentlyUsed(size)
        self._frequent: LeastRecentlyUsed[V] = LeastRecentlyUsed(size)
        self._ghosts: LeastRecentlyUsed[None] = LeastRecentlyUsed(int(size * ghost_ratio))

    def peek(self, key: str) -> V | None:
        """Return a value, without using it."""
        value = self._frequent.peek(key)
        return self._recent.peek(key) if value is None else value

    def get(self, key: str) -> V | None:
        """Return a value and use it; used twice, it is one of the frequent ones."""
        value = self._frequent.get(key)
        if value is None:
            value = self._recent.pop(key)
            if value is not None:
                self._frequent.put(key, value)
        return value

    def put(self, key: str, value: V) -> None:
        """Keep a value, and use it; another one may go."""
        if key in self._frequent:
            self._frequent.put(key, value)
        elif key in self._recent:
            self._recent.remove(key)
            self._frequent.put(key, value)
        elif key in self._ghosts:
            self._evict(was_ghost=True)
            self._ghosts.remove(key)
            self._frequent.put(key, value)
        else:
            self._evict(was_ghost=False)
            self._recent.put(key, value)

    def remove(self, key: str) -> None:
        """Forget a key, if it is there."""
        for part in (self._frequent, self._recent, self._ghosts):
            part.remove(key)

    def _evict(self, *, was_ghost: bool) -> None:
        recent = len(self._recent)
        if recent + len(self._frequent) < self._size:
            return
        full = recent > self._recent_size or (recent == self._recent_size and not was_ghost)
        if recent > 0 and full:
            key, _ = self._recent.evict_oldest()
            self._ghosts.put(key, None)
        else:
            self._frequent.evict_oldest()


class AdaptiveReplacement(Generic[V]):
    """Moves the border between what was used once and more often by what is missed."""

    def __init__(self, size: int) -> None:
        """Begin empty; `size` is the most there may be."""
        self._size = size
        self._border = 0
        self._recent: LeastRecentlyUsed[V] = LeastRecentlyUsed(size)
        self._frequent: LeastRecentlyUsed[V] = LeastRecentlyUsed(size)
        self._recent_ghosts: LeastRecentlyUsed[None] = LeastRecentlyUsed(size)
        self._frequent_ghosts: LeastRecentlyUsed[None] = LeastRecentlyUsed(size)

    def peek(self, key: str) -> V | None:
        """Return a value, without using it."""
        value = self._recent.peek(key)
        return self._frequent.peek(key) if value is None else value

    def get(self, key: str) -> V | None:
        """Return a value and use it; used twice, it is one of the frequent ones."""
        value = self._recent.pop(key)
        if value is None:
            return self._frequent.get(key)
        self._frequent.put(key, value)
        return value

    def put(self, key: str, value: V) -> None:
        """Keep a value, and use it; another one may go."""
        if key in self._recent or key in self._frequent:
            self._recent.remove(key)
            self._frequent.put(key, value)
        elif key in self._recent_ghosts:
            step = max(len(self._frequent_ghosts) // len(self._recent_ghosts), 1)
            self._border = min(self._border + step, self._size)
            self._readmit(self._recent_ghosts, key, value)
        elif key in self._frequent_ghosts:
            step = max(len(self._recent_ghosts) // len(self._frequent_ghosts), 1)
            self._border = max(self._border - step, 0)
            self._readmit(self._frequent_ghosts, key, value)
        else:
            self._evict(was_frequent=False)
            if len(self._recent_ghosts) > self._size - self._border:
                self._recent_ghosts.evict_oldest()
            if len(self._frequent_ghosts) > self._border:
                self._frequent_ghosts.evict_oldest()
            self._recent.put(key, value)

    def remove(self, key: str) -> None:
        """Forget a key, if it is there."""
        for part in (self._recent, self._frequent, self._recent_ghosts, self._frequent_ghosts):
            part.remove(key)

    def _readmit(self, ghosts: LeastRecentlyUsed[None], key: str, value: V) -> None:
        self._evict(was_frequent=ghosts is self._frequent_ghosts)
        ghosts.remove(key)
        self._frequent.put(key, value)

    def _evict(self, *, was_frequent: bool) -> None:
        recent = len(self._recent)
        if recent + len(self._frequent) < self._size:
            return
        if recent > 0 and (recent > self._border or (recent == self._border and was_frequent)):
            self._recent_ghosts.put(self._recent.evict_oldest()[0], None)
        else:
            self._frequent_ghosts.put(self._frequent.evict_oldest()[0], None)
