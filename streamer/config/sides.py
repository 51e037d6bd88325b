"""The two inputs that a `window_join` names: that they are there, and that nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingType
from typing import Final

from streamer.config.findings import did_you_mean
from streamer.config.nodes import Mapping, Node
from streamer.config.reading import Reading
from streamer.spec import Kind, Parsed, ParsedComponent

_JOIN: Final = "window_join"
_SIDES: Final = ("left", "right")
_SEVERAL: Final = "broker"

Resources = MappingType[tuple[Kind, str], ParsedComponent]


def check_sides(reading: Reading, root: Mapping, parsed: Parsed, resources: Resources) -> None:
    """Add a finding for each side of a join that is no input's label, and for inputs beyond them.

    Args:
        reading: gets the findings.
        root: the config's tree.
        parsed: its top level.
        resources: by kind and label.
    """
    buffer, source = parsed["buffer"], parsed["input"]
    if buffer is None or buffer.name != _JOIN or source is None or buffer.config is None:
        return
    labels = list(_labels(source, resources, set()))
    sides = [buffer.config[side] for side in _SIDES]
    for side, label in zip(_SIDES, sides, strict=True):
        if label and label not in labels:
            _missing(reading, _at(root, "buffer", _JOIN, side), side, label, labels)
    beyond = [label for label in labels if label not in sides]
    # Where a side is missing, that is what is wrong.
    if beyond and all(side in labels for side in sides):
        shown = ", ".join(repr(label) if label else "one without a label" for label in beyond)
        message = f"{_JOIN} joins {' and '.join(sides)}, and there is another input: {shown}"
        reading.findings.at(_at(root, "input"), "bad_value", message, "remove it")


def _missing(reading: Reading, node: Node, side: str, label: str, labels: list[str]) -> None:
    known = [one for one in labels if one]
    hint = did_you_mean(label, known)
    if not hint and len(labels) < 2:
        hint = "read two inputs with `input: {broker: {inputs: […]}}`, each with a label"
    elif not hint:
        hint = f"the inputs' labels are {', '.join(known) or 'missing'}"
    message = f"field {side} is {label!r}, but no input has this label"
    reading.findings.at(node, "bad_value", message, hint)


def _labels(source: ParsedComponent, resources: Resources, open_: set[str]) -> Iterator[str]:
    """Return the labels of the inputs that are read; a resource that uses itself has none."""
    if source.name == "resource":
        found = resources.get((Kind.INPUT, source.config))
        if found is not None and source.config not in open_:
            yield from _labels(found, resources, {*open_, source.config})
    elif source.name == _SEVERAL and isinstance(source.config, Parsed):
        for child in source.config["inputs"] or ():
            if child is not None:
                yield from _labels(child, resources, open_)
    else:
        yield source.label


def _at(root: Mapping, *way: str) -> Node:
    """Return the node at the end of a way through the tree, or the last one that there is."""
    node: Node = root
    for name in way:
        if not isinstance(node, Mapping) or name not in node.entries:
            return node
        node = node.entries[name][1]
    return node
