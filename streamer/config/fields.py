"""Fields to parsed values: shapes, defaults, missing and unknown fields, types of values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from collections.abc import Mapping as NameMapping
from types import MappingProxyType
from typing import Any, Final

from streamer.bloblang import (
    BloblangError,
    Interpolation,
    compile_interpolation,
    compile_mapping,
)
from streamer.bloblang import Mapping as Bloblang
from streamer.bloblang.analysis.missing_packages import find_missing_packages
from streamer.bloblang.analysis.static_warnings import find_static_warnings
from streamer.bloblang.analysis.used_tables import find_used_tables
from streamer.config.field_name_hints import suggest_parent, suggest_quotes
from streamer.config.findings import suggest_name
from streamer.config.nodes import (
    SECRET_STYLE,
    Mapping,
    Node,
    Scalar,
    Sequence,
    describe_node,
    from_python,
    to_python,
)
from streamer.config.read_context import ReadContext, Reference, StatefulPlace
from streamer.config.secrets import collect_secrets
from streamer.config.source_map import NO_SOURCE
from streamer.config.text_offsets import find_offset
from streamer.config.unset_variables import (
    UNSET_MARK,
    compile_filled,
    intersect_groups,
    is_unset,
    locate_unfilled,
    make_stand_in,
    mentions_mark,
    remove_marks,
    select_known,
)
from streamer.core.durations import parse_duration
from streamer.core.extras import install_hint, missing_packages_text, skip_if_missing
from streamer.core.yaml_scalars import parse_bool, resolve_scalar
from streamer.sdk.spec import (
    REQUIRED,
    BadTextError,
    Field,
    Kind,
    ParsedFields,
    TextPlace,
    TextProblem,
)

_MAX_LISTED_FIELDS: Final = 12
NO_NAMES: Final[NameMapping[str, str]] = MappingProxyType({})

MAX_CODE_CHARS: Final = 250_000
_MAX_SHOWN_CHARS: Final = 40
_MAPPING_PATTERN: Final = re.compile(r"\b(root|this|meta|json)\b|\$\{!")


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
    for name, (key, value) in node.entries.items():
        if name not in known:
            listed = ", ".join(sorted(known)) if len(known) <= _MAX_LISTED_FIELDS else ""
            context.findings.add_at(
                key,
                "unknown_field",
                f"field {name} not recognised",
                instead.get(name)
                or suggest_quotes(name, value)
                or suggest_parent(name, fields, node)
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
            add_problem(context, node, field.name, problem)
            return value
    if field.resolve and known_value and context.findings.harmful_count == before:
        return _resolve_text(context, field, node, known_value)
    return value


def _resolve_text(context: ReadContext, field: Field, node: Node, text: str) -> str:
    """Return what takes the place of a text; see `Field.resolve`."""
    assert field.resolve is not None and isinstance(node, Scalar)

    def locate(line: int) -> int:
        return node.source.locate(find_offset(node, line, 1)).line

    try:
        return field.resolve(text, TextPlace(node.source.name, locate))
    except BadTextError as e:
        message = format_problem(field.name, e.message)
        if e.line:
            at = (e.line, e.column)
            context.findings.add_inside(node, at, "bad_python", message, e.suggestion)
        else:
            context.findings.add_at(node, "bad_python", message, e.suggestion)
        return text


def add_problem(context: ReadContext, node: Node, name: str, problem: str) -> None:
    """Add the finding of a check: at the place in a text that it names, or else at the node.

    Args:
        context: gets the finding.
        node: the value of the field, or what stands for it.
        name: the name of the field; empty for the whole of a component.
        problem: what the check has returned.
    """
    text = format_problem(name, problem)
    if isinstance(problem, TextProblem) and isinstance(node, Scalar):
        at = (problem.line, problem.column)
        context.findings.add_inside(node, at, problem.code, text)
    else:
        context.findings.add_at(node, "bad_value", text)


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
        return context.read_component(context, field.kind, node, path, field.children)
    if field.type == "object" and field.children:
        if isinstance(node, Mapping):
            return read_fields(context, field.children, node, path, at)
        _report_wrong_type(context, node, "object", field)
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
            _report_wrong_type(context, node, "array", field, "write it as a list: `- …`")
            return None
    return tuple(
        item(context, field, child, f"{path}.{index}", child)
        for index, child in enumerate(node.items)
    )


def _read_map(context: ReadContext, field: Field, node: Node, path: str, at: Node) -> Any:
    if not isinstance(node, Mapping):
        _report_wrong_type(context, node, "object", field)
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


def read_value(context: ReadContext, field: Field, node: Node) -> Any:
    """Read a node as one value of a field's type (`string`, `int`, …, not a component).

    Returns:
        The value as `ParsedFields` describes it; None when it is not valid, with a finding added.
    """
    if is_unset(node) and field.type in ("string", "int", "float", "bool"):
        assert isinstance(node, Scalar)
        if field.mapping or (field.interpolated and "${!" in node.text):
            _check_code(context, field, node, node.text)
        return make_stand_in(field, node.text.replace(UNSET_MARK, ""), context.uses_other_values)
    if field.type == "unknown":
        return remove_marks(_to_python(context, node))
    if field.type == "object":
        if isinstance(node, Mapping):
            return remove_marks(_to_python(context, node))
        _report_wrong_type(context, node, "object", field)
        return None
    if not isinstance(node, Scalar):
        _report_wrong_type(context, node, field.type, field)
        return None
    try:
        value = node.value
    except ValueError as e:
        context.findings.add_at(node, "bad_tag", str(e))
        return None
    if field.type == "string":
        return _read_string(context, field, node, value)
    if node.style == SECRET_STYLE:
        value = resolve_scalar(node.text)
    if field.type == "bool":
        value = parse_bool(value)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        value = None
    elif field.type == "float":
        value = float(value)
    elif isinstance(value, float):
        value = int(value) if value.is_integer() else None
    if value is None:
        _report_wrong_type(context, node, field.type, field)
    return value


def _report_wrong_type(
    context: ReadContext, node: Node, what: str, field: Field, hint: str = ""
) -> None:
    """Add the finding that a node is not of the type that was expected.

    What a secret field holds is not shown.
    """
    got = describe_node(node)
    if isinstance(node, Scalar) and node.text and not field.secret and "null" not in got:
        got += f" {_quote_shortened(node.text)}" if "string" in got else f" {node.text}"
        if node.style and what in ("int", "float"):
            bare = resolve_scalar(node.text)
            if isinstance(bare, int | float) and not isinstance(bare, bool):
                hint = hint or "remove the quotes"
    name = f"field {field.name}: " if field.name else ""
    context.findings.add_at(
        node, f"expected_{what}", f"{name}expected {what} value, got {got}", hint
    )


def _quote_shortened(text: str) -> str:
    """Return a value's text as a message shows it: quoted, on one line, and not too long."""
    return repr(text if len(text) <= _MAX_SHOWN_CHARS else f"{text[: _MAX_SHOWN_CHARS - 3]}...")


