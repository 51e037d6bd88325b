"""Whether the `metric` processors of a config that share a name agree about what it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.config.read_context import ReadContext
from streamer.core.errors import Lint
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import walk_components
from streamer.sdk.spec.component import Resources

_RULE_CODE: Final = "conflicting_metric"
_SHARED_TYPES: Final = {"counter_by": "counter"}
"""A `counter_by` is a counter to whoever reads it."""


def check_custom_metrics(context: ReadContext, parsed: ParsedFields, resources: Resources) -> None:
    """Add a warning about each metric that has another type, or other labels, elsewhere.

    Args:
        context: gets the findings.
        parsed: the config's top level.
        resources: by kind and label.
    """
    sections = [
        parsed["input"],
        parsed["buffer"],
        *_list_pipeline_processors(parsed),
        parsed["output"],
    ]
    roots = [one for one in sections if isinstance(one, ParsedComponent)]
    metrics: dict[tuple[str, int, int], ParsedComponent] = {}
    for one in filter(_is_named_metric, walk_components((*roots, *resources.values()))):
        # A template's, or one that an alias repeats, is met more than once.
        metrics.setdefault((one.file, *one.config.place("name")), one)
    first: dict[str, ParsedComponent] = {}
    for _, one in sorted(metrics.items()):
        name = one.config["name"]
        other = first.setdefault(name, one)
        if other is not one and (difference := _describe_difference(one.config, other.config)):
            line, column = one.config.place("name")
            at = f"line {other.config.place('name').line}"
            if other.file != one.file:
                at = f"{other.file} {at}"
            message = f"the metric {name!r} {difference} at {at}"
            hint = "give one of them another name, or both the same type and labels"
            context.findings.add(Lint(one.file, line, column, _RULE_CODE, message, hint))


def _list_pipeline_processors(parsed: ParsedFields) -> Iterator[ParsedComponent]:
    pipeline = parsed["pipeline"]
    if isinstance(pipeline, ParsedFields):
        yield from pipeline["processors"] or ()


def _is_named_metric(component: ParsedComponent) -> bool:
    is_metric = component.kind == Kind.PROCESSOR and component.name == "metric"
    return (
        is_metric
        and isinstance(component.config, ParsedFields)
        and bool(component.config.get("name"))
    )


def _describe_difference(one: ParsedFields, other: ParsedFields) -> str:
    """Return how a metric differs from one of its name; empty when it does not."""
    kind, kind_there = (_SHARED_TYPES.get(of["type"], of["type"]) for of in (one, other))
    if kind != kind_there:
        return f"is a {kind} here, and a {kind_there}"
    labels, labels_there = (sorted(of["labels"] or ()) for of in (one, other))
    if labels != labels_there:
        return f"has {_format_labels(labels)} here, and {_format_labels(labels_there)}"
    return ""


def _format_labels(labels: list[str]) -> str:
    return f"the labels {', '.join(labels)}" if labels else "no labels of its own"
