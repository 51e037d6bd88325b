"""Model of a timeline: messages, windows, and their outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from streamer.window.settings.window import Window


@dataclass
class Event:
    """A message, and what became of it.

    Attributes:
        number: its place in the sample, from 1.
        text: its payload.
        arrived: the clock when it arrived, ns.
        time: its event time, ns; None when it has none.
        windows: the windows that it was emitted in.
        waiting: the windows that still hold it.
        dropped: why it was dropped (`late`, `timestamp`, …, `input.processors`), or empty.
        why: the same in words.
        failed: the error that it was marked with when it passed by the windows, or empty.
    """

    number: int
    text: str
    arrived: int
    time: int | None = None
    windows: list[WindowSpan] = field(default_factory=list)
    waiting: list[WindowSpan] = field(default_factory=list)
    dropped: str = ""
    why: str = ""
    failed: str = ""


@dataclass
class WindowSpan:
    """A window that held messages.

    Attributes:
        start: ns; None, as is the end, of a window that has no bounds.
        end: ns.
        due: when it closes by its rule, ns; None when that depends on the messages.
        closed: the clock when it was emitted last, ns; None when it is open still.
        numbers: its messages, in order of arrival.
        key: its key, as metadata has it; None without keys.
        is_cut: whether it closed only since the sample was cut, and so may lack messages.
        retracted: the clock when its newest result was taken back, ns; None when that holds.
    """

    start: int | None
    end: int | None
    due: int | None = None
    closed: int | None = None
    numbers: list[int] = field(default_factory=list)
    key: str | None = None
    is_cut: bool = False
    retracted: int | None = None


@dataclass
class Emission:
    """A batch that came out.

    Attributes:
        at: the clock when it did, ns.
        span: its window.
        numbers: its messages.
        reason: why it came, as metadata `window_emit` has it; empty where windows have none.
    """

    at: int
    span: WindowSpan
    numbers: list[int]
    reason: str = ""

    @property
    def is_early(self) -> bool:
        """Whether the end of the input closed the window before it was due."""
        due = self.span.due
        return self.reason == "flush" or (due is not None and self.at < due)


@dataclass
class Timeline:
    """An event of a timeline.

    Attributes:
        name: the stream's name.
        window: the windows' settings.
        events: the messages, in order of arrival.
        spans: the windows that held messages, oldest first.
        emissions: the batches of windows, in the order in which they came.
        ended: the clock at the end, ns.
        is_cut: whether there are more messages than these, so that windows that close as the input
            ends would stay open.
    """

    name: str
    window: Window
    events: list[Event]
    spans: list[WindowSpan]
    emissions: list[Emission]
    ended: int
    is_cut: bool = False

    def mark_cut(self) -> None:
        """Mark the timeline, and the windows that closed since the sample was cut."""
        self.is_cut = True
        last = max((event.arrived for event in self.events), default=self.ended)
        for emission in self.emissions:
            if emission.is_early or emission.at > last:
                emission.span.is_cut = True

    def redact(self, redactor: Callable[[str], str]) -> None:
        """Take out of all texts what must not be seen."""
        for event in self.events:
            event.text, event.why = redactor(event.text), redactor(event.why)
            event.failed = redactor(event.failed)
        for span in self.spans:
            span.key = None if span.key is None else redactor(span.key)


def format_numbers(message_numbers: Iterable[int]) -> str:
    """Return message numbers in short: `#1-#3, #7`."""
    runs: list[list[int]] = []
    for number in sorted(message_numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"#{a}" if a == b else f"#{a}-#{b}" for a, b in runs)