def _to_python(context: ReadContext, node: Node) -> Any:
    try:
        return to_python(node)
    except ValueError as e:
        context.findings.add_at(node, "bad_tag", str(e))
        return None


def _read_string(context: ReadContext, field: Field, node: Scalar, value: Any) -> Any:
    """Return a string field's value; any scalar is taken as its text, null as an empty one."""
    text = "" if value is None else value if isinstance(value, str) else node.text
    if field.duration:
        return _read_duration(context, field, node, text)
    if node.marked:
        text = _read_secret_text(context, field, node, text)
    dynamic = field.interpolated and "${!" in text
    if field.mapping or dynamic:
        _check_code(context, field, node, text)
    known = {option.lower() for option in field.options}
    if known and not dynamic and text.lower() not in known:
        quoted = "" if field.secret else f" {_quote_shortened(text)}"
        context.findings.add_at(
            node,
            "invalid_option",
            f"field {field.name}: value{quoted} is not one of {', '.join(field.options)}",
            suggest_name(text, field.options),
        )
    return text


def _read_secret_text(context: ReadContext, field: Field, node: Scalar, text: str) -> str:
    """Return the text of a scalar with a secret, which is never a part of code.

    In a mapping it is a literal, also without the quotes around it.
    """
    if field.mapping:
        return node.source.reveal(node.marked, write_literal)
    if field.interpolated and text.count("${!") != node.marked.count("${!"):
        context.findings.add_at(
            node,
            "bad_value",
            f"field {field.name}: the secret in it has ${{!, which begins an expression there",
            "choose another secret, or read it in a mapping",
        )
        return node.marked
    return text


