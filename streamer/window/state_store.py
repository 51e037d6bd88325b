"""State of a shard as its caller keeps it: a mapping of bytes, values as JSON, versions."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final, Protocol

import orjson

from streamer.core.errors import StreamerError


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


_LENIENT_MARK: Final = b" "
"""It tells what strict JSON lacks: integers beyond 64 bits would be read as floats without it."""


def dump_state_json(value: Any) -> bytes:
    """Write a value made of lists, maps, texts, numbers, booleans and null."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _LENIENT_MARK + json.dumps(value, separators=(",", ":")).encode()


def load_state_json(data: bytes) -> Any:
    """Read what `dump_state_json` wrote."""
    if data.startswith(_LENIENT_MARK):
        return json.loads(data)
    try:
        return orjson.loads(data)
    except ValueError:  # a checkpoint may still hold odd values that nothing tells
        return json.loads(data)


def check_format(
    what: str, version: int, known: Collection[int], error: type[StreamerError] = StreamerError
) -> None:
    """Refuse a format that this program cannot read.

    Args:
        what: has the format, in words.
        version: the format.
        known: those that can be read.
        error: what is raised.

    Raises:
        StreamerError: it is none of these; says whether a newer program wrote it.
    """
    if version in known:
        return
    newest = max(known)
    wrote = "a newer streamer wrote" if version > newest else "no streamer writes"
    raise error(
        f"{what} has format {version}, which {wrote}: this program reads formats up to {newest}; "
        "run the version of streamer that wrote the checkpoint, or start from another one"
    )
