"""The longest time for which a stream's outputs collect messages before they send."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.plan.component_lookup import resolve_resource
from streamer.sdk.processing.batching import BATCHING, PERIOD
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import child_components
from streamer.sdk.spec.component import Resources


def longest_batching_period(output: ParsedComponent, resources: Resources) -> int:
    """Return the longest `batching.period` of an output and of those inside of it, ns; 0 for none.

    A batch is closed at the end of a micro-batch at the latest, so that is how long one is to be.
    """
    return max(_walk_periods(resolve_resource(output, resources), resources, ()), default=0)


def _walk_periods(
    output: ParsedComponent, resources: Resources, visited: tuple[str, ...]
) -> Iterator[int]:
    batching = output.config.get(BATCHING) if isinstance(output.config, ParsedFields) else None
    if isinstance(batching, ParsedFields) and batching[PERIOD]:
        yield batching[PERIOD]
    for child in child_components(output):
        # A reference that leads back to itself is told elsewhere.
        if child.kind == Kind.OUTPUT and child.path not in visited:
            yield from _walk_periods(
                resolve_resource(child, resources), resources, (*visited, child.path)
            )
