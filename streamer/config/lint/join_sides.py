"""The two sides that a join names: that they are there, and that no input is left over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.config.findings import suggest_name
from streamer.config.model import JOIN_SIDES, source_labels_of
from streamer.config.nodes import Mapping, Node
from streamer.config.read_context import ReadContext
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.component import Resources

_BROKER_INPUT: Final = "broker"


def check_join_sides(
    context: ReadContext, root: Mapping, parsed: ParsedFields, resources: Resources
) -> None:
    """Add a finding for each side of a join that is no input's label, and for inputs beyond them.

    Args:
        context: gets the findings.
        root: the config's tree.
        parsed: its top level.
        resources: by kind and label.
    """
    buffer, source = parsed["buffer"], parsed["input"]
    if buffer is None or buffer.name not in JOIN_SIDES or source is None or buffer.config is None:
        return
    inputs = list(_find_labels(source, resources, set()))
    buffers = [one for one in parsed["buffers"] or () if one is not None]
    labels = [*inputs, *(one.label for one in buffers if one.label != buffer.label)]
    fields = JOIN_SIDES[buffer.name]
    sides = [buffer.config[side] for side in fields]
    for side, label in zip(fields, sides, strict=True):
        if label and label not in labels:
            node = _find_node(root, "buffer", buffer.name, side)
            _report_missing(context, node, side, label, inputs, labels)
    used = [label for one in buffers or [buffer] for label in source_labels_of(one)]
    beyond = [label for label in inputs if label not in used]
    # Where a side is missing, that is what is wrong. A buffer without sides takes every input.
    if beyond and "" not in used and all(side in labels for side in sides):
        shown = ", ".join(repr(label) if label else "one without a label" for label in beyond)
        message = f"{buffer.name} joins {' and '.join(sides)}, and there is another input: {shown}"
        hint = "remove it, or join it too, by another buffer in a list of `buffers`"
        context.findings.add_at(_find_node(root, "input"), "bad_value", message, hint)


def _report_missing(
    context: ReadContext, node: Node, side: str, label: str, inputs: list[str], labels: list[str]
) -> None:
    known = [one for one in labels if one]
    hint = suggest_name(label, known)
    if not hint and len(labels) < 2:
        hint = "read two inputs with `input: {broker: {inputs: […]}}`, each with a label"
    elif not hint:
        what = "inputs' labels" if len(inputs) == len(labels) else "labels of inputs and buffers"
        hint = f"the {what} are {', '.join(known) or 'missing'}"
    message = f"field {side} is {label!r}, but no input has this label"
    if len(inputs) < len(labels):
        message = f"field {side} is {label!r}, but no input and no other buffer has this label"
    context.findings.add_at(node, "bad_value", message, hint)


def _find_labels(source: ParsedComponent, resources: Resources, open_: set[str]) -> Iterator[str]:
    """Return the labels of the inputs that are read; a resource that uses itself has none."""
    if source.name == "resource":
        resource = resources.get((Kind.INPUT, source.config))
        if resource is not None and source.config not in open_:
            yield from _find_labels(resource, resources, {*open_, source.config})
    elif source.name == _BROKER_INPUT and isinstance(source.config, ParsedFields):
        for child in source.config["inputs"] or ():
            if child is not None:
                yield from _find_labels(child, resources, open_)
    else:
        yield source.label


def _find_node(root: Mapping, *way: str) -> Node:
    """Return the node at the end of a way through the tree, or the last one that there is."""
    node: Node = root
    for name in way:
        if not isinstance(node, Mapping) or name not in node.entries:
            return node
        node = node.entries[name][1]
    return node
