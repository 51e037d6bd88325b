"""How long a stream's outputs want messages to be collected before they are sent."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.pipeline.batching import BATCHING, PERIOD
from streamer.plan.resources import Resources, resolved
from streamer.spec import Kind, Parsed, ParsedComponent
from streamer.spec.inside import inside


def period_of(output: ParsedComponent, resources: Resources) -> int:
    """Return the longest `batching.period` of an output and of those inside of it, ns; 0 for none.

    A batch is closed at the end of a micro-batch at the latest, so that is how long one is to be.
    """
    return max(_periods(resolved(output, resources), resources, ()), default=0)


def _periods(output: ParsedComponent, resources: Resources, way: tuple[str, ...]) -> Iterator[int]:
    batching = output.config.get(BATCHING) if isinstance(output.config, Parsed) else None
    if isinstance(batching, Parsed) and batching[PERIOD]:
        yield batching[PERIOD]
    for child in inside(output):
        # A reference that leads back to itself is told elsewhere.
        if child.kind == Kind.OUTPUT and child.path not in way:
            yield from _periods(resolved(child, resources), resources, (*way, child.path))
