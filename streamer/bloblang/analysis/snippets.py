"""Expressions of a mapping: their shapes, to compare them, and their texts, to quote them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Final

from streamer.bloblang import tree

_TOKEN: Final = re.compile(r'"""[\s\S]*?"""|"(?:[^"\\]|\\.)*"|#[^\n]*|[()]')


def describe_shape(node: Any) -> Any:
    """Return what a part of a tree says, wherever it stands."""
    if is_dataclass(node) and not isinstance(node, type):
        names = [each.name for each in fields(node) if each.name not in ("place", "end", "bound")]
        return (type(node).__name__, *(describe_shape(getattr(node, name)) for name in names))
    return [describe_shape(item) for item in node] if isinstance(node, list | tuple) else node


def extract_snippet(node: tree.Method, text: str) -> str:
    """Return what the mapping says of a method and all that is before it, on one line.

    Args:
        node: the method.
        text: the mapping.
    """
    places = [part.place for part in _walk_written(node)]
    begin = min(places, key=lambda place: (place.line, place.column))
    start = _text_offset(text, begin)
    end = _find_call_end(text, _text_offset(text, node.end or node.place))
    # The expression may stand in brackets, of which the tree knows nothing.
    while (brackets := _find_brackets(text[start:end])).count(")") > brackets.count("("):
        start = text.rfind("(", 0, start)
        if start < 0:
            break
    return " ".join(text[max(start, 0) : end].split())


def _walk_written(node: Any) -> Iterator[Any]:
    """Return the parts of an expression that are written where it stands."""
    yield node
    if not (isinstance(node, tree.Method) and node.alias):
        for part in tree.list_children(node):
            yield from _walk_written(part)


def _find_brackets(text: str) -> list[str]:
    return [token[0] for token in _TOKEN.finditer(text)]


def _find_call_end(text: str, start: int) -> int:
    """Return where a call that begins at its name ends."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        depth += (token[0] == "(") - (token[0] == ")")
        if token[0] == ")" and depth == 0:
            return token.end()
    return len(text)


def _text_offset(text: str, place: tree.Place) -> int:
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: place.line - 1]) + place.column - 1
