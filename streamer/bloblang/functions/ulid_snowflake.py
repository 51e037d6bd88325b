"""Functions that make ids which sort by time: ULIDs and Snowflake ids.

The rules are those of the ULID specification and of Twitter's Snowflake with its own epoch.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from typing import Final

from streamer.bloblang.declare import CONNECT, Example, Param, declare
from streamer.bloblang.errors import ArgumentError
from streamer.core.execution import Execution

_CATEGORY = "General"
_NS_PER_MS: Final = 1_000_000

_RANDOM_BITS: Final = 80
_RANDOM_SOURCES: Final = ("secure_random", "fast_random")
_ENCODINGS: Final = ("crockford", "hex")


class _MonotonicRandom:
    """Randomness that grows within one millisecond, so that ULIDs of one process stay sorted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._milliseconds = -1
        self._value = 0
        self._pid = 0

    def next(self, milliseconds: int) -> int:
        """Return 80 bits: fresh ones in a new millisecond (or process), else a bit more."""
        with self._lock:
            grown = self._value + random.getrandbits(32) + 1
            same = self._milliseconds == milliseconds and self._pid == os.getpid()
            if not same or grown >> _RANDOM_BITS:
                grown = random.SystemRandom().getrandbits(_RANDOM_BITS)
            self._milliseconds, self._value, self._pid = milliseconds, grown, os.getpid()
            return grown


_MONOTONIC_RANDOM: Final = _MonotonicRandom()


@declare(
    "ulid",
    _CATEGORY,
    Param("encoding", "string", default="crockford"),
    Param("random_source", "string", default="secure_random"),
    examples=(
        Example("root = ulid().length()", "{}", "26"),
        Example('root = ulid("hex", "fast_random").length()', "{}", "32"),
        Example("root = ulid(this.a).catch(e -> e)", '{"a":"x"}', "invalid ulid encoding: x"),
    ),
    needs=("ex",),
    uses=("now", "random"),
    binds=True,
    own_errors=True,
    origin=CONNECT,
)
def ulid(encoding: str, random_source: str) -> Callable[[Execution], str]:
    """A random id that sorts by time: 26 characters of Crockford's base 32, or 32 hex digits."""
    if encoding not in _ENCODINGS:
        raise ArgumentError(f"invalid ulid encoding: {encoding}")
    if random_source not in _RANDOM_SOURCES:
        raise ArgumentError(f"invalid randomness source: {random_source}")

    def make(ex: Execution) -> str:
        from ulid import ULID

        milliseconds = ex.now() // _NS_PER_MS
        if random_source == "fast_random":
            tail = _MONOTONIC_RANDOM.next(milliseconds).to_bytes(_RANDOM_BITS // 8, "big")
        else:
            tail = os.urandom(_RANDOM_BITS // 8)
        raw = milliseconds.to_bytes(6, "big") + tail
        return raw.hex() if encoding == "hex" else str(ULID(raw))

    return make


_EPOCH: Final = 1_288_834_974_657  # Snowflake's first millisecond: 2010-11-04T01:42:54.657Z
_NODE_MAX: Final = (1 << 10) - 1
_STEP_MAX: Final = (1 << 12) - 1


class _SnowflakeNode:
    """One node's ids: 41 bits of milliseconds, 10 of the node, 12 that count within one."""

    def __init__(self, number: int) -> None:
        self._lock = threading.Lock()
        self._number = number
        self._at = -1
        self._step = 0

    def next(self, milliseconds: int) -> int:
        """Return an id greater than all before, also when the clock stands still or goes back."""
        with self._lock:
            if milliseconds > self._at:
                self._at, self._step = milliseconds, 0
            elif self._step < _STEP_MAX:
                self._step += 1
            else:
                # The millisecond is used up: its successor is taken early, not waited for.
                self._at, self._step = self._at + 1, 0
            return (self._at - _EPOCH) << 22 | self._number << 12 | self._step


# By node, for the whole process: two calls with one node id must not give the same id.
_NODES: Final[dict[int, _SnowflakeNode]] = {}


@declare(
    "snowflake_id",
    _CATEGORY,
    Param("node_id", "integer", default=1),
    examples=(
        Example("root = snowflake_id(7).number() > snowflake_id(7).number()", "{}", "false"),
        Example("root = snowflake_id(7).type()", "{}", "string"),
    ),
    needs=("ex",),
    uses=("now", "random"),
    binds=True,
    own_errors=True,
    origin=CONNECT,
)
def snowflake_id(node_id: int) -> Callable[[Execution], str]:
    """A 64-bit id that sorts by time, as text; each process should have a node of 0 to 1023."""
    if not 0 <= node_id <= _NODE_MAX:
        raise ArgumentError(f"Node number must be between 0 and {_NODE_MAX}")
    node = _NODES.setdefault(node_id, _SnowflakeNode(node_id))
    return lambda ex: str(node.next(ex.now() // _NS_PER_MS))
