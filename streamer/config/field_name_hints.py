"""Hints for a name that is no field: a text without quotes, or a field in another place."""

from __future__ import annotations

from collections.abc import Iterable

from streamer.config.nodes import Mapping, Node, Scalar
from streamer.sdk.spec import Field


def suggest_quotes(name: str, value: Node) -> str:
    """Return a hint for a part of a text that YAML has ended, `{query: select a, b from c}`."""
    is_part = " " in name and isinstance(value, Scalar) and not (value.text or value.style)
    return "a comma ends a text within { }: write the text in quotes" if is_part else ""


def suggest_parent(name: str, fields: Iterable[Field], node: Mapping) -> str:
    """Return a hint for a field that stands beside the one that it belongs into."""
    parents = [
        field.name
        for field in fields
        if field.shape == "scalar" and any(child.name == name for child in field.children)
    ]
    written = [parent for parent in parents if parent in node.entries]
    (parent,) = written if len(written) == 1 else parents if len(parents) == 1 else ("",)
    return f"indent it, so that it is below {parent}" if parent else ""
