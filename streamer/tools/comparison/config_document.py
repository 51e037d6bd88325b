"""A config as plain values, with variables, `--set` and resources in, and each value's place."""

from __future__ import annotations

import os
from collections.abc import Mapping as MappingType
from collections.abc import Sequence as SequenceType
from dataclasses import dataclass
from typing import Any

from streamer.config.file import read_config_text
from streamer.config.findings import Findings
from streamer.config.nodes import Mapping, Node, Sequence, to_python
from streamer.config.set_option import apply_set
from streamer.config.source_map import Source
from streamer.config.yaml_reader import read_source
from streamer.core.errors import ConfigError, StreamerError
from streamer.sdk.spec import NO_PLACE

Path = tuple[str | int, ...]
"""The way to a value: names of fields, and places in lists."""


@dataclass(frozen=True)
class ConfigDocument:
    """A config that a program is to run.

    Attributes:
        values: its sections.
        root: the tree of its main file, for places.
    """

    values: MappingType[str, Any]
    root: Mapping

    def locate(self, path: Path) -> str:
        """Return `file(line,column)` of a value, or of the nearest one that it stands in."""
        node: Node = self.root
        for part in path:
            child = _find_child(node, part)
            if child is None:
                break
            node = child
        place = node.source.locate(node.start)
        name = node.source.name or "config"
        return name if place == NO_PLACE else f"{name}({place.line},{place.column})"


def read_document(
    path: str | None, sets: SequenceType[str], resources: SequenceType[str]
) -> ConfigDocument:
    """Return the document of a config's file; its components need not be known here.

    Args:
        path: the file; None for the empty config.
        sets: `path=value` expressions.
        resources: files whose resources it has as well.

    Raises:
        ConfigError: a file cannot be read, or is no YAML.
        StreamerError: a file is no object.
    """
    root = _read_tree(path)
    findings = Findings()
    for expression in sets:
        apply_set(root, expression, findings)
    _check(findings)
    values: dict[str, Any] = to_python(root)
    for one in resources:
        for name, items in to_python(_read_tree(one)).items():
            if name.endswith("_resources"):
                values[name] = [*(values.get(name) or []), *(items or [])]
    return ConfigDocument(values, root)


def _read_tree(path: str | None) -> Mapping:
    findings = Findings()
    text = "{}" if path is None else read_config_text(path)
    _, root = read_source(Source(path or "", text), os.environ, findings)
    _check(findings)
    if not isinstance(root, Mapping):
        raise StreamerError(f"{path} is no config; expected an object, such as `input: …`")
    return root


def _check(findings: Findings) -> None:
    if findings.harmful_count:
        raise ConfigError(findings.to_sorted())


def _find_child(node: Node, part: str | int) -> Node | None:
    if isinstance(node, Mapping):
        entry = node.entries.get(str(part))
        return None if entry is None else entry[1]
    if isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
        return node.items[part]
    return None
