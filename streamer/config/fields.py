"""Fields to parsed values: shapes, defaults, missing and unknown fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from collections.abc import Mapping as NameMapping
from types import MappingProxyType
from typing import Any, Final

from streamer.config.findings import suggest_name
from streamer.config.nodes import Mapping, Node, Sequence, from_python
from streamer.config.read_context import ReadContext, Reference
from streamer.config.secrets import collect_secrets
from streamer.config.source_map import NO_SOURCE
from streamer.config.unset_variables import select_known
from streamer.config.values import read_value, report_wrong_type
from streamer.core.extras import skip_if_missing
from streamer.sdk.spec import REQUIRED, Field, ParsedFields

_MAX_LISTED_FIELDS: Final = 12
NO_NAMES: Final[NameMapping[str, str]] = MappingProxyType({})


def read_fields(
    context: ReadContext,
    fields: Iterable[Field],
    node: Mapping,
    path: str,
    at: Node,
    of: str = "",
    instead: NameMapping[str, str] = NO_NAMES,
) -> ParsedFields:
    """Read the fields of an object.

    Args:
        context: gets the findings.
        fields: what the object may hold.
        node: the object.
        path: its dotted path.
        at: what a missing field is reported at (the component's name).
        of: what the fields belong to, for messages: `of system_window`, or empty.
        instead: hints for names that are no fields, see `Spec.instead`.
    """
    known = {field.name: field for field in fields}
    for name, (key, _) in node.entries.items():
        if name not in known:
            listed = ", ".join(sorted(known)) if len(known) <= _MAX_LISTED_FIELDS else ""
            context.findings.add_at(
                key,
                "unknown_field",
                f"field {name} not recognised",
                instead.get(name)
                or suggest_name(name, known)
                or (listed and f"expected one of {listed}"),
            )
    values = {}
    places = {}
    for name, field in known.items():
        inner = f"{path}.{name}" if path else name
        entry = node.entries.get(name)
        if entry is not None:
            if field.deprecated and context.options.deprecated:
                context.findings.add_at(entry[0], "deprecated", f"field {name} is deprecated")
            values[name] = read_field(context, field, entry[1], inner, entry[0])
            places[name] = entry[1].source.locate(entry[1].start)
            continue
        if field.required:
            context.findings.add_at(at, "missing_field", f"field {name} is required{of}")
        values[name] = _read_default(context, field, inner, at)
    return ParsedFields(values, places)


def _read_default(context: ReadContext, field: Field, path: str, at: Node) -> Any:
    if field.default is REQUIRED:
        if field.optional or not (field.children and field.shape == "scalar"):
            return None
        # As in Benthos, the fields of an object that was left out have their own defaults.
        empty = Mapping(at.source, at.start, at.start)
        return read_fields(context, field.children, empty, path, at, f" in {field.name}")
    simple = field.shape == "scalar" and not field.children and field.kind is None
    if field.default is None or (simple and not field.duration):
        return field.default
    return read_field(context, field, from_python(field.default, NO_SOURCE), path, at)


def read_field(context: ReadContext, field: Field, node: Node, path: str, at: Node) -> Any:
    """Read a field's value, whatever its shape.

    Returns:
        The value as `ParsedFields` describes it; None when it is not valid, with a finding added.
    """
    before = context.findings.harmful_count
    value = _SHAPE_READERS[field.shape](context, field, node, path, at)
    known_value = select_known(node, value)
    if field.check and known_value is not None and context.findings.harmful_count == before:
        problem = None
        with skip_if_missing():
            problem = field.check(known_value)
        if problem:
            context.findings.add_at(node, "bad_value", format_problem(field.name, problem))
    return value


def read_body(context: ReadContext, field: Field, node: Node | None, path: str, at: Node) -> Any:
    """Read the body of a component that is one field; without a node, its default stands."""
    if node is not None:
        return read_field(context, field, node, path, at)
    if field.required:
        context.findings.add_at(at, "missing_field", f"expected {field.type} value, got nothing")
    return _read_default(context, field, path, at)


def format_problem(name: str, problem: str) -> str:
    """Return the text of what a check found: it goes on after the field's name, or stands alone."""
    if not name:
        return problem
    goes_on = problem.startswith(("is ", "are ", "must ", "has ", "cannot ", "needs "))
    return f"field {name} {problem}" if goes_on else f"field {name}: {problem}"


def _read_scalar(context: ReadContext, field: Field, node: Node, path: str, at: Node) -> Any:
    if field.kind is not None:
        return context.read_component(context, field.kind, node, path)
    if field.type == "object" and field.children:
        if isinstance(node, Mapping):
            return read_fields(context, field.children, node, path, at)
        report_wrong_type(context, node, "object", field)
        return None
    collect_secrets(context.findings.secrets, field, node, at)
    value = read_value(context, field, node)
    if field.refers is not None and value:
        context.references.append(Reference(field.refers, value, node, path))
    return value


def _read_array(
    context: ReadContext,
    field: Field,
    node: Node,
    path: str,
    at: Node,
    item: Callable[..., Any] = _read_scalar,
) -> Any:
    if not isinstance(node, Sequence):
        if node.source.lenient:
            node = Sequence(node.source, node.start, node.end, [node])
        else:
            report_wrong_type(context, node, "array", field, "write it as a list: `- …`")
            return None
    return tuple(
        item(context, field, child, f"{path}.{index}", child)
        for index, child in enumerate(node.items)
    )


def _read_map(context: ReadContext, field: Field, node: Node, path: str, at: Node) -> Any:
    if not isinstance(node, Mapping):
        report_wrong_type(context, node, "object", field)
        return None
    return {
        key: _read_scalar(context, field, value, f"{path}.{key}", name)
        for key, (name, value) in node.entries.items()
    }


def _read_array2d(context: ReadContext, field: Field, node: Node, path: str, at: Node) -> Any:
    return _read_array(context, field, node, path, at, _read_array)


_SHAPE_READERS: Final[dict[str, Callable[[ReadContext, Field, Node, str, Node], Any]]] = {
    "scalar": _read_scalar,
    "array": _read_array,
    "map": _read_map,
    "2darray": _read_array2d,
}


def find_node(node: Node, path: str) -> Node:
    """Return the node at a dotted path below a node, or the last one on the way that exists."""
    for part in re.split(r"[.\[\]]+", path.strip("]")):
        if isinstance(node, Mapping) and part in node.entries:
            node = node.entries[part][1]
        elif isinstance(node, Sequence) and part.isdecimal() and int(part) < len(node.items):
            node = node.items[int(part)]
        else:
            break
    return node
