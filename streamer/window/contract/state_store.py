"""State of a shard: a small mapping, so that Spark's store and a dict look the same."""

from __future__ import annotations

from typing import Protocol


class StateStore(Protocol):
    """Values by (pane, seq). In Spark each call is a round trip to the JVM: call seldom.

    Packs have a seq >= 0; negative ones are the index's own.
    """

    def get(self, pane: int, seq: int) -> bytes | None:
        """Return the value, or None."""

    def put(self, pane: int, seq: int, value: bytes) -> None:
        """Store a value, replacing what was there."""

    def delete(self, pane: int, seq: int) -> None:
        """Remove a value; it is there."""


class DictStore:
    """A store in memory, for tests and for windows on a scripted clock.

    Attributes:
        values: what it holds.
        calls: how often it was called.
    """

    def __init__(self) -> None:
        self.values: dict[tuple[int, int], bytes] = {}
        self.calls = 0

    def get(self, pane: int, seq: int) -> bytes | None:
        """Return the value, or None."""
        self.calls += 1
        return self.values.get((pane, seq))

    def put(self, pane: int, seq: int, value: bytes) -> None:
        """Store a value, replacing what was there."""
        self.calls += 1
        self.values[pane, seq] = value

    def delete(self, pane: int, seq: int) -> None:
        """Remove a value; it is there."""
        self.calls += 1
        del self.values[pane, seq]
