"""The tree that a YAML text is read into: merge keys and aliases resolved, offsets kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from streamer.config.source_map import Source
from streamer.core.yaml_scalars import resolve_scalar

SECRET_STYLE: Final = "$"
"""The style of a scalar with a secret, quoted or not: it is a text, whatever the secret is."""


@dataclass(slots=True, eq=False)
class Node:
    """A value in the text.

    Attributes:
        source: the text that it stands in.
        start: offset of its first character; `end` is one past its last.
    """

    source: Source
    start: int
    end: int


@dataclass(slots=True, eq=False)
class Scalar(Node):
    """A scalar; `style` is empty for a plain one, else the character that YAML marks it with.

    One that has a secret is a text, and its style `SECRET_STYLE` outside of blocks; `marked` is
    its text with marks in the place of secrets.
    """

    text: str
    style: str = ""
    tag: str = ""
    marked: str = ""

    @property
    def value(self) -> Any:
        """The value that the text stands for, by its style and tag."""
        return resolve_scalar(self.text, self.style, self.tag)


@dataclass(slots=True, eq=False)
class Sequence(Node):
    """A list."""

    items: list[Node] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Mapping(Node):
    """A map, in the order of the text; every key is there once."""

    entries: dict[str, tuple[Scalar, Node]] = field(default_factory=dict)


def to_python(node: Node) -> Any:
    """Return the node as Python values: None, bool, int, float, str, list and dict.

    Raises:
        ValueError: a tag does not fit its text.
    """
    if isinstance(node, Mapping):
        return {key: to_python(value) for key, (_, value) in node.entries.items()}
    if isinstance(node, Sequence):
        return [to_python(item) for item in node.items]
    assert isinstance(node, Scalar)
    return node.value


def from_python(value: Any, source: Source, at: int = 0) -> Node:
    """Return the node of Python values, as if they had been written at an offset of a source."""
    if isinstance(value, dict):
        keys = {str(key): item for key, item in value.items()}
        return Mapping(
            source,
            at,
            at,
            {
                key: (Scalar(source, at, at, key), from_python(v, source, at))
                for key, v in keys.items()
            },
        )
    if isinstance(value, list | tuple):
        return Sequence(source, at, at, [from_python(item, source, at) for item in value])
    if isinstance(value, str):
        return Scalar(source, at, at, value, '"')
    if value is None or isinstance(value, bool):
        return Scalar(source, at, at, {None: "null", True: "true", False: "false"}[value])
    return Scalar(source, at, at, repr(value))


def describe_node(node: Node) -> str:
    """Return in a word or two what a node is; of a scalar, its value is not shown."""
    if isinstance(node, Mapping):
        return "an object"
    if isinstance(node, Sequence):
        return "an array"
    assert isinstance(node, Scalar)
    try:
        value = node.value
    except ValueError:
        return "a value"
    if value is None:
        return "nothing" if node.text == "" else "null"
    if isinstance(value, bool):
        return "a bool"
    if isinstance(value, int | float):
        return "a number"
    return "a string"
