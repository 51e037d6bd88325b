"""Single values: a node read as the type that its field has."""

from __future__ import annotations

from collections.abc import Callable
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
from streamer.config.findings import suggest_name
from streamer.config.nodes import Mapping, Node, Scalar, describe_node, to_python
from streamer.config.read_context import ReadContext, StatefulPlace
from streamer.config.unset_variables import (
    UNSET_MARK,
    compile_filled,
    intersect_groups,
    is_unset,
    locate_unfilled,
    make_stand_in,
    mentions_mark,
    remove_marks,
)
from streamer.core.durations import parse_duration
from streamer.core.extras import install_hint, missing_packages_text
from streamer.core.yaml_scalars import parse_bool, resolve_scalar
from streamer.sdk.spec import Field

MAX_CODE_CHARS: Final = 250_000
_MAX_SHOWN_CHARS: Final = 40


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
        report_wrong_type(context, node, "object", field)
        return None
    if not isinstance(node, Scalar):
        report_wrong_type(context, node, field.type, field)
        return None
    try:
        value = node.value
    except ValueError as e:
        context.findings.add_at(node, "bad_tag", str(e))
        return None
    if field.type == "string":
        return _read_string(context, field, node, value)
    if field.type == "bool":
        value = parse_bool(value)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        value = None
    elif field.type == "float":
        value = float(value)
    elif isinstance(value, float):
        value = int(value) if value.is_integer() else None
    if value is None:
        report_wrong_type(context, node, field.type, field)
    return value


def report_wrong_type(
    context: ReadContext, node: Node, what: str, field: Field, hint: str = ""
) -> None:
    """Add the finding that a node is not of the type that was expected.

    What a secret field holds is not shown.
    """
    got = describe_node(node)
    if isinstance(node, Scalar) and node.text and not field.secret and "null" not in got:
        got += f" {quote_shortened(node.text)}" if "string" in got else f" {node.text}"
        if node.style and what in ("int", "float"):
            bare = resolve_scalar(node.text)
            if isinstance(bare, int | float) and not isinstance(bare, bool):
                hint = hint or "remove the quotes"
    name = f"field {field.name}: " if field.name else ""
    context.findings.add_at(
        node, f"expected_{what}", f"{name}expected {what} value, got {got}", hint
    )


def quote_shortened(text: str) -> str:
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
    dynamic = field.interpolated and "${!" in text
    if field.mapping or dynamic:
        _check_code(context, field, node, text)
    known = {option.lower() for option in field.options}
    if known and not dynamic and text.lower() not in known:
        quoted = "" if field.secret else f" {quote_shortened(text)}"
        context.findings.add_at(
            node,
            "invalid_option",
            f"field {field.name}: value{quoted} is not one of {', '.join(field.options)}",
            suggest_name(text, field.options),
        )
    return text


def _read_duration(context: ReadContext, field: Field, node: Scalar, text: str) -> int | None:
    if not text:
        return None
    try:
        return parse_duration(text)
    except ValueError as e:
        context.findings.add_at(node, "bad_duration", f"field {field.name}: {e}")
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
