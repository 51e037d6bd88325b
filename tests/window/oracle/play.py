"""Short ways to say streams in the oracles' own tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from tests.window.oracle.events import Emitted, Event, MicroBatch, Out
from tests.window.oracle.hopping import Hopping, HoppingOracle

S = 10**9
MINUTE = 60 * S
HOUR = 60 * MINUTE


class Steps(Protocol):
    def step(self, batch: MicroBatch) -> Out: ...


def tumbling(size: int = 10, **fields: object) -> HoppingOracle:
    return HoppingOracle(Hopping(size=size, **fields))  # type: ignore[arg-type]


def events(text: str, **fields: object) -> tuple[Event, ...]:
    """Read "a1 b2 c-3": the event a at time 1, and so on."""
    return tuple(Event(word[0], int(word[1:]), **fields) for word in text.split())  # type: ignore[arg-type]


def one_by_one(oracle: Steps, stream: Iterable[Event], t: int = 0) -> list[Out]:
    """A micro-batch for every event."""
    return [oracle.step(MicroBatch(t, (event,))) for event in stream]


def at_once(oracle: Steps, stream: Iterable[Event], t: int = 0) -> Out:
    """One micro-batch for all events."""
    return oracle.step(MicroBatch(t, tuple(stream)))


def brief(batches: Iterable[Emitted]) -> list[str]:
    """Say batches as "final [0, 10] abc"."""
    return [f"{b.reason} [{b.start}, {b.end}] {''.join(b.ids)}" for b in batches]


def briefs(outs: Iterable[Out]) -> list[list[str]]:
    return [brief(out.batches) for out in outs]


def ends(oracle: Steps, t: int = 0) -> list[str]:
    """What comes out when the input ends."""
    return brief(oracle.step(MicroBatch(t, ended=True)).batches)
