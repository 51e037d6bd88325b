"""Places in a config's tree: JSON Pointers, labels, and putting something else there."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.config.nodes import Mapping, Node, Scalar, Sequence, described

Way = tuple[str, ...]
"""The keys and indexes that lead from the root to a node."""


def pointer_way(pointer: str) -> Way:
    """Return the way that a JSON Pointer (RFC 6901) names.

    Raises:
        ValueError: it does not begin with a slash.
    """
    if not pointer.startswith("/"):
        raise ValueError(f"a JSON Pointer begins with a slash, found {pointer!r}")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def node_at(root: Node, way: Way) -> Node:
    """Return the node at the end of a way.

    Raises:
        ValueError: there is none; the text says how far the way leads, and what is there.
    """
    node = root
    for depth, part in enumerate(way):
        found = _child(node, part)
        if found is None:
            here = "/" + "/".join(way[:depth]) if depth else "the config"
            raise ValueError(f"there is no {part!r} in {here}, which {_holds(node)}")
        node = found
    return node


def put_at(root: Node, way: Way, value: Node) -> None:
    """Put a node in the place of the one at the end of a way.

    Raises:
        ValueError: there is none to replace.
    """
    node_at(root, way)
    parent, last = node_at(root, way[:-1]), way[-1]
    if isinstance(parent, Mapping):
        parent.entries[last] = (parent.entries[last][0], value)
    elif isinstance(parent, Sequence):
        parent.items[int(last)] = value


def label_way(root: Node, label: Scalar) -> Way:
    """Return the way to the component whose label is a node of the tree."""
    return next(way[:-1] for way, node in _walk(root, ()) if node is label)


def labelled_ways(root: Node, label: str) -> Iterator[Way]:
    """Return the ways to all objects that have the field `label` with a text."""
    for way, node in _walk(root, ()):
        if way and way[-1] == "label" and isinstance(node, Scalar) and node.text == label:
            yield way[:-1]


def _walk(node: Node, way: Way) -> Iterator[tuple[Way, Node]]:
    yield way, node
    if isinstance(node, Mapping):
        for key, (_, value) in node.entries.items():
            yield from _walk(value, (*way, key))
    elif isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            yield from _walk(item, (*way, str(index)))


def _child(node: Node, part: str) -> Node | None:
    if isinstance(node, Mapping):
        return node.entries[part][1] if part in node.entries else None
    if isinstance(node, Sequence) and part.isdecimal() and int(part) < len(node.items):
        return node.items[int(part)]
    return None


def _holds(node: Node) -> str:
    if isinstance(node, Mapping):
        return f"has {', '.join(node.entries)}" if node.entries else "is empty"
    if isinstance(node, Sequence):
        many = len(node.items)
        return f"is a list of {many} item{'' if many == 1 else 's'}"
    return f"is {described(node)}"
