"""Annotations of a function's first parameter: what the function takes.

They are read from text where a config is checked, and from the function where it is called; nothing
is imported for them, so that a check needs neither pandas nor polars.
"""

from __future__ import annotations

import ast
import types
import typing
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final


class Takes(StrEnum):
    """The form in which a function takes a message, or all messages of a batch."""

    DICT = "dict"
    MESSAGE = "Message"
    DICTS = "list[dict]"
    MESSAGES = "list[Message]"
    ARROW = "pyarrow.Table"
    PANDAS = "pandas.DataFrame"
    POLARS = "polars.DataFrame"

    @property
    def is_single(self) -> bool:
        """Whether the function is called for each message by itself."""
        return self in (Takes.DICT, Takes.MESSAGE)

    @property
    def package(self) -> str:
        """The package that is needed to call the function; empty for none."""
        return self.value.partition(".")[0] if "." in self.value else ""


EXPECTED_TEXT: Final = (
    "expected dict, Message, list[dict], list[Message], pyarrow.Table, pandas.DataFrame or "
    "polars.DataFrame"
)
_FRAMES: Final = {
    ("pyarrow", "Table"): Takes.ARROW,
    ("pandas", "DataFrame"): Takes.PANDAS,
    ("polars", "DataFrame"): Takes.POLARS,
}
_LISTS: Final = frozenset({"list", "List", "Sequence", "Iterable"})
_DICTS: Final = frozenset({"dict", "Dict", "Mapping", "MutableMapping"})


def read_annotation(node: ast.expr, imports: Mapping[str, str]) -> Takes | None:
    """Return what a parameter with an annotation takes; None where it is none of these.

    Args:
        node: the annotation.
        imports: what names stand for, as they were imported: `pd` for `pandas`.

    Example:
        >>> node = ast.parse("list[dict[str, int]]", mode="eval").body
        >>> str(read_annotation(node, {}))
        'list[dict]'
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return read_annotation(ast.parse(node.value, mode="eval").body, imports)
        except SyntaxError:
            return None
    if isinstance(node, ast.Subscript):
        name = _dotted_name(node.value, imports).rpartition(".")[2]
        if name in _DICTS:
            return Takes.DICT
        if name not in _LISTS:
            return None
        return _list_of(read_annotation(node.slice, imports))
    return _by_name(_dotted_name(node, imports))


def read_type(annotation: Any, names: Mapping[str, Any]) -> Takes | None:
    """Return what a parameter with an annotation takes; None where it is none of these.

    Args:
        annotation: the type, or its text.
        names: the globals of the function.
    """
    if isinstance(annotation, str):
        try:
            node = ast.parse(annotation, mode="eval").body
        except SyntaxError:
            return None
        return read_annotation(node, {name: _name_of(value) for name, value in names.items()})
    origin = typing.get_origin(annotation)
    if origin is None:
        return _by_name(_name_of(annotation))
    name = _name_of(origin).rpartition(".")[2]
    if name.lower() == "dict" or name in _DICTS:
        return Takes.DICT
    arguments = typing.get_args(annotation)
    if name in _LISTS and len(arguments) == 1:
        return _list_of(read_type(arguments[0], names))
    return None


def _list_of(item: Takes | None) -> Takes | None:
    return {Takes.DICT: Takes.DICTS, Takes.MESSAGE: Takes.MESSAGES}.get(item) if item else None


def _name_of(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return value.__name__
    if isinstance(value, type | Callable):
        module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
        return f"{module}.{name}"
    return ""


def _dotted_name(node: ast.expr, imports: Mapping[str, str]) -> str:
    if isinstance(node, ast.Name):
        return imports.get(node.id) or node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted_name(node.value, imports)}.{node.attr}"
    return ""


def _by_name(name: str) -> Takes | None:
    package, last = name.partition(".")[0], name.rpartition(".")[2]
    if (package, last) in _FRAMES:
        return _FRAMES[package, last]
    if last in _DICTS and package in ("dict", "Dict", "builtins", "typing", "collections"):
        return Takes.DICT
    is_message = last == "Message" and package in ("Message", "streamer")
    return Takes.MESSAGE if is_message else None
