"""`memory`: values in memory, for a time.

"Stores key/value pairs in a map held in memory. This cache is therefore reset every time the
service restarts. Each item in the cache has a TTL set from the moment it was last edited, after
which it will be removed during the next compaction." A compaction happens on a write, and a key
whose time is over still counts as existing for `add` until then, as in Benthos.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from streamer.core.execution import Execution
from streamer.sdk.cache import KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.spec import BuildContext, Example, Field, Kind, ParsedFields, Spec, duration_field

DEFAULT_TTL: Final = "default_ttl"
COMPACTION_INTERVAL: Final = "compaction_interval"
INIT_VALUES: Final = "init_values"
SHARDS: Final = "shards"

SPEC: Final = Spec(
    Kind.CACHE,
    "memory",
    "Keeps values in memory, each for a time.",
    description=(
        "On a local master all workers share it, and it ends with the program. On a cluster every "
        "worker process has one of its own, which ends with it; use `redis` there. Values that are "
        "too old are removed at a write, when `compaction_interval` has passed since the last "
        "time; until then `add` still finds their keys, though `get` does not."
    ),
    fields=(
        duration_field(DEFAULT_TTL, "Default lifetime of a value.", default="5m"),
        duration_field(
            COMPACTION_INTERVAL,
            "Interval between removals of expired values; empty to keep all for ever.",
            default="60s",
        ),
        Field(
            INIT_VALUES,
            "string",
            "Values by key that are there from the start, and stay until they are overwritten.",
            default={},
            shape="map",
            examples=({"Nickelback": "1995", "Spice Girls": "1994"},),
        ),
        Field(
            SHARDS,
            "int",
            "Into how many parts keys are spread, each with a lock of its own.",
            default=1,
            advanced=True,
        ),
    ),
    examples=(
        Example(
            "A table to look things up in",
            "cache_resources:\n"
            "  - label: bands\n"
            "    memory:\n"
            "      default_ttl: 60s\n"
            "      init_values:\n"
            "        foo: bar\n",
        ),
    ),
    in_memory=True,
    categories=("Local",),
    delivery="ends with the program; a replayed micro-batch finds what it has stored",
    limits="one for all workers on a local master, one for each on a cluster",
)


class _Shard:
    """The values of some keys, each with the time at which it ends, Unix ns; 0 for never."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.items: dict[str, tuple[bytes, int]] = {}
        self.compacted: int | None = None


class MemoryCache:
    """Values with a time, in dicts."""

    def __init__(
        self, ttl: int, compaction: int, values: Mapping[str, str], shards: int = 1
    ) -> None:
        """Begin with some values.

        Args:
            ttl: how long a value is kept, nanoseconds.
            compaction: the time between two removals of old values, nanoseconds; 0 for never.
            values: what is there from the start.
            shards: the number of parts.
        """
        self._ttl = ttl
        self._compaction = compaction
        self._shards = [_Shard() for _ in range(max(shards, 1))]
        for key, value in values.items():
            self._shard_of(key).items[key] = (value.encode(errors="surrogateescape"), 0)

    def get(self, key: str, ex: Execution) -> bytes:
        """Return the value of a key whose time is not over."""
        entry = self._shard_of(key).items.get(key)
        if entry is None or self._is_expired(entry[1], ex.now()):
            raise KeyNotFoundError
        return entry[0]

    def set(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value; its time begins now."""
        part, now = self._shard_of(key), ex.now()
        with part.lock:
            self._compact(part, now)
            part.items[key] = (value, now + (self._ttl if ttl is None else ttl))

    def add(self, key: str, value: bytes, ttl: int | None, ex: Execution) -> None:
        """Store a value under a key that has none, not even one that is over."""
        part, now = self._shard_of(key), ex.now()
        with part.lock:
            if key in part.items:
                raise KeyAlreadyExistsError
            self._compact(part, now)
            part.items[key] = (value, now + (self._ttl if ttl is None else ttl))

    def delete(self, key: str, ex: Execution) -> None:
        """Forget a key."""
        part = self._shard_of(key)
        with part.lock:
            self._compact(part, ex.now())
            part.items.pop(key, None)

    def _shard_of(self, key: str) -> _Shard:
        return (
            self._shards[hash(key) % len(self._shards)]
            if len(self._shards) > 1
            else self._shards[0]
        )

    def _is_expired(self, end: int, now: int) -> bool:
        return self._compaction > 0 and end != 0 and end < now

    def _compact(self, part: _Shard, now: int) -> None:
        if part.compacted is None:
            part.compacted = now
        if self._compaction <= 0 or now - part.compacted < self._compaction:
            return
        over = [key for key, (_, end) in part.items.items() if self._is_expired(end, now)]
        for key in over:
            del part.items[key]
        part.compacted = now


def build(parsed: ParsedFields, context: BuildContext) -> MemoryCache:
    """Make the cache with the values of the config."""
    return MemoryCache(
        parsed[DEFAULT_TTL] or 0,
        parsed[COMPACTION_INTERVAL] or 0,
        parsed[INIT_VALUES],
        parsed[SHARDS],
    )
