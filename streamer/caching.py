"""Caches: what those who use one may ask of it, what goes wrong, and how it is counted.

A cache is a resource. A component takes it while it is built, and asks it while it runs:

    cache: Cache = context.resource(Kind.CACHE, parsed[CACHE])
    ...
    try:
        found = cache.get(key, ex)
    except KeyNotFoundError:
        ...

There is one of each label in a worker process; it outlives tasks (see `lasting`), and several
threads may use it at once. The texts of errors are Benthos's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from streamer.errors import StreamerError
from streamer.failure import Origin
from streamer.message import Execution
from streamer.spec import ParsedComponent

T = TypeVar("T")


class CacheError(StreamerError):
    """A cache could not do what it was asked: its server is away, its disk is full."""


class KeyNotFoundError(CacheError):
    """Nothing is stored under the key, or no longer."""

    def __init__(self) -> None:
        """Say so as Benthos does."""
        super().__init__("key does not exist")


class KeyAlreadyExistsError(CacheError):
    """Something is stored under the key already."""

    def __init__(self) -> None:
        """Say so as Benthos does."""
        super().__init__("key already exists")


class Item(NamedTuple):
    """A value to be stored.

    Attributes:
        value: the value.
        ttl: how long it is kept, nanoseconds; None for what the cache keeps values for.
    """

    value: bytes
    ttl: int | None = None


class Cache(Protocol):
    """A cache. Keys are text, values are bytes.

    Every method takes the run it is called in, for its clock and its log, and raises `CacheError`
    when the cache cannot be reached.
    """

    def get(self, key: str, ex: Execution) -> bytes:
        """Return what is stored under a key.

        Raises:
            KeyNotFoundError: there is nothing.
        """

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a key, in the place of what is there.

        `ttl` is how long it is kept, nanoseconds; None for the cache's own time. Caches that keep
        everything equally long leave it aside.
        """

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a key that has none; nobody else's `add` comes between.

        Raises:
            KeyAlreadyExistsError: it has one.
        """

    def delete(self, key: str, ex: Execution) -> None:
        """Remove a key and its value; one that is not there is as good."""


def set_many(cache: Cache, items: Mapping[str, Item], ex: Execution) -> None:
    """Store several values, at once where the cache can.

    Raises:
        CacheError: one of them was not stored, or none was.
    """
    if isinstance(cache, CountedCache):
        cache.set_many(items, ex)
        return
    at_once = getattr(cache, "set_many", None)
    if at_once is not None:
        at_once(items, ex)
        return
    for key, item in items.items():
        cache.set(key, item.value, item.ttl, ex)


class CountedCache:
    """A cache whose operations are counted, as Benthos's `cache_*` metrics have them.

    It also turns what a cache breaks down on into a `CacheError`, so that one is all that callers
    need to expect.
    """

    def __init__(self, cache: Cache, component: ParsedComponent) -> None:
        """Take a cache, and where it stands in the config."""
        self.cache = cache
        self._labels = Origin(component).fields

    def get(self, key: str, ex: Execution) -> bytes:
        """Return what is stored; see `Cache`."""
        return self._counted("get", lambda: self.cache.get(key, ex), ex)

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value; see `Cache`."""
        self._counted("set", lambda: self.cache.set(key, value, ttl, ex), ex)

    def set_many(self, items: Mapping[str, Item], ex: Execution) -> None:
        """Store several values; they count as one operation, as in Benthos."""
        self._counted("set", lambda: set_many(self.cache, items, ex), ex)

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a new key; see `Cache`."""
        self._counted("add", lambda: self.cache.add(key, value, ttl, ex), ex)

    def delete(self, key: str, ex: Execution) -> None:
        """Remove a key; see `Cache`."""
        self._counted("delete", lambda: self.cache.delete(key, ex), ex)

    def _counted(self, operation: str, call: Callable[[], T], ex: Execution) -> T:
        outcome = "cache_error"
        try:
            result = call()
            outcome = "cache_success"
            return result
        except KeyNotFoundError:
            outcome = "cache_not_found"
            raise
        except KeyAlreadyExistsError:
            outcome = "cache_duplicate"
            raise
        except (CacheError, MemoryError):
            raise
        except Exception as error:
            raise CacheError(str(error) or type(error).__name__) from error
        finally:
            ex.count(outcome, 1, operation=operation, **self._labels)
