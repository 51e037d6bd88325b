"""Configs with components that there are not: what can be read of them all the same."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, field
from typing import Any

from streamer.config.components import read_component
from streamer.config.env_variables import replace_variables
from streamer.config.fields import read_fields
from streamer.config.file import read_config_text
from streamer.config.findings import Findings
from streamer.config.known_names import suggest_available
from streamer.config.nodes import Mapping, Node
from streamer.config.read_context import LintOptions, ReadContext
from streamer.config.sections import SECTIONS
from streamer.config.source_map import Source
from streamer.config.yaml_reader import read_yaml
from streamer.core.errors import ConfigError
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import child_components, find_leaves

_OPTIONS = LintOptions(check_variables=False, packages=False)


@dataclass(frozen=True, slots=True)
class MissingComponent:
    """A component that a config names and that there is not.

    Attributes:
        kind: the kind.
        name: the name.
        line: where it is named, 1-based.
        column: the same, 1-based.
        is_known: whether Benthos or Redpanda Connect has it.
        replacement: what to use instead; empty when there is nothing to say.
    """

    kind: Kind
    name: str
    line: int
    column: int
    is_known: bool
    replacement: str


@dataclass(frozen=True)
class PartialConfig:
    """A config, as far as it can be read.

    Attributes:
        path: its file.
        text: the file's text, without the values of variables.
        missing: the components that there are not, in the order of the file.
    """

    path: str
    text: str
    missing: tuple[MissingComponent, ...]
    _root: Mapping = field(repr=False)
    _parsed: ParsedFields = field(repr=False)

    @property
    def sections(self) -> frozenset[str]:
        """The names of the sections that the file has."""
        return frozenset(self._root.entries)

    def section(self, name: str) -> Any:
        """Return the value of a section, with its defaults; None where it cannot be read."""
        return self._parsed[name]

    def line_of(self, *names: str) -> int:
        """Return the line of a field, by its names from the top; 0 where the file has none."""
        node: Node = self._root
        line = 0
        for name in names:
            if not isinstance(node, Mapping) or name not in node.entries:
                return 0
            key, node = node.entries[name]
            line = key.source.locate(key.start)[0]
        return line

    def components(self) -> Iterator[ParsedComponent]:
        """Give all components that there are, those inside of others after these."""
        pending = [
            one
            for name in self._parsed
            if name != "tests"
            for one in find_leaves(self._parsed[name], ParsedComponent)
        ]
        while pending:
            component = pending.pop(0)
            yield component
            pending[:0] = [*child_components(component), *component.processors]


def read_partial_config(path: str, env: MappingType[str, str]) -> PartialConfig:
    """Read a config as far as that is possible.

    Args:
        path: its file.
        env: the environment's variables; those that are missing are empty.

    Raises:
        ConfigError: the file cannot be read, or is no YAML object.
    """
    text = read_config_text(path)
    findings = Findings()
    source = Source(path, text)
    replace_variables(source, env, findings, check=False)
    root = read_yaml(source, findings)
    if root is None and not findings:
        root = Mapping(source, 0, 0)
    if not isinstance(root, Mapping):
        if not findings:
            findings.add_at_offset(source, 0, "expected_object", "a config is an object")
        raise ConfigError(findings.to_sorted())
    context = ReadContext(findings, read_component, _OPTIONS)
    parsed = read_fields(context, SECTIONS, root, "", root)
    missing = tuple(
        MissingComponent(
            one.kind,
            one.key.text,
            *one.key.source.locate(one.key.start),
            one.is_known,
            suggest_available(one.kind, one.key.text) if one.is_known else "",
        )
        for one in context.missing
    )
    return PartialConfig(path, text, missing, root, parsed)
