"""Labels of the metrics of a stream's input, buffer and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from streamer.plan import Plan
from streamer.sdk.component_ref import ComponentRef

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EndpointLabels:
    """The labels of what the driver counts and times.

    Attributes:
        input: the input's.
        buffer: the buffer's; None when there is none.
        outputs: those of what the driver writes, by number.
        buffers: those of several buffers, by the buffer's label; empty for one buffer.
    """

    input: Labels
    buffer: Labels | None
    outputs: tuple[Labels, ...]
    buffers: Mapping[str, Labels] = field(default_factory=dict)

    @property
    def state(self) -> Labels:
        """Return the labels of the component whose state fills a checkpoint."""
        return self.input if self.buffer is None else self.buffer

    @classmethod
    def of(cls, plan: Plan) -> EndpointLabels:
        """Return those of a plan."""
        return cls(
            ComponentRef(plan.input).fields,
            None if plan.buffer.name == "none" else ComponentRef(plan.buffer).fields,
            tuple(ComponentRef(output).fields for output in plan.driver_outputs),
            {one.label: ComponentRef(one.component).fields for one in plan.buffers},
        )


NO_LABELS: Final = EndpointLabels({}, None, ())
"""For a delivery of which nobody asks."""
