"""Fields to parsed values: shapes, defaults, missing and unknown fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from streamer.config.findings import did_you_mean
from streamer.config.nodes import Mapping, Node, Sequence, written
from streamer.config.reading import Reading, Reference
from streamer.config.secrets import note_secrets
from streamer.config.source import NO_SOURCE
from streamer.config.unset import known_part
from streamer.config.values import expected, read_value
from streamer.extras import unless_lacking
from streamer.spec import REQUIRED, Field, Parsed

_LISTED: Final = 12


def read_fields(
    reading: Reading, fields: Iterable[Field], node: Mapping, path: str, at: Node, of: str = ""
) -> Parsed:
    """Read the fields of an object.

    Args:
        reading: gets the findings.
        fields: what the object may hold.
        node: the object.
        path: its dotted path.
        at: what a missing field is reported at (the component's name).
        of: what the fields belong to, for messages: `of system_window`, or empty.
    """
    known = {field.name: field for field in fields}
    for name, (key, _) in node.entries.items():
        if name not in known:
            listed = ", ".join(sorted(known)) if len(known) <= _LISTED else ""
            reading.findings.at(
                key,
                "unknown_field",
                f"field {name} not recognised",
                did_you_mean(name, known) or (listed and f"expected one of {listed}"),
            )
    values = {}
    places = {}
    for name, field in known.items():
        inner = f"{path}.{name}" if path else name
        entry = node.entries.get(name)
        if entry is not None:
            if field.deprecated and reading.options.deprecated:
                reading.findings.at(entry[0], "deprecated", f"field {name} is deprecated")
            values[name] = read_field(reading, field, entry[1], inner, entry[0])
            places[name] = entry[1].source.place(entry[1].start)
            continue
        if field.required:
            reading.findings.at(at, "missing_field", f"field {name} is required{of}")
        values[name] = _default(reading, field, inner, at)
    return Parsed(values, places)


def _default(reading: Reading, field: Field, path: str, at: Node) -> Any:
    if field.default is REQUIRED:
        if field.optional or not (field.children and field.shape == "scalar"):
            return None
        # As in Benthos, the fields of an object that was left out have their own defaults.
        empty = Mapping(at.source, at.start, at.start)
        return read_fields(reading, field.children, empty, path, at, f" in {field.name}")
    simple = field.shape == "scalar" and not field.children and field.kind is None
    if field.default is None or (simple and not field.duration):
        return field.default
    return read_field(reading, field, written(field.default, NO_SOURCE), path, at)


def read_field(reading: Reading, field: Field, node: Node, path: str, at: Node) -> Any:
    """Read a field's value, whatever its shape.

    Returns:
        The value as `Parsed` describes it; None when it is not valid, with a finding added.
    """
    before = reading.findings.harmful
    value = _SHAPES[field.shape](reading, field, node, path, at)
    looked_at = known_part(node, value)
    if field.check and looked_at is not None and reading.findings.harmful == before:
        problem = None
        with unless_lacking():
            problem = field.check(looked_at)
        if problem:
            reading.findings.at(node, "bad_value", problem_text(field.name, problem))
    return value


def read_body(reading: Reading, field: Field, node: Node | None, path: str, at: Node) -> Any:
    """Read the body of a component that is one field; without a node, its default stands."""
    if node is not None:
        return read_field(reading, field, node, path, at)
    if field.required:
        reading.findings.at(at, "missing_field", f"expected {field.type} value, got nothing")
    return _default(reading, field, path, at)


def problem_text(name: str, problem: str) -> str:
    """Return the text of what a check found: it goes on after the field's name, or stands alone."""
    if not name:
        return problem
    goes_on = problem.startswith(("is ", "are ", "must ", "has ", "cannot ", "needs "))
    return f"field {name} {problem}" if goes_on else f"field {name}: {problem}"


def _scalar(reading: Reading, field: Field, node: Node, path: str, at: Node) -> Any:
    if field.kind is not None:
        return reading.component(reading, field.kind, node, path)
    if field.type == "object" and field.children:
        if isinstance(node, Mapping):
            return read_fields(reading, field.children, node, path, at)
        expected(reading, node, "object", field)
        return None
    note_secrets(reading.findings.secrets, field, node, at)
    value = read_value(reading, field, node)
    if field.refers is not None and value:
        reading.references.append(Reference(field.refers, value, node, path))
    return value


def _array(
    reading: Reading,
    field: Field,
    node: Node,
    path: str,
    at: Node,
    item: Callable[..., Any] = _scalar,
) -> Any:
    if not isinstance(node, Sequence):
        if node.source.lenient:
            node = Sequence(node.source, node.start, node.end, [node])
        else:
            expected(reading, node, "array", field, "write it as a list: `- …`")
            return None
    return tuple(
        item(reading, field, child, f"{path}.{index}", child)
        for index, child in enumerate(node.items)
    )


def _map(reading: Reading, field: Field, node: Node, path: str, at: Node) -> Any:
    if not isinstance(node, Mapping):
        expected(reading, node, "object", field)
        return None
    return {
        key: _scalar(reading, field, value, f"{path}.{key}", name)
        for key, (name, value) in node.entries.items()
    }


def _array2d(reading: Reading, field: Field, node: Node, path: str, at: Node) -> Any:
    return _array(reading, field, node, path, at, _array)


_SHAPES: Final[dict[str, Callable[[Reading, Field, Node, str, Node], Any]]] = {
    "scalar": _scalar,
    "array": _array,
    "map": _map,
    "2darray": _array2d,
}


def find(node: Node, path: str) -> Node:
    """Return the node at a dotted path below a node, or the last one on the way that exists."""
    for part in re.split(r"[.\[\]]+", path.strip("]")):
        if isinstance(node, Mapping) and part in node.entries:
            node = node.entries[part][1]
        elif isinstance(node, Sequence) and part.isdecimal() and int(part) < len(node.items):
            node = node.items[int(part)]
        else:
            break
    return node
