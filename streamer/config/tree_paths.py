"""Places in a config's tree: JSON Pointers, labels, and putting something else there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.config.nodes import Mapping, Node, Scalar, Sequence, describe_node

TreePath = tuple[str, ...]
"""The keys and indexes that lead from the root to a node."""

_SECTIONS: Final = ("input", "buffer", "pipeline", "output")
_KINDS: Final = ("input", "processor", "output", "cache", "rate_limit", "table")
_OPTIONAL_OBJECTS: Final = {(name,) for name in _SECTIONS}
_OPTIONAL_LISTS: Final = {
    *((f"{kind}_resources",) for kind in _KINDS),
    *((name, "processors") for name in ("input", "pipeline", "output")),
}


def parse_pointer(pointer: str) -> TreePath:
    """Return the way that a JSON Pointer (RFC 6901) names.

    Raises:
        ValueError: it does not begin with a slash.
    """
    if not pointer.startswith("/"):
        raise ValueError(f"a JSON Pointer begins with a slash, found {pointer!r}")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def get_node_at(root: Node, tree_path: TreePath) -> Node:
    """Return the node at the end of a way.

    Raises:
        ValueError: there is none; the text says how far the way leads, and what is there.
    """
    node = root
    for depth, part in enumerate(tree_path):
        child = _find_child(node, part)
        if child is None:
            here = "/" + "/".join(tree_path[:depth]) if depth else "the config"
            raise ValueError(f"there is no {part!r} in {here}, which {_describe_contents(node)}")
        node = child
    return node


def put_at(root: Node, tree_path: TreePath, value: Node) -> None:
    """Put a node in the place of the one at the end of a way.

    As in Benthos, `-` is the place behind the last item of a list, an object that is put in the
    place of a list becomes its only item, and sections and lists of processors that are left out
    of a config are made.

    Raises:
        ValueError: there is none to replace.
    """
    _make_missing(root, tree_path, value)
    parent, last = get_node_at(root, tree_path[:-1]), tree_path[-1]
    if isinstance(parent, Sequence) and last == "-":
        parent.items.append(value)
        return
    replaced = get_node_at(root, tree_path)
    if isinstance(replaced, Sequence) and isinstance(value, Mapping):
        value = Sequence(value.source, value.start, value.end, [value])
    if isinstance(parent, Mapping):
        parent.entries[last] = (parent.entries[last][0], value)
    elif isinstance(parent, Sequence):
        parent.items[int(last)] = value


def _make_missing(root: Node, tree_path: TreePath, value: Node) -> None:
    """Make what may be left out on a way: a section, and a list of processors in one."""
    node: Node | None = root
    for depth, part in enumerate(tree_path):
        if not isinstance(node, Mapping):
            return
        here = tree_path[: depth + 1]
        if part not in node.entries and here in _OPTIONAL_LISTS | _OPTIONAL_OBJECTS:
            kind = Sequence if here in _OPTIONAL_LISTS else Mapping
            key = Scalar(value.source, value.start, value.start, part)
            node.entries[part] = (key, kind(value.source, value.start, value.end))
        node = _find_child(node, part)


def find_label_path(root: Node, label: Scalar) -> TreePath:
    """Return the way to the component whose label is a node of the tree."""
    return next(tree_path[:-1] for tree_path, node in _walk(root, ()) if node is label)


def find_labelled_paths(root: Node, label: str) -> Iterator[TreePath]:
    """Return the ways to all objects that have the field `label` with a text."""
    for tree_path, node in _walk(root, ()):
        if (
            tree_path
            and tree_path[-1] == "label"
            and isinstance(node, Scalar)
            and node.text == label
        ):
            yield tree_path[:-1]


def _walk(node: Node, tree_path: TreePath) -> Iterator[tuple[TreePath, Node]]:
    yield tree_path, node
    if isinstance(node, Mapping):
        for key, (_, value) in node.entries.items():
            yield from _walk(value, (*tree_path, key))
    elif isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            yield from _walk(item, (*tree_path, str(index)))


def _find_child(node: Node, part: str) -> Node | None:
    if isinstance(node, Mapping):
        return node.entries[part][1] if part in node.entries else None
    if isinstance(node, Sequence) and part.isdecimal() and int(part) < len(node.items):
        return node.items[int(part)]
    return None


def _describe_contents(node: Node) -> str:
    if isinstance(node, Mapping):
        return f"has {', '.join(node.entries)}" if node.entries else "is empty"
    if isinstance(node, Sequence):
        many = len(node.items)
        return f"is a list of {many} item{'' if many == 1 else 's'}"
    return f"is {describe_node(node)}"
