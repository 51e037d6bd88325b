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
from streamer.bloblang.doubts import doubts
from streamer.bloblang.packages import lacking_packages
from streamer.config.findings import did_you_mean
from streamer.config.nodes import Mapping, Node, Scalar, described, plain
from streamer.config.reading import Reading
from streamer.config.unset import (
    UNSET,
    about_marks,
    common,
    compile_unset,
    is_unset,
    stand_in,
    unfilled,
    without_marks,
)
from streamer.durations import parse_duration
from streamer.extras import install_hint, lacking_text
from streamer.spec import Field
from streamer.yaml_scalars import resolve, truth

MAX_CODE: Final = 250_000
_SHOWN: Final = 40


def read_value(reading: Reading, field: Field, node: Node) -> Any:
    """Read a node as one value of a field's type (`string`, `int`, …, not a component).

    Returns:
        The value as `Parsed` describes it; None when it is not valid, with a finding added.
    """
    if is_unset(node) and field.type in ("string", "int", "float", "bool"):
        assert isinstance(node, Scalar)
        if field.mapping or (field.interpolated and "${!" in node.text):
            _check_code(reading, field, node, node.text)
        return stand_in(field, node.text.replace(UNSET, ""), reading.other_values)
    if field.type == "unknown":
        return without_marks(_plain(reading, node))
    if field.type == "object":
        if isinstance(node, Mapping):
            return without_marks(_plain(reading, node))
        expected(reading, node, "object", field)
        return None
    if not isinstance(node, Scalar):
        expected(reading, node, field.type, field)
        return None
    try:
        value = node.value
    except ValueError as e:
        reading.findings.at(node, "bad_tag", str(e))
        return None
    if field.type == "string":
        return _string(reading, field, node, value)
    if field.type == "bool":
        value = truth(value)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        value = None
    elif field.type == "float":
        value = float(value)
    elif isinstance(value, float):
        value = int(value) if value.is_integer() else None
    if value is None:
        expected(reading, node, field.type, field)
    return value


def expected(reading: Reading, node: Node, what: str, field: Field, hint: str = "") -> None:
    """Add the finding that a node is not of the type that was expected.

    What a secret field holds is not shown.
    """
    found = described(node)
    if isinstance(node, Scalar) and node.text and not field.secret and "null" not in found:
        found += f" {shown(node.text)}" if "string" in found else f" {node.text}"
        if node.style and what in ("int", "float"):
            bare = resolve(node.text)
            if isinstance(bare, int | float) and not isinstance(bare, bool):
                hint = hint or "remove the quotes"
    name = f"field {field.name}: " if field.name else ""
    reading.findings.at(node, f"expected_{what}", f"{name}expected {what} value, got {found}", hint)


def shown(text: str) -> str:
    """Return a value's text as a message shows it: quoted, on one line, and not too long."""
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}...")


def _plain(reading: Reading, node: Node) -> Any:
    try:
        return plain(node)
    except ValueError as e:
        reading.findings.at(node, "bad_tag", str(e))
        return None


def _string(reading: Reading, field: Field, node: Scalar, value: Any) -> Any:
    """Return a string field's value; any scalar is taken as its text, null as an empty one."""
    text = "" if value is None else value if isinstance(value, str) else node.text
    if field.duration:
        return _duration(reading, field, node, text)
    dynamic = field.interpolated and "${!" in text
    if field.mapping or dynamic:
        _check_code(reading, field, node, text)
    known = {option.lower() for option in field.options}
    if known and not dynamic and text.lower() not in known:
        found = "" if field.secret else f" {shown(text)}"
        reading.findings.at(
            node,
            "invalid_option",
            f"field {field.name}: value{found} is not one of {', '.join(field.options)}",
            did_you_mean(text, field.options),
        )
    return text


def _duration(reading: Reading, field: Field, node: Scalar, text: str) -> int | None:
    if not text:
        return None
    try:
        return parse_duration(text)
    except ValueError as e:
        reading.findings.at(node, "bad_duration", f"field {field.name}: {e}")
        return None


def _check_code(reading: Reading, field: Field, node: Scalar, text: str) -> None:
    """Compile a mapping or an interpolated string, to place what is wrong in it."""
    if not text.strip():
        return
    reading.code += len(text)
    if reading.code > MAX_CODE:
        message = f"the mappings of the config have, together, over {MAX_CODE:,} characters"
        hint = "read large tables from files, with `file`, or import them"
        reading.findings.at(node, "too_large", message, hint)
        return
    compile_ = compile_mapping if field.mapping else compile_interpolation
    if UNSET in text:
        _check_unset_code(reading, field, node, text, compile_)
        return
    try:
        code = compile_(text)
    except BloblangError as e:
        reading.findings.inside(node, (e.line, e.column), "bad_bloblang", e.message, e.suggestion)
        return
    for call in lacking_packages(code) if reading.options.packages else ():
        at = (call.line, call.column)
        message = lacking_text(call.what, call.packages)
        reading.findings.inside(node, at, "missing_package", message, install_hint(call.packages))
    for doubt in doubts(code, field.variables) if reading.options.thorough else ():
        at = (doubt.line, doubt.column)
        reading.findings.inside(node, at, "doubtful_bloblang", doubt.message, doubt.suggestion)


def _check_unset_code(
    reading: Reading,
    field: Field,
    node: Scalar,
    text: str,
    compile_: Callable[[str], Bloblang | Interpolation],
) -> None:
    """Check what does not hang on the values of variables that are not set."""
    try:
        found = list(compile_unset(text, compile_))
    except BloblangError as e:
        reading.findings.inside(node, (e.line, e.column), "bad_bloblang", e.message, e.suggestion)
        return
    if not found or not reading.options.thorough:
        return
    placed = [
        [
            (unfilled(text, filling, doubt.line, doubt.column), doubt)
            for doubt in doubts(code, field.variables)
            if not about_marks(doubt.message)
        ]
        for code, filling in found
    ]
    for at, doubt in common(placed, lambda one: (one[0], one[1].message)):
        reading.findings.inside(node, at, "doubtful_bloblang", doubt.message, doubt.suggestion)
