"""What a timeline holds: messages, windows, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from streamer.window import SystemWindow


@dataclass
class Event:
    """A message, and what became of it.

    Attributes:
        number: its place in the sample, from 1.
        text: its payload.
        arrived: the clock when it arrived, ns.
        time: its event time, ns; None when it has none.
        windows: the ends of the windows that it was emitted in, ns.
        waiting: the ends of the windows that still hold it, ns.
        dropped: why it was dropped (`late`, `timestamp`, `expired`, `input.processors`), or empty.
        why: the same in words.
        failed: the error that it was marked with when it passed by the windows, or empty.
    """

    number: int
    text: str
    arrived: int
    time: int | None = None
    windows: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    dropped: str = ""
    why: str = ""
    failed: str = ""


@dataclass
class Span:
    """A window that held messages.

    Attributes:
        start: ns, exclusive.
        end: ns, inclusive.
        due: when it closes by its rule, ns.
        closed: the clock when it did, ns; None when it is open still.
        numbers: its messages, in order of arrival.
    """

    start: int
    end: int
    due: int
    closed: int | None = None
    numbers: list[int] = field(default_factory=list)


@dataclass
class Timeline:
    """What happened.

    Attributes:
        name: the stream's name.
        window: the windows' settings.
        events: the messages, in order of arrival.
        spans: the windows that held messages, oldest first.
        ended: the clock at the end, ns.
    """

    name: str
    window: SystemWindow
    events: list[Event]
    spans: list[Span]
    ended: int


def numbers(found: Iterable[int]) -> str:
    """Return message numbers in short: `#1-#3, #7`."""
    runs: list[list[int]] = []
    for number in sorted(found):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"#{a}" if a == b else f"#{a}-#{b}" for a, b in runs)
