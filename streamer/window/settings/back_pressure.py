"""Back pressure: when a stream's own processors and outputs had its last micro-batch in hand.

Time for which a micro-batch waited for anything else is none: a start, a free core, a neighbour, a
replay, a machine that stood still. Nor is the size of a step of the machine's clock.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from streamer.core.durations import SECOND, format_duration

Interval = tuple[int, int]
"""From when to when, in the time of the micro-batches, ns."""


class BackPressure(NamedTuple):
    """Work of the stream itself in the micro-batch before this one.

    Attributes:
        busy: when its processors and outputs were at work since its time; in order, apart.
        processors: how long the processors took, ns.
        outputs: how long the outputs took, waits between their tries included, ns.
    """

    busy: tuple[Interval, ...]
    processors: int
    outputs: int

    def overdue_since(self, limit: int) -> int | None:
        """Return the time before which what was due has waited for longer than `limit`, ns.

        None when nothing has: the stream was not at work for so long.
        """
        left = limit
        for began, ended in reversed(self.busy):
            if ended - began > left:
                return ended - left
            left -= ended - began
        return None

    @property
    def cause(self) -> str:
        """The longer of the two: `processors` or `output`."""
        return "processors" if self.processors > self.outputs else "output"

    @property
    def reason(self) -> str:
        """The longer of the two, and its time, as a clause."""
        if self.cause == "processors":
            return f"the processors took {_format_rounded(self.processors)}"
        return f"the output was blocked for {_format_rounded(self.outputs)}"

    def to_fields(self) -> list[Any]:
        """Return the work as plain values."""
        return [self.busy, self.processors, self.outputs]

    @classmethod
    def from_fields(cls, fields: list[Any]) -> BackPressure:
        """Read what `to_fields` gave.

        Raises:
            ValueError: it is something else.
        """
        busy, processors, outputs = fields
        return cls(tuple((int(a), int(b)) for a, b in busy), int(processors), int(outputs))


def _format_rounded(ns: int) -> str:
    tenth = SECOND // 10
    return format_duration(ns // tenth * tenth)