def write_literal(before: str, secret: str) -> str:
    """Return a secret as it stands in a mapping: within the quotes that are open, or in its own.

    Args:
        before: what stands before it.
        secret: the secret.

    Example:
        >>> write_literal('root = "', "a"), write_literal("root = ", "a")
        ('a', '"a"')
    """
    line = before.rpartition("\n")[2].replace("\\\\", "").replace('\\"', "")
    literal = json.dumps(secret, ensure_ascii=False)
    return literal[1:-1] if line.count('"') % 2 else literal


def _read_duration(context: ReadContext, field: Field, node: Scalar, text: str) -> int | None:
    if not text:
        return None
    try:
        return parse_duration(text)
    except ValueError as e:
        hint = ""
        if _MAPPING_PATTERN.search(text):
            hint = f"{field.name} is the same for all messages, and takes no mapping"
            hint += f"; {field.per_message} takes one" if field.per_message else ""
        context.findings.add_at(node, "bad_duration", f"field {field.name}: {e}", hint)
        return None


def _check_code(context: ReadContext, field: Field, node: Scalar, text: str) -> None:
    """Compile a mapping or an interpolated string, to place what is wrong in it."""
    if not text.strip():
        return
    context.code_chars += len(text)
    if context.code_chars > MAX_CODE_CHARS:
        message = f"the mappings of the config have, together, over {MAX_CODE_CHARS:,} characters"
        hint = "read large tables from files, with `file`, or import them"
        context.findings.add_at(node, "too_large", message, hint)
        return
    compile_ = compile_mapping if field.mapping else compile_interpolation
    if UNSET_MARK in text:
        _check_unset_code(context, field, node, text, compile_)
        return
    try:
        code = compile_(text)
    except BloblangError as e:
        context.findings.add_inside(
            node, (e.line, e.column), "bad_bloblang", e.message, e.suggestion
        )
        return
    if code.uses.keyed_state:
        calls = tuple(call.text for call in code.state_calls)
        place = StatefulPlace(node, context.component_path, calls)
        context.stateful_places.append(place)
    for call in find_missing_packages(code) if context.options.packages else ():
        at = (call.line, call.column)
        message = missing_packages_text(call.what, call.packages)
        context.findings.add_inside(
            node, at, "missing_package", message, install_hint(call.packages)
        )
    for use in find_used_tables(code):
        context.references.append(Reference(Kind.TABLE, use.label, node, field.name))
    for doubt in find_static_warnings(code, field.variables) if context.options.thorough else ():
        at = (doubt.line, doubt.column)
        context.findings.add_inside(node, at, "doubtful_bloblang", doubt.message, doubt.suggestion)


def _check_unset_code(
    context: ReadContext,
    field: Field,
    node: Scalar,
    text: str,
    compile_: Callable[[str], Bloblang | Interpolation],
) -> None:
    """Check what does not hang on the values of variables that are not set."""
    try:
        compiled = list(compile_filled(text, compile_))
    except BloblangError as e:
        context.findings.add_inside(
            node, (e.line, e.column), "bad_bloblang", e.message, e.suggestion
        )
        return
    if not compiled or not context.options.thorough:
        return
    placed = [
        [
            (locate_unfilled(text, filling, doubt.line, doubt.column), doubt)
            for doubt in find_static_warnings(code, field.variables)
            if not mentions_mark(doubt.message)
        ]
        for code, filling in compiled
    ]
    for at, doubt in intersect_groups(placed, lambda one: (one[0], one[1].message)):
        context.findings.add_inside(node, at, "doubtful_bloblang", doubt.message, doubt.suggestion)
