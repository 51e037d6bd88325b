"""`ttlru`: a fixed number of values in memory, each for a time.

"The cache ttlru provides a simple, goroutine safe, cache with a fixed number of entries. Each entry
has a per-cache defined TTL." A value's time begins when it is written; when there are too many, the
one goes that was not used for longest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from streamer.core.execution import Execution
from streamer.sdk.cache import KeyNotFoundError
from streamer.sdk.cache.eviction import LeastRecentlyUsed
from streamer.sdk.cache.optimistic import OPTIMISTIC, OPTIMISTIC_FIELD, InMemoryCache
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec, duration_field

CAP: Final = "cap"
DEFAULT_TTL: Final = "default_ttl"
TTL: Final = "ttl"
INIT_VALUES: Final = "init_values"


def _check(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    if parsed[CAP] <= 0:
        yield CAP, "invalid ttlru cache parameter capacity: must be bigger than 0"
    if _ttl(parsed) <= 0:
        name = DEFAULT_TTL if parsed[TTL] is None else TTL
        yield name, "invalid ttlru cache parameter default_ttl: must be bigger than 0s"


def _ttl(parsed: ParsedFields) -> int:
    ttl: int | None = parsed[DEFAULT_TTL] if parsed[TTL] is None else parsed[TTL]
    return ttl or 0


SPEC: Final = Spec(
    Kind.CACHE,
    "ttlru",
    "Keeps a fixed number of values in memory, each for a time.",
    description=(
        "On a local master all workers share it, and it ends with the program. On a cluster every "
        "worker process has one of its own, which ends with it; use `redis` there. All values have "
        "the same time: a `ttl` that is given with one has no effect."
    ),
    fields=(
        Field(CAP, "int", "The most values there may be.", default=1024),
        duration_field(DEFAULT_TTL, "Lifetime of a value after it was written.", default="5m0s"),
        duration_field(
            TTL,
            "The old name of `default_ttl`, which it overrides.",
            optional=True,
            advanced=True,
            deprecated=True,
        ),
        Field(
            INIT_VALUES,
            "string",
            "Values by key that are there from the start; they have the same time as others.",
            default={},
            shape="map",
            examples=({"Nickelback": "1995", "Spice Girls": "1994"},),
        ),
        OPTIMISTIC_FIELD,
    ),
    check=_check,
    in_memory=True,
    categories=("Local",),
    delivery="ends with the program; a replayed micro-batch finds what it has stored",
    limits="one for all workers on a local master, one for each on a cluster",
)


class TtlruCache(InMemoryCache):
    """Values with a time, of which those not used for longest go."""

    def __init__(self, cap: int, ttl: int, *, optimistic: bool = False) -> None:
        """Begin empty; `ttl` in nanoseconds."""
        super().__init__(optimistic=optimistic)
        self._values: LeastRecentlyUsed[tuple[bytes, int]] = LeastRecentlyUsed(cap)
        self._ends: OrderedDict[str, int] = OrderedDict()
        self._preloaded: dict[str, bytes] = {}
        self._cap = cap
        self._ttl = ttl

    def preload(self, key: str, value: bytes) -> None:
        """Store a value before there is a clock; its time begins at the first use of the cache."""
        self._preloaded[key] = value

    def get(self, key: str, ex: Execution) -> bytes:
        """Return the value of a key, and count it as used."""
        with self._lock:
            self._drop_expired(ex.now())
            value = self._values.get(key)
        if value is None:
            raise KeyNotFoundError
        return value[0]

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value; its time begins now, and another one may go."""
        with self._lock:
            now = ex.now()
            self._drop_expired(now)
            self._put(key, value, now)

    def delete(self, key: str, ex: Execution) -> None:
        """Forget a key."""
        with self._lock:
            self._drop_expired(ex.now())
            self._forget(key)

    def _has_key(self, key: str, ex: Execution) -> bool:
        self._drop_expired(ex.now())
        return self._values.peek(key) is not None

    def _put(self, key: str, value: bytes, now: int) -> None:
        if key not in self._values and len(self._values) >= self._cap:
            oldest, _ = self._values.evict_oldest()
            del self._ends[oldest]
        end = now + self._ttl
        self._values.put(key, (value, end))
        self._ends[key] = end
        self._ends.move_to_end(key)

    def _forget(self, key: str) -> None:
        self._values.remove(key)
        self._ends.pop(key, None)

    def _drop_expired(self, now: int) -> None:
        """Remove values whose time is over: they stand first, since all have the same time."""
        for key, value in self._preloaded.items():
            self._put(key, value, now)
        self._preloaded.clear()
        while self._ends:
            key, end = next(iter(self._ends.items()))
            if end >= now:
                return
            self._forget(key)


def build(parsed: ParsedFields, context: BuildContext) -> TtlruCache:
    """Make the cache with the values of the config."""
    cache = TtlruCache(parsed[CAP], _ttl(parsed), optimistic=parsed[OPTIMISTIC])
    for key, value in parsed[INIT_VALUES].items():
        cache.preload(key, value.encode(errors="surrogateescape"))
    return cache
