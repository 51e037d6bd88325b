"""A config as the target of a unit test: mocks put in, processors picked out, resources added."""

from __future__ import annotations

from collections.abc import Mapping as MappingType
from collections.abc import Sequence as SequenceType
from dataclasses import dataclass, field
from typing import Final

from streamer.config.components import read_component
from streamer.config.env_variables import replace_variables
from streamer.config.fields import read_fields
from streamer.config.file import read_config_text
from streamer.config.findings import Findings
from streamer.config.load import assemble_config
from streamer.config.model import Config
from streamer.config.nodes import Mapping, Node, Sequence, describe_node
from streamer.config.read_context import LintOptions, ReadContext
from streamer.config.resources import (
    Resources,
    ResourceText,
    check_references,
    collect_resources,
    read_resource_file,
)
from streamer.config.sections import SECTIONS
from streamer.config.source_map import Source
from streamer.config.tree_paths import (
    TreePath,
    find_label_path,
    find_labelled_paths,
    get_node_at,
    parse_pointer,
    put_at,
)
from streamer.config.yaml_reader import read_yaml
from streamer.core.errors import ConfigError, StreamerError
from streamer.core.redaction import Redaction
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields

# As in Benthos: which variables there are is each test's own matter.
_OPTIONS: Final = LintOptions(check_variables=False)


@dataclass
class TestedConfig:
    """One config, read for one test.

    Attributes:
        path: its file.
        resources: its resources and those of the resource files, by kind and label.
    """

    path: str
    resources: Resources
    _root: Mapping = field(repr=False)
    _parsed: ParsedFields = field(repr=False)
    _context: ReadContext = field(repr=False)
    _text: str = field(repr=False)

    @property
    def secrets(self) -> MappingType[str, str]:
        """Secrets and values of variables, by the text that is shown instead."""
        return self._context.findings.secrets

    def build_config(self) -> Config:
        """Return the whole config.

        Raises:
            ConfigError: there is something wrong with it, or with a resource file or a mock.
        """
        if self._context.findings:
            raise ConfigError(self._context.findings.to_sorted())
        return assemble_config(
            self._parsed, self.resources, self.path, self._text, self._context.findings.secrets
        )

    def read_processors(self, name: str) -> tuple[ParsedComponent, ...]:
        """Return the processors at a JSON Pointer (one, or a list), or the one with a label.

        Raises:
            StreamerError: there are none; the text says what is there instead.
            ConfigError: there is something wrong with them.
        """
        tree_path = _find_path(self._root, self._context, name, self.path)
        try:
            node = get_node_at(self._root, tree_path)
        except ValueError as e:
            text = f"{self.path}: no processors at {name}: {e}"
            raise StreamerError(Redaction(self.secrets).redact_text(text)) from None
        nodes = node.items if isinstance(node, Sequence) else [node]
        path = ".".join(tree_path)
        # The config's own findings do not matter here, as long as the processors have none.
        context = _make_context(self.secrets)
        components = [
            read_component(
                context, Kind.PROCESSOR, item, f"{path}.{i}" if item is not node else path
            )
            for i, item in enumerate(nodes)
        ]
        if context.findings:
            raise ConfigError(context.findings.to_sorted())
        return tuple(component for component in components if component is not None)


def open_tested_config(
    path: str,
    env: MappingType[str, str],
    mocks: MappingType[str, Node] | None = None,
    resource_files: SequenceType[str | ResourceText] = (),
) -> TestedConfig:
    """Read a config for a test.

    Args:
        path: its file.
        env: the environment's variables; those that are missing are empty.
        mocks: what to put in the place of components, by label or JSON Pointer.
        resource_files: files with further resources, or their texts.

    Raises:
        ConfigError: a file cannot be read at all, or there is something wrong with a resource.
        StreamerError: there is nothing in the place of a mock.
    """
    root, text, secrets = _read_tree(path, env)
    context = _make_context(secrets)
    parsed = read_fields(context, SECTIONS, root, "", root)
    if mocks:
        _put_mocks(root, context, path, mocks)
        context = _make_context(context.findings.secrets)
        parsed = read_fields(context, SECTIONS, root, "", root)
    resources = collect_resources(context, parsed, root)
    roots = [root]
    for file in resource_files:
        more, tree = read_resource_file(context, file, env)
        resources |= more
        roots += [tree] if tree is not None else []
    check_references(context, roots)
    names = {one.name if isinstance(one, ResourceText) else one for one in resource_files}
    wrong = [lint for lint in context.findings.to_sorted() if lint.file in names]
    if wrong:
        raise ConfigError(wrong)
    return TestedConfig(path, resources, root, parsed, context, text)


def _make_context(secrets: MappingType[str, str]) -> ReadContext:
    """Begin to read, knowing what findings must not show."""
    findings = Findings()
    findings.secrets |= secrets
    return ReadContext(findings, read_component, _OPTIONS)


def _read_tree(path: str, env: MappingType[str, str]) -> tuple[Mapping, str, MappingType[str, str]]:
    text = read_config_text(path)
    findings = Findings()
    source = Source(path, text)
    replace_variables(source, env, findings, check=False)
    root = read_yaml(source, findings)
    if root is not None and not isinstance(root, Mapping):
        findings.add_at(
            root, "expected_object", f"a config is an object, got {describe_node(root)}"
        )
    if findings or not isinstance(root, Mapping):
        raise ConfigError(findings.to_sorted())
    return root, text, findings.secrets


def _put_mocks(
    root: Mapping, context: ReadContext, path: str, mocks: MappingType[str, Node]
) -> None:
    """Replace components; one without a label of its own takes over that of the replaced one."""
    tree_paths = {name: _find_path(root, context, name, path) for name in mocks}
    # Pointers first: what they replace may hold labels that are then no longer there.
    for name, mock in sorted(mocks.items(), key=lambda item: not item[0].startswith("/")):
        try:
            put_at(root, tree_paths[name], _copy_label(_find_node(root, tree_paths[name]), mock))
        except ValueError as e:
            text = f"{path}: nothing to mock at {name}: {e}"
            raise StreamerError(Redaction(context.findings.secrets).redact_text(text)) from None


def _find_node(root: Mapping, tree_path: TreePath) -> Node | None:
    try:
        return get_node_at(root, tree_path)
    except ValueError:
        return None  # what is put there may be made


def _copy_label(replaced: Node | None, mock: Node) -> Node:
    """Give a mock the label of what it replaces, unless it has one."""
    label = replaced.entries.get("label") if isinstance(replaced, Mapping) else None
    if label is None or not isinstance(mock, Mapping) or "label" in mock.entries:
        return mock
    return Mapping(mock.source, mock.start, mock.end, {"label": label, **mock.entries})


def _find_path(root: Mapping, context: ReadContext, name: str, path: str) -> TreePath:
    if name.startswith("/"):
        return parse_pointer(name)
    label = context.labels.get(name)
    if label is not None and label.source is root.source:
        return find_label_path(root, label)
    # A component that is not known has no label in the reading, and may be mocked for that.
    ways = [way for way in find_labelled_paths(root, name) if way[0] != "tests"]
    if ways:
        return ways[0]
    known = sorted(key for key, value in context.labels.items() if value.source is root.source)
    text = (
        f"{path}: no component has the label {name!r}; found "
        f"{', '.join(known) if known else 'no labels'}; resources of other files cannot be "
        "tested or mocked"
    )
    raise StreamerError(Redaction(context.findings.secrets).redact_text(text))
