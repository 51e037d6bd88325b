"""Times as short as they may be: without the date, when all are of one day."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from streamer.durations import SECOND
from streamer.timeline.model import Timeline
from streamer.timestamps import format_rfc3339


@dataclass(frozen=True)
class Moments:
    """Writes times.

    Attributes:
        date: the day of all times; empty when there are several.
        digits: decimals of a second.
    """

    date: str
    digits: int

    @classmethod
    def of(cls, timeline: Timeline) -> Moments:
        """Look at all times of a timeline."""
        found = [*times_of(timeline)]
        days = {format_rfc3339(at)[:10] for at in found}
        fractions = [f"{at % SECOND:09d}".rstrip("0") for at in found]
        digits = max(map(len, fractions), default=0)
        return cls(days.pop() if len(days) == 1 else "", -(-digits // 3) * 3)

    def text(self, at: int) -> str:
        """Return a time, all of them with as many digits."""
        whole = format_rfc3339(at - at % SECOND).removesuffix("Z")
        shown = whole[11:] if self.date else whole.replace("T", " ")
        return f"{shown}.{at % SECOND:09d}"[: len(shown) + 1 + self.digits].rstrip(".")

    def short(self, at: int) -> str:
        """Return a time with no more digits than it needs."""
        text = self.text(at)
        return text.rstrip("0").rstrip(".") if "." in text else text

    def within(self, text: str) -> str:
        """Take the date out of the times in a text."""
        return text.replace(f"{self.date}T", "").replace("Z", "") if self.date else text


def times_of(timeline: Timeline) -> Iterable[int]:
    """Return all times that a picture of a timeline shows."""
    for event in timeline.events:
        yield event.arrived
        if event.time is not None:
            yield event.time
    for span in timeline.spans:
        yield from (at for at in (span.start, span.end, span.due, span.closed) if at is not None)
    yield timeline.ended
