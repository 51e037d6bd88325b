"""What goes into an oracle and what comes out of it. All times are integers: ns since 1970."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal


class Mark(Enum):
    """Stands where a JSON value would stand: no value is equal to one of these."""

    KEY_FAILS = "the key mapping fails"
    NO_KEY = "the windows have no key"


KEY_FAILS = Mark.KEY_FAILS
NO_KEY = Mark.NO_KEY


@dataclass(frozen=True)
class Event:
    """A message: its name is its own; `time` is None where the timestamp fails, "now" for now().

    `gap` is what it brings to its session; None for the usual one, "none" where the mapping fails.
    `begins` and `emits` are the conditions of its window.
    """

    id: str
    time: int | Literal["now"] | None
    key: object = None
    partition: int = 0
    failed: bool = False
    filter: bool | Literal["error"] = True
    side: Literal["left", "right"] = "left"
    gap: int | Literal["none"] | None = None
    begins: bool | Literal["error"] = False
    emits: bool | Literal["error"] = False


@dataclass(frozen=True)
class MicroBatch:
    """Events in the order of their arrival, at the recorded time `t`.

    Attributes:
        restarted: the program has been started since the last micro-batch.
        backlog: the first backlog after a start is being worked off.
        lag: the input is behind, later.
        ended: the bounded input has ended with this micro-batch.
        stood: how much of the time since the last micro-batch the machine was suspended, or its
            clock was set forward by.
    """

    t: int
    events: tuple[Event, ...] = ()
    restarted: bool = False
    backlog: bool = False
    lag: bool = False
    ended: bool = False
    stood: int = 0


@dataclass(frozen=True)
class Emitted:
    """One batch: why, the ids in arrival order, the key as message 0 spells it, and the bounds."""

    reason: str
    ids: tuple[str, ...]
    key: object = NO_KEY
    start: int | None = None
    end: int | None = None
    latest: int | None = None

    @property
    def window_key(self) -> str | None:
        if self.key is NO_KEY:
            return None
        if isinstance(self.key, str):
            return self.key
        return json.dumps(self.key, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@dataclass
class Out:
    """What one micro-batch gives: the failed ones go ahead of the batches."""

    failed: list[str] = field(default_factory=list)
    filtered: list[str] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    batches: list[Emitted] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)


def same(key: object) -> Hashable:
    """What two keys have in common exactly when they are equal as JSON values."""
    match key:
        case bool():
            return "bool", key
        case int() | float():
            return "number", key  # Python finds 1 and 1.0 equal, and compares exactly
        case list():
            return "array", tuple(same(item) for item in key)
        case dict():
            return "object", frozenset((name, same(value)) for name, value in key.items())
        case str():
            return "string", key
        case None:
            return "null"
    return key if isinstance(key, Mark) else f"not JSON: {key!r}"
