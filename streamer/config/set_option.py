"""`--set path=value`: fields of a config that the command line gives."""

from __future__ import annotations

from typing import Final

from streamer.config.findings import Findings
from streamer.config.nodes import Mapping, Node, Scalar, Sequence, describe_node
from streamer.config.source_map import Source
from streamer.config.yaml_reader import read_yaml

_EXPECTED_FORM: Final = "expected path=value, such as pipeline.threads=2"


def apply_set(root: Mapping, expression: str, findings: Findings) -> None:
    """Put the value of one `path=value` into a config's tree.

    The path is dotted; `~1` in it stands for a dot and `~0` for `~`, an index or `-` (a new item)
    goes into a list, and negative indexes count from the end, all as in Benthos. The value is
    YAML. Findings about it name `--set` and the path as their file, never the value, which may be
    a secret.

    Args:
        root: changed in place.
        expression: what the user wrote.
        findings: gets what is wrong.
    """
    path, equals, text = expression.partition("=")
    source = Source(f"--set {path}", text, lenient=True)
    if not equals or not path or not text:
        findings.add_at_offset(source, 0, "bad_set", "there is no value", _EXPECTED_FORM)
        return
    value = read_yaml(source, findings)
    if value is None:
        return
    parts = [part.replace("~1", ".").replace("~0", "~") for part in path.split(".")]
    problem = _put_value(root, parts, value)
    if problem:
        findings.add_at_offset(source, 0, "bad_set", problem)


def _put_value(node: Node, parts: list[str], value: Node) -> str:
    """Walk to the last part, making maps and list items on the way; returns what is wrong."""
    for depth, part in enumerate(parts):
        here = ".".join(parts[:depth]) or "the config"
        following = value if depth == len(parts) - 1 else _make_empty_node(value, parts[depth + 1])
        if isinstance(node, Sequence):
            item = _put_item(node, part, following, depth == len(parts) - 1)
            if item is None:
                many = f"{len(node.items)} item{'' if len(node.items) == 1 else 's'}"
                return f"{here} is a list of {many}; expected an index, or - to add, found {part}"
            node = item
        elif isinstance(node, Mapping):
            key, old = node.entries.get(part, (Scalar(value.source, 0, 0, part), None))
            empty = isinstance(old, Scalar) and old.value is None
            keep = old is not None and not empty and depth < len(parts) - 1
            child = old if keep and old is not None else following
            node.entries[part] = (key, child)
            node = child
        else:
            return f"{here} is {describe_node(node)}, which has no field {part}"
    return ""


def _put_item(node: Sequence, part: str, following: Node, last: bool) -> Node | None:
    if part == "-":
        node.items.append(following)
        return following
    try:
        index = int(part)
    except ValueError:
        return None
    index = index + len(node.items) if index < 0 else index
    if not 0 <= index < len(node.items):
        return None
    if last:
        node.items[index] = following
    return node.items[index]


def _make_empty_node(value: Node, part: str) -> Node:
    """Return what a missing field is made as: a list when the path goes on with a new item."""
    return (Sequence if part == "-" else Mapping)(value.source, 0, 0)
