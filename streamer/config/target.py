"""A config as the target of a unit test: mocks put in, processors picked out, resources added."""

from __future__ import annotations

from collections.abc import Mapping as MappingType
from collections.abc import Sequence as SequenceType
from dataclasses import dataclass, field
from typing import Final

from streamer.config.assemble import assemble
from streamer.config.components import read_component
from streamer.config.env import replace_variables
from streamer.config.fields import read_fields
from streamer.config.file import read_file
from streamer.config.findings import Findings
from streamer.config.model import Config
from streamer.config.nodes import Mapping, Node, Sequence, described
from streamer.config.read import read_yaml
from streamer.config.reading import LintOptions, Reading
from streamer.config.resources import (
    Resources,
    check_references,
    read_resource_file,
    resources_of,
)
from streamer.config.sections import SECTIONS
from streamer.config.source import Source
from streamer.config.tree import Way, label_way, labelled_ways, node_at, pointer_way, put_at
from streamer.errors import ConfigError, StreamerError
from streamer.redaction import Redaction
from streamer.spec import Kind, Parsed, ParsedComponent

# As in Benthos: which variables there are is each test's own matter.
_OPTIONS: Final = LintOptions(check_variables=False)


@dataclass
class Target:
    """One config, read for one test.

    Attributes:
        path: its file.
        resources: its resources and those of the resource files, by kind and label.
    """

    path: str
    resources: Resources
    _root: Mapping = field(repr=False)
    _parsed: Parsed = field(repr=False)
    _reading: Reading = field(repr=False)
    _text: str = field(repr=False)

    @property
    def secrets(self) -> MappingType[str, str]:
        """What must not be seen, by what is shown instead: what variables hold, and secrets."""
        return self._reading.findings.secrets

    def config(self) -> Config:
        """Return the whole config.

        Raises:
            ConfigError: there is something wrong with it, or with a resource file or a mock.
        """
        if self._reading.findings:
            raise ConfigError(self._reading.findings.sorted())
        return assemble(
            self._parsed, self.resources, self.path, self._text, self._reading.findings.secrets
        )

    def processors(self, name: str) -> tuple[ParsedComponent, ...]:
        """Return the processors at a JSON Pointer (one, or a list), or the one with a label.

        Raises:
            StreamerError: there are none; the text says what is there instead.
            ConfigError: there is something wrong with them.
        """
        way = _way(self._root, self._reading, name, self.path)
        try:
            node = node_at(self._root, way)
        except ValueError as e:
            text = f"{self.path}: no processors at {name}: {e}"
            raise StreamerError(Redaction(self.secrets).text(text)) from None
        nodes = node.items if isinstance(node, Sequence) else [node]
        path = ".".join(way)
        # The config's own findings do not matter here, as long as the processors have none.
        reading = _reading(self.secrets)
        found = [
            read_component(
                reading, Kind.PROCESSOR, item, f"{path}.{i}" if item is not node else path
            )
            for i, item in enumerate(nodes)
        ]
        if reading.findings:
            raise ConfigError(reading.findings.sorted())
        return tuple(component for component in found if component is not None)


def open_target(
    path: str,
    env: MappingType[str, str],
    mocks: MappingType[str, Node] | None = None,
    resource_files: SequenceType[str] = (),
) -> Target:
    """Read a config for a test.

    Args:
        path: its file.
        env: the environment's variables; those that are missing are empty.
        mocks: what to put in the place of components, by label or JSON Pointer.
        resource_files: files with further resources.

    Raises:
        ConfigError: a file cannot be read at all, or there is something wrong with a resource.
        StreamerError: there is nothing in the place of a mock.
    """
    root, text, secrets = _tree(path, env)
    reading = _reading(secrets)
    parsed = read_fields(reading, SECTIONS, root, "", root)
    if mocks:
        _put_mocks(root, reading, path, mocks)
        reading = _reading(reading.findings.secrets)
        parsed = read_fields(reading, SECTIONS, root, "", root)
    resources = resources_of(reading, parsed, root)
    roots = [root]
    for file in resource_files:
        more, tree = read_resource_file(reading, file, env)
        resources |= more
        roots += [tree] if tree is not None else []
    check_references(reading, roots)
    wrong = [lint for lint in reading.findings.sorted() if lint.file in resource_files]
    if wrong:
        raise ConfigError(wrong)
    return Target(path, resources, root, parsed, reading, text)


def _reading(secrets: MappingType[str, str]) -> Reading:
    """Begin to read, knowing what findings must not show."""
    findings = Findings()
    findings.secrets |= secrets
    return Reading(findings, read_component, _OPTIONS)


def _tree(path: str, env: MappingType[str, str]) -> tuple[Mapping, str, MappingType[str, str]]:
    text = read_file(path)
    findings = Findings()
    source = Source(path, text)
    replace_variables(source, env, findings, check=False)
    root = read_yaml(source, findings)
    if root is not None and not isinstance(root, Mapping):
        findings.at(root, "expected_object", f"a config is an object, got {described(root)}")
    if findings or not isinstance(root, Mapping):
        raise ConfigError(findings.sorted())
    return root, text, findings.secrets


def _put_mocks(root: Mapping, reading: Reading, path: str, mocks: MappingType[str, Node]) -> None:
    """Replace components; one without a label of its own takes over that of the replaced one."""
    ways = {name: _way(root, reading, name, path) for name in mocks}
    # Pointers first: what they replace may hold labels that are then no longer there.
    for name, mock in sorted(mocks.items(), key=lambda item: not item[0].startswith("/")):
        try:
            put_at(root, ways[name], _labelled_as(_found(root, ways[name]), mock))
        except ValueError as e:
            text = f"{path}: nothing to mock at {name}: {e}"
            raise StreamerError(Redaction(reading.findings.secrets).text(text)) from None


def _found(root: Mapping, way: Way) -> Node | None:
    try:
        return node_at(root, way)
    except ValueError:
        return None  # what is put there may be made


def _labelled_as(replaced: Node | None, mock: Node) -> Node:
    """Give a mock the label of what it replaces, unless it has one."""
    label = replaced.entries.get("label") if isinstance(replaced, Mapping) else None
    if label is None or not isinstance(mock, Mapping) or "label" in mock.entries:
        return mock
    return Mapping(mock.source, mock.start, mock.end, {"label": label, **mock.entries})


def _way(root: Mapping, reading: Reading, name: str, path: str) -> Way:
    if name.startswith("/"):
        return pointer_way(name)
    label = reading.labels.get(name)
    if label is not None and label.source is root.source:
        return label_way(root, label)
    # A component that is not known has no label in the reading, and may be mocked for that.
    ways = [way for way in labelled_ways(root, name) if way[0] != "tests"]
    if ways:
        return ways[0]
    known = sorted(key for key, value in reading.labels.items() if value.source is root.source)
    text = (
        f"{path}: no component has the label {name!r}; found "
        f"{', '.join(known) if known else 'no labels'}; resources of other files cannot be "
        "tested or mocked"
    )
    raise StreamerError(Redaction(reading.findings.secrets).text(text))
