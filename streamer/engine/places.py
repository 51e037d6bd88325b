"""Where the ends of a stream stand, as the labels of their metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from streamer.failure import Origin
from streamer.plan import Plan

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Places:
    """The labels of what the driver counts and times.

    Attributes:
        input: the input's.
        buffer: the buffer's; None when there is none.
        outputs: those of what the driver writes, by number.
    """

    input: Labels
    buffer: Labels | None
    outputs: tuple[Labels, ...]

    @property
    def state(self) -> Labels:
        """Return the labels of the component whose state fills a checkpoint."""
        return self.input if self.buffer is None else self.buffer

    @classmethod
    def of(cls, plan: Plan) -> Places:
        """Return those of a plan."""
        return cls(
            Origin(plan.input).fields,
            None if plan.buffer.name == "none" else Origin(plan.buffer).fields,
            tuple(Origin(output).fields for output in plan.written),
        )


NOWHERE: Final = Places({}, None, ())
"""For a delivery of which nobody asks."""
