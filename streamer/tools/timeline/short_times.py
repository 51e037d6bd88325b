"""Times as short as they may be: without the date, when all are of one day."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from streamer.core.durations import SECOND
from streamer.core.timestamps import format_rfc3339
from streamer.tools.timeline.model import Timeline


@dataclass(frozen=True)
class ShortTimes:
    """Writes times.

    Attributes:
        date: the day of all times; empty when there are several.
        digits: decimals of a second.
    """

    date: str
    digits: int

    @classmethod
    def for_timeline(cls, timeline: Timeline) -> ShortTimes:
        """Choose the digits that all times of a timeline need."""
        times = [*collect_times(timeline)]
        days = {format_rfc3339(at)[:10] for at in times}
        fractions = [f"{at % SECOND:09d}".rstrip("0") for at in times]
        digits = max(map(len, fractions), default=0)
        return cls(days.pop() if len(days) == 1 else "", -(-digits // 3) * 3)

    def format_full(self, at: int) -> str:
        """Return a time, all of them with as many digits."""
        whole = format_rfc3339(at - at % SECOND).removesuffix("Z")
        text = whole[11:] if self.date else whole.replace("T", " ")
        return f"{text}.{at % SECOND:09d}"[: len(text) + 1 + self.digits].rstrip(".")

    def format_short(self, at: int) -> str:
        """Return a time with no more digits than it needs."""
        text = self.format_full(at)
        return text.rstrip("0").rstrip(".") if "." in text else text

    def strip_date(self, text: str) -> str:
        """Take the date out of the times in a text."""
        return text.replace(f"{self.date}T", "").replace("Z", "") if self.date else text


def collect_times(timeline: Timeline) -> Iterable[int]:
    """Return all times that a picture of a timeline shows."""
    for event in timeline.events:
        yield event.arrived
        if event.time is not None:
            yield event.time
    for span in timeline.spans:
        yield from (at for at in (span.start, span.end, span.due, span.closed) if at is not None)
    yield timeline.ended
