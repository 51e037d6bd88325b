"""Whether the `metric` processors of a config that share a name agree about what it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from streamer.config.reading import Reading
from streamer.errors import Lint
from streamer.spec import Kind, Parsed, ParsedComponent
from streamer.spec.inside import inside

_CODE: Final = "conflicting_metric"
_TYPES: Final = {"counter_by": "counter"}
"""A `counter_by` is a counter to whoever reads it."""

Resources = Mapping[tuple[Kind, str], ParsedComponent]


def check_custom_metrics(reading: Reading, parsed: Parsed, resources: Resources) -> None:
    """Add a warning about each metric that has another type, or other labels, elsewhere.

    Args:
        reading: gets the findings.
        parsed: the config's top level.
        resources: by kind and label.
    """
    sections = [parsed["input"], parsed["buffer"], *_pipeline(parsed), parsed["output"]]
    roots = [one for one in sections if isinstance(one, ParsedComponent)]
    found: dict[tuple[str, int, int], ParsedComponent] = {}
    for root in (*roots, *resources.values()):
        for one in _metrics(root):
            # A template's, or one that an alias repeats, is met more than once.
            found.setdefault((one.file, *one.config.place("name")), one)
    first: dict[str, ParsedComponent] = {}
    for _, one in sorted(found.items()):
        name = one.config["name"]
        other = first.setdefault(name, one)
        if other is not one and (difference := _difference(one.config, other.config)):
            line, column = one.config.place("name")
            at = f"line {other.config.place('name').line}"
            if other.file != one.file:
                at = f"{other.file} {at}"
            message = f"the metric {name!r} {difference} at {at}"
            hint = "give one of them another name, or both the same type and labels"
            reading.findings.add(Lint(one.file, line, column, _CODE, message, hint))


def _pipeline(parsed: Parsed) -> Iterator[ParsedComponent]:
    pipeline = parsed["pipeline"]
    if isinstance(pipeline, Parsed):
        yield from pipeline["processors"] or ()


def _metrics(component: ParsedComponent) -> Iterator[ParsedComponent]:
    is_metric = component.kind == Kind.PROCESSOR and component.name == "metric"
    if is_metric and isinstance(component.config, Parsed) and component.config.get("name"):
        yield component
    for child in (*component.processors, *inside(component)):
        yield from _metrics(child)


def _difference(one: Parsed, other: Parsed) -> str:
    """Return how a metric differs from one of its name; empty when it does not."""
    kind, kind_there = (_TYPES.get(of["type"], of["type"]) for of in (one, other))
    if kind != kind_there:
        return f"is a {kind} here, and a {kind_there}"
    labels, labels_there = (sorted(of["labels"] or ()) for of in (one, other))
    if labels != labels_there:
        return f"has {_shown(labels)} here, and {_shown(labels_there)}"
    return ""


def _shown(labels: list[str]) -> str:
    return f"the labels {', '.join(labels)}" if labels else "no labels of its own"
