"""Which metadata of an input's messages anything in a stream can read.

What nothing reads need not be made: for every message of Kafka there would be nine entries. Only
components are looked into that are known to read metadata by their mappings and interpolations
alone; with any other one, all of it may be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from streamer.bloblang import compile_interpolation, compile_mapping
from streamer.bloblang.metadata_read import metadata_read as read_by
from streamer.catalog import makes_windows, spec
from streamer.kafka.record import READ_AT, TOMBSTONE
from streamer.plan.plan import Plan
from streamer.plan.written import all_inside
from streamer.spec import Field, Kind, ParsedComponent
from streamer.spec.inside import inside
from streamer.window.labels import END

_PROCESSORS: Final = frozenset(
    (
        *("bloblang", "mapping", "mutation", "group_by", "group_by_value", "catch", "try"),
        *("switch", "for_each", "noop", "log", "metric", "split", "bounds_check", "sleep"),
        *("select_parts", "dedupe", "compress", "decompress", "jmespath", "parse_log", "xml"),
        *("grok", "resource", "processors"),
    )
)
_BY_FILTER: Final = frozenset(("kafka_franz", "redpanda"))
_OUTPUTS: Final = _BY_FILTER | {
    *("stdout", "file", "drop", "broker", "switch", "fallback", "retry", "resource")
}
_OF_RECORDS: Final = frozenset((READ_AT, TOMBSTONE))
_BUFFERS: Final = frozenset(("none", "memory"))

Keys = frozenset[str]
"""Names of metadata; None stands for all."""


def metadata_read(plan: Plan) -> Keys | None:
    """Return what a stream's components can read of its input's metadata; None for any of it."""
    if plan.retention is not None:
        return None  # results are kept with all that they have
    resources = [
        component
        for (kind, _), component in plan.resources.items()
        if kind in (Kind.PROCESSOR, Kind.OUTPUT, Kind.INPUT)
    ]
    early = list(_input(plan.input))
    before = _all([*early, plan.buffer])
    after = _all([*plan.processors, *plan.outputs, *resources])
    if before is None or after is None:
        return None
    after |= _implied(plan)
    if plan.traced:
        before |= {"traceparent"}
    # A message that failed before the windows passes them by, and one that is late leaves without.
    if plan.window is not None and plan.late_output is None and not early:
        after -= {END}
    return before | after


def _implied(plan: Plan) -> Keys:
    """Return what outputs of Kafka read of messages as they are: their times, and what is null.

    What windows make has times of its own.
    """
    ends = plan.outputs[1:] if plan.window is not None else plan.outputs
    inside_of = all_inside(ends, plan.resources)
    return _OF_RECORDS if any(one.name in _BY_FILTER for one in inside_of) else frozenset()


def _input(component: ParsedComponent) -> Iterator[ParsedComponent]:
    """Give an input's processors, and those of the inputs in it."""
    yield from component.processors
    for child in inside(component):
        if child.kind == Kind.INPUT:
            yield from _input(child)


def _read(component: ParsedComponent) -> Keys | None:
    if component.kind == Kind.INPUT:
        return _all(_input(component))
    if component.kind == Kind.OUTPUT and component.name in _BY_FILTER:
        # What of it becomes headers.
        chosen = component.config["metadata"]
        if chosen is not None and any(chosen.values()):
            return None
    known = {Kind.PROCESSOR: _PROCESSORS, Kind.OUTPUT: _OUTPUTS, Kind.BUFFER: _BUFFERS}
    if component.name not in known.get(component.kind, ()) and not makes_windows(component):
        return None
    declared = spec(component.kind, component.name)
    if declared is None:
        return None
    found: set[str] = set()
    body = [declared.config] if declared.config is not None else declared.fields
    for is_mapping, text in _texts(body, component.config, declared.config is not None):
        compiled: Any
        if is_mapping:
            compiled = compile_mapping(text).program
        else:
            compiled = compile_interpolation(text).queries
        keys = read_by(compiled)
        if keys is None:
            return None
        found |= keys
    within = _all(chain(inside(component), component.processors))
    return None if within is None else frozenset(found | within)


def _all(components: Iterable[ParsedComponent]) -> Keys | None:
    found: set[str] = set()
    for component in components:
        keys = _read(component)
        if keys is None:
            return None
        found |= keys
    return frozenset(found)


def _texts(
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
        for one in _values(value):
            if field.children:
                yield from _texts(field.children, one)
            elif isinstance(one, str) and one and (field.mapping or field.interpolated):
                yield field.mapping, one


def _values(value: Any) -> Iterator[Any]:
    """Give a field's value, or those in its list, lists of lists, or map."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _values(item)
    elif value is not None:
        yield value
        if isinstance(value, Mapping):
            # A field may be a map of values of which each is of its kind.
            yield from value.values()
