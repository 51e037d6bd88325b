"""The metadata of an input's messages that anything in a stream can read.

What nothing reads need not be made: for every message of Kafka there would be nine entries. Only
components are looked into that are known to read metadata by their mappings and interpolations
alone; with any other one, all of it may be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from streamer.bloblang import compile_interpolation, compile_mapping
from streamer.bloblang.analysis.metadata_keys import find_metadata_keys as read_by
from streamer.components.catalog import find_input_batching, find_spec, makes_windows
from streamer.connectors.kafka.output.record import READ_TIME, TOMBSTONE
from streamer.plan.component_lookup import flatten_outputs
from streamer.plan.plan import Plan
from streamer.sdk.processing.batching import CHECK
from streamer.sdk.spec import Field, Kind, ParsedComponent
from streamer.sdk.spec.children import child_components
from streamer.window.pack.window_metadata import WINDOW_END

_KNOWN_PROCESSORS: Final = frozenset(
    (
        *("bloblang", "mapping", "mutation", "group_by", "group_by_value", "catch", "try"),
        *("switch", "for_each", "noop", "log", "metric", "split", "bounds_check", "sleep"),
        *("select_parts", "dedupe", "compress", "decompress", "jmespath", "parse_log", "xml"),
        *("grok", "resource", "processors", "schema_registry_decode", "schema_registry_encode"),
    )
)
_FILTERED_OUTPUTS: Final = frozenset(("kafka_franz", "redpanda", "redpanda_common"))
_KNOWN_OUTPUTS: Final = _FILTERED_OUTPUTS | {
    *("stdout", "file", "drop", "broker", "switch", "fallback", "retry", "resource")
}
_DECODERS: Final = frozenset(("schema_registry_decode", "grok", "xml", "parse_log", "decompress"))
"""Processors that fail on what they cannot decode, and cost far more than these metadata."""
_PLACE_METADATA: Final = frozenset(("kafka_topic", "kafka_partition", "kafka_offset"))
"""The place of a message, by which one that cannot be decoded is found again."""
_RECORD_METADATA: Final = frozenset((READ_TIME, TOMBSTONE))
_KNOWN_BUFFERS: Final = frozenset(("none", "memory"))

MetadataKeys = frozenset[str]
"""Names of metadata; None stands for all."""


def find_read_metadata(plan: Plan) -> MetadataKeys | None:
    """Return what a stream's components can read of its input's metadata; None for any of it."""
    if plan.retention is not None:
        return None  # results are kept with all that they have
    resources = [
        component
        for (kind, _), component in plan.resources.items()
        if kind in (Kind.PROCESSOR, Kind.OUTPUT, Kind.INPUT)
    ]
    early = list(_input_processors(plan.input))
    before = _union_keys([*early, *plan.all_buffers])
    batching = _batching_keys(plan.input)
    if before is None or batching is None:
        return None
    before |= batching
    after = _union_keys([*plan.all_processors, *plan.outputs, *resources])
    if after is None:
        return None
    after |= _implied_keys(plan)
    if plan.traced:
        before |= {"traceparent"}
    # A message that failed before the windows passes them by, and one that is late leaves without.
    late_outputs = [one.late_output for one in plan.buffers] or [plan.late_output]
    if plan.window is not None and late_outputs == [None] * len(late_outputs) and not early:
        after -= {WINDOW_END}
    return before | after


def _implied_keys(plan: Plan) -> MetadataKeys:
    """Return what outputs of Kafka read of messages as they are: their times, and what is null.

    What windows make has times of its own.
    """
    ends = plan.outputs[1:] if plan.window is not None and not plan.buffers else plan.outputs
    inside_of = flatten_outputs(ends, plan.resources)
    return (
        _RECORD_METADATA if any(one.name in _FILTERED_OUTPUTS for one in inside_of) else frozenset()
    )


def _input_processors(component: ParsedComponent) -> Iterator[ParsedComponent]:
    """Give an input's processors, those of its batching too, and those of the inputs in it."""
    yield from component.processors
    for child in child_components(component):
        if child.kind == Kind.INPUT:
            yield from _input_processors(child)
        elif child.kind == Kind.PROCESSOR:
            yield child


def _batching_keys(component: ParsedComponent) -> MetadataKeys | None:
    """Return what the checks of batching read, of an input and of those in it."""
    policies = [find_input_batching(one) for one in _nested_inputs(component)]
    names: set[str] = set()
    for check in [policy[CHECK] for policy in policies if policy is not None and policy[CHECK]]:
        keys = read_by(compile_mapping(check).program)
        if keys is None:
            return None
        names |= keys
    return frozenset(names)


def _nested_inputs(component: ParsedComponent) -> Iterator[ParsedComponent]:
    yield component
    for child in child_components(component):
        if child.kind == Kind.INPUT:
            yield from _nested_inputs(child)


def _component_keys(component: ParsedComponent) -> MetadataKeys | None:
    if component.kind == Kind.INPUT:
        within = _union_keys(_input_processors(component))
        batching = _batching_keys(component)
        return None if within is None or batching is None else within | batching
    if component.kind == Kind.OUTPUT and component.name in _FILTERED_OUTPUTS:
        # What of it becomes headers.
        metadata_filter = component.config["metadata"]
        if metadata_filter is not None and any(metadata_filter.values()):
            return None
    known = {
        Kind.PROCESSOR: _KNOWN_PROCESSORS,
        Kind.OUTPUT: _KNOWN_OUTPUTS,
        Kind.BUFFER: _KNOWN_BUFFERS,
    }
    if component.name not in known.get(component.kind, ()) and not makes_windows(component):
        return None
    declared = find_spec(component.kind, component.name)
    if declared is None:
        return None
    names = set(_PLACE_METADATA) if component.name in _DECODERS else set[str]()
    body = [declared.config] if declared.config is not None else declared.fields
    for is_mapping, text in _mapping_texts(body, component.config, declared.config is not None):
        compiled: Any
        if is_mapping:
            compiled = compile_mapping(text).program
        else:
            compiled = compile_interpolation(text).queries
        keys = read_by(compiled)
        if keys is None:
            return None
        names |= keys
    within = _union_keys(chain(child_components(component), component.processors))
    return None if within is None else frozenset(names | within)


def _union_keys(components: Iterable[ParsedComponent]) -> MetadataKeys | None:
    names: set[str] = set()
    for component in components:
        keys = _component_keys(component)
        if keys is None:
            return None
        names |= keys
    return frozenset(names)


def _mapping_texts(
    fields: Iterable[Field], config: Any, is_body: bool = False
) -> Iterator[tuple[bool, str]]:
    """Give the mappings (True) and interpolated strings in a component's own fields."""
    for field in fields:
        if is_body:
            value = config
        else:
            value = config.get(field.name) if isinstance(config, Mapping) else None
        if field.kind is not None:
            continue
        for one in _flatten_values(value):
            if field.children:
                yield from _mapping_texts(field.children, one)
            elif isinstance(one, str) and one and (field.mapping or field.interpolated):
                yield field.mapping, one


def _flatten_values(value: Any) -> Iterator[Any]:
    """Give a field's value, or those in its list, lists of lists, or map."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _flatten_values(item)
    elif value is not None:
        yield value
        if isinstance(value, Mapping):
            # A field may be a map of values of which each is of its kind.
            yield from value.values()
