"""`lru`: a fixed number of values in memory; the least used go.

"Stores key/value pairs in a lru in-memory cache. This cache is therefore reset every time the
service restarts." Values have no time: only new ones push them out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from streamer.core.execution import Execution
from streamer.sdk.cache import KeyNotFoundError
from streamer.sdk.cache.eviction import (
    AdaptiveReplacement,
    EvictingMap,
    LeastRecentlyUsed,
    TwoQueues,
)
from streamer.sdk.cache.optimistic import OPTIMISTIC, OPTIMISTIC_FIELD, InMemoryCache
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec

CAP: Final = "cap"
INIT_VALUES: Final = "init_values"
ALGORITHM: Final = "algorithm"
RECENT_RATIO: Final = "two_queues_recent_ratio"
GHOST_RATIO: Final = "two_queues_ghost_ratio"


def _check(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    if parsed[CAP] <= 0:
        yield CAP, "invalid lru cache parameter capacity: must be bigger than 0"
    if parsed[ALGORITHM] != "two_queues":
        return
    for name in (RECENT_RATIO, GHOST_RATIO):
        if not 0 <= parsed[name] <= 1:
            yield name, f"is {parsed[name]}; expected a ratio from 0 to 1"
    if 0 <= parsed[GHOST_RATIO] <= 1 and int(parsed[CAP] * parsed[GHOST_RATIO]) < 1:
        yield GHOST_RATIO, f"leaves no room for a key at a cap of {parsed[CAP]}; choose more"


SPEC: Final = Spec(
    Kind.CACHE,
    "lru",
    "Keeps a fixed number of values in memory; the least used go.",
    description=(
        "On a local master all workers share it, and it ends with the program. On a cluster every "
        "worker process has one of its own, which ends with it; use `redis` there. Values have no "
        "time: a `ttl` that is given with one has no effect."
    ),
    fields=(
        Field(CAP, "int", "The most values there may be.", default=1000),
        Field(
            INIT_VALUES,
            "string",
            "Values by key that are there from the start.",
            default={},
            shape="map",
            examples=({"Nickelback": "1995", "Spice Girls": "1994"},),
        ),
        Field(
            ALGORITHM,
            "string",
            "Which values go: `standard` for those not used for longest, `two_queues` to keep "
            "often used ones apart from those used once, `arc` to find the border by itself.",
            default="standard",
            options=("arc", "standard", "two_queues"),
            advanced=True,
        ),
        Field(
            RECENT_RATIO,
            "float",
            "With `two_queues`: the part of the cache for values that were used once.",
            default=0.25,
            optional=True,
            advanced=True,
        ),
        Field(
            GHOST_RATIO,
            "float",
            "With `two_queues`: how many keys of values that went are remembered, as a part of "
            "`cap`.",
            default=0.5,
            optional=True,
            advanced=True,
        ),
        OPTIMISTIC_FIELD,
    ),
    examples=(
        Example(
            "A small table",
            "cache_resources:\n"
            "  - label: bands\n"
            "    lru:\n"
            "      cap: 1024\n"
            "      init_values:\n"
            "        foo: bar\n",
        ),
    ),
    check=_check,
    in_memory=True,
    categories=("Local",),
    delivery="ends with the program; a replayed micro-batch finds what it has stored",
    limits="one for all workers on a local master, one for each on a cluster",
)


class LruCache(InMemoryCache):
    """Values of which the least used go."""

    def __init__(self, values: EvictingMap[bytes], *, optimistic: bool = False) -> None:
        """Take what keeps the values; `optimistic` as the field."""
        super().__init__(optimistic=optimistic)
        self._values = values

    def get(self, key: str, ex: Execution) -> bytes:
        """Return the value of a key, and count it as used."""
        with self._lock:
            value = self._values.get(key)
        if value is None:
            raise KeyNotFoundError
        return value

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value; another one may go."""
        with self._lock:
            self._values.put(key, value)

    def delete(self, key: str, ex: Execution) -> None:
        """Forget a key."""
        with self._lock:
            self._values.remove(key)

    def _has_key(self, key: str, ex: Execution) -> bool:
        return self._values.peek(key) is not None


def _make_values(parsed: ParsedFields) -> EvictingMap[bytes]:
    if parsed[ALGORITHM] == "arc":
        return AdaptiveReplacement(parsed[CAP])
    if parsed[ALGORITHM] == "two_queues":
        return TwoQueues(parsed[CAP], parsed[RECENT_RATIO], parsed[GHOST_RATIO])
    return LeastRecentlyUsed(parsed[CAP])


def build(parsed: ParsedFields, context: BuildContext) -> LruCache:
    """Make the cache with the values of the config."""
    values = _make_values(parsed)
    for key, value in parsed[INIT_VALUES].items():
        values.put(key, value.encode(errors="surrogateescape"))
    return LruCache(values, optimistic=parsed[OPTIMISTIC])
