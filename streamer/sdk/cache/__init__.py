"""Caches: what those who use one may ask of it, what goes wrong, and how it is counted.

A cache is a resource. A component takes it while it is built, and asks it while it runs:

    cache: Cache = context.resource(Kind.CACHE, parsed[CACHE])
    ...
    try:
        found = cache.get(key, ex)
    except KeyNotFoundError:
        ...

There is one of each label in a worker process, or one for all of them (see `shared`); it
outlives tasks (see `worker_resource`), and several threads may use it at once. Whoever has many
things to ask does so with `ask`, in one go. The texts of errors are Benthos's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar, runtime_checkable

from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import ParsedComponent

T = TypeVar("T")


class CacheError(StreamerError):
    """A cache could not do what it was asked: its server is away, its disk is full."""


class KeyNotFoundError(CacheError):
    """Nothing is stored under the key, or no longer."""

    def __init__(self) -> None:
        """Set the text that Benthos has for it."""
        super().__init__("key does not exist")


class KeyAlreadyExistsError(CacheError):
    """Something is stored under the key already."""

    def __init__(self) -> None:
        """Set the text that Benthos has for it."""
        super().__init__("key already exists")


class CacheItem(NamedTuple):
    """A value to be stored.

    Attributes:
        value: the value.
        ttl: how long it is kept, nanoseconds; None for what the cache keeps values for.
    """

    value: bytes
    ttl: int | None = None


class CacheCall(NamedTuple):
    """One thing that is asked of a cache.

    Attributes:
        operation: `get`, `set`, `add` or `delete`.
        key: the key.
        value: what is stored.
        ttl: for how long, as for `Item`.
    """

    operation: str
    key: str
    value: bytes = b""
    ttl: int | None = None


CallOutcome = bytes | CacheError
"""What a call has returned (empty for those that return nothing), or raised."""


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


@runtime_checkable
class _BatchCache(Protocol):
    """A cache that can be asked several things at once."""

    def call_many(self, calls: Sequence[CacheCall], ex: Execution) -> list[CallOutcome]:
        """Make calls in order."""


def make_call(cache: Cache, call: CacheCall, ex: Execution) -> bytes:
    """Make a call; return what it returns."""
    if call.operation == "get":
        return cache.get(call.key, ex)
    if call.operation == "set":
        cache.set(call.key, call.value, call.ttl, ex)
    elif call.operation == "add":
        cache.add(call.key, call.value, call.ttl, ex)
    else:
        cache.delete(call.key, ex)
    return b""


def call_many(cache: Cache, calls: Sequence[CacheCall], ex: Execution) -> list[CallOutcome]:
    """Make calls in order, at once where the cache can (it has a method `ask` then)."""
    if isinstance(cache, _BatchCache):
        return cache.call_many(calls, ex)
    outcomes: list[CallOutcome] = []
    for call in calls:
        try:
            outcomes.append(make_call(cache, call, ex))
        except CacheError as error:
            outcomes.append(error)
    return outcomes


def set_many(cache: Cache, items: Mapping[str, CacheItem], ex: Execution) -> None:
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


_SUCCESS: Final = "cache_success"
_ERROR: Final = "cache_error"
_NAMES: Final[dict[type, str]] = {
    bytes: _SUCCESS,
    KeyNotFoundError: "cache_not_found",
    KeyAlreadyExistsError: "cache_duplicate",
}


class CountedCache:
    """A cache whose operations are counted, as Benthos's `cache_*` metrics have them.

    It also turns what a cache breaks down on into a `CacheError`, so that one is all that callers
    need to expect.
    """

    def __init__(self, cache: Cache, component: ParsedComponent) -> None:
        """Take a cache, and where it stands in the config."""
        self.cache = cache
        self._labels = ComponentRef(component).fields

    def get(self, key: str, ex: Execution) -> bytes:
        """Return what is stored; see `Cache`."""
        return self._count_operation("get", lambda: self.cache.get(key, ex), ex)

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value; see `Cache`."""
        self._count_operation("set", lambda: self.cache.set(key, value, ttl, ex), ex)

    def set_many(self, items: Mapping[str, CacheItem], ex: Execution) -> None:
        """Store several values; as in Benthos, each is counted, with one latency for all."""
        self._count_operation("set", lambda: set_many(self.cache, items, ex), ex, len(items))

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a new key; see `Cache`."""
        self._count_operation("add", lambda: self.cache.add(key, value, ttl, ex), ex)

    def delete(self, key: str, ex: Execution) -> None:
        """Remove a key; see `Cache`."""
        self._count_operation("delete", lambda: self.cache.delete(key, ex), ex)

    def call_many(self, calls: Sequence[CacheCall], ex: Execution) -> list[CallOutcome]:
        """Make calls in order, at once where the cache can; each is counted."""
        if not isinstance(self.cache, _BatchCache):
            return [self._call_counted(call, ex) for call in calls]
        began = ex.elapsed()
        outcomes = call_many(self.cache, calls, ex)
        took = (ex.elapsed() - began) // (len(calls) or 1)
        for call, outcome in zip(calls, outcomes, strict=True):
            self._report(call.operation, _NAMES.get(type(outcome), _ERROR), took, ex)
        return outcomes

    def _call_counted(self, call: CacheCall, ex: Execution) -> CallOutcome:
        try:
            return self._count_operation(
                call.operation, lambda: make_call(self.cache, call, ex), ex
            )
        except CacheError as error:
            return error

    def _count_operation(
        self, operation: str, call: Callable[[], T], ex: Execution, values: int = 1
    ) -> T:
        outcome, began = _ERROR, ex.elapsed()
        try:
            result = call()
            outcome = _SUCCESS
            return result
        except CacheError as error:
            outcome = _NAMES.get(type(error), _ERROR)
            raise
        except MemoryError:
            raise
        except Exception as error:
            raise CacheError(str(error) or type(error).__name__) from error
        finally:
            self._report(operation, outcome, ex.elapsed() - began, ex, values)

    def _report(
        self, operation: str, outcome: str, took: int, ex: Execution, values: int = 1
    ) -> None:
        labels = {"operation": operation, **self._labels}
        ex.count(outcome, values, **labels)
        ex.custom_metrics.add_time("cache_latency_ns", labels, took)
