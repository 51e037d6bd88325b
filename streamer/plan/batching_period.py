"""The longest time for which a stream's inputs and outputs collect messages for a batch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from streamer.components.catalog import find_input_batching
from streamer.plan.component_lookup import leaf_inputs, resolve_resource
from streamer.sdk.processing.batching import BATCHING, PERIOD
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import child_components
from streamer.sdk.spec.component import Resources


def longest_batching_period(
    input: ParsedComponent, output: ParsedComponent, resources: Resources
) -> int:
    """Return the longest `batching.period` of an input, an output and those inside of them.

    A batch is closed at the end of a micro-batch at the latest, so that is how long one is to be.

    Args:
        input: the stream's; of what it reads on the driver the period is its own.
        output: the stream's.
        resources: of the config.

    Returns:
        ns; 0 for none.
    """
    ways = (_walk_inputs(input, resources), _walk_periods(output, resources))
    return max(chain.from_iterable(ways), default=0)


def _walk_inputs(input: ParsedComponent, resources: Resources) -> Iterator[int]:
    for one in leaf_inputs(input, resources):
        batching = find_input_batching(one)
        if batching is not None and batching[PERIOD]:
            yield batching[PERIOD]


def _walk_periods(
    output: ParsedComponent, resources: Resources, visited: tuple[str, ...] = ()
) -> Iterator[int]:
    output = resolve_resource(output, resources)
    batching = output.config.get(BATCHING) if isinstance(output.config, ParsedFields) else None
    if isinstance(batching, ParsedFields) and batching[PERIOD]:
        yield batching[PERIOD]
    for child in child_components(output):
        # A reference that leads back to itself is told elsewhere.
        if child.kind == Kind.OUTPUT and child.path not in visited:
            yield from _walk_periods(child, resources, (*visited, child.path))
