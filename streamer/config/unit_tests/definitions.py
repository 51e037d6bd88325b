"""Test definitions: the `tests` of a config, or of a file of their own beside it.

As in Benthos, they are read as they are written: environment variables are replaced in the config
that is tested, not in its tests.
"""

from __future__ import annotations

import os
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, field
from typing import Final

from streamer.config.components import read_component
from streamer.config.env_variables import replace_variables
from streamer.config.fields import read_fields
from streamer.config.file import read_config_text
from streamer.config.findings import Findings, TooManyFindings
from streamer.config.lint.ignores import drop_ignored, find_ignores
from streamer.config.nodes import Mapping, Node, Sequence, describe_node
from streamer.config.read_context import Ignore, LintOptions, ReadContext
from streamer.config.source_map import Source
from streamer.config.unit_tests.section import DEFINITION_FIELDS, check_tests
from streamer.config.yaml_reader import read_yaml
from streamer.core.errors import ConfigError, Lint
from streamer.sdk.spec import ParsedFields

DEFINITION_SUFFIXES: Final = ("_streamer_test", "_benthos_test")
"""What the name of a file of definitions ends with, before its ending."""

_TESTS: Final = "tests"


@dataclass(frozen=True)
class Case:
    """One test.

    Attributes:
        parsed: its fields.
        line: where it stands, 1-based.
        mocks: the components to put into the config, by label or JSON Pointer.
    """

    parsed: ParsedFields
    line: int
    mocks: MappingType[str, Node] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Definitions:
    """The tests of one file.

    Attributes:
        file: the file that they stand in.
        cases: the tests; none when the file has any that cannot be understood.
        lints: what is wrong with them.
    """

    file: str
    cases: tuple[Case, ...] = ()
    lints: tuple[Lint, ...] = ()


def is_definition(path: str | os.PathLike[str]) -> bool:
    """Return whether a file holds tests only, by its name."""
    return os.path.splitext(os.fspath(path))[0].endswith(DEFINITION_SUFFIXES)


def find_tested_config(definition: str) -> str:
    """Return the config that a file of definitions belongs to."""
    stem, ending = os.path.splitext(definition)
    for suffix in DEFINITION_SUFFIXES:
        stem = stem.removesuffix(suffix)
    return stem + ending


def find_definitions(config: str) -> list[str]:
    """Return the files of definitions that there are beside a config."""
    stem, ending = os.path.splitext(config)
    beside = (f"{stem}{suffix}{ending}" for suffix in DEFINITION_SUFFIXES)
    return [path for path in beside if os.path.exists(path)]


def lint_definitions(text: str, name: str, options: LintOptions) -> tuple[Lint, ...]:
    """Return everything that is wrong with a file of definitions."""
    findings = Findings()
    ignores: tuple[Ignore, ...] = ()
    try:
        root = _read_tree(text, name, findings)
        if root is not None:
            ignores = tuple(find_ignores(root.source, root))
            _read_definition_fields(root, name, findings, options)
    except TooManyFindings:
        pass
    return drop_ignored(findings.to_sorted(), ignores, options)


def read_definitions(path: str) -> Definitions:
    """Read the tests of a config, or of a file of definitions.

    A file that is no YAML gives its findings; one without tests gives none.
    """
    try:
        text = read_config_text(path)
    except ConfigError as e:
        return Definitions(path, (), e.lints)
    if _TESTS not in text and not is_definition(path):
        return Definitions(path)
    findings = Findings()
    try:
        root = _read_tree(text, path, findings)
        if root is None:
            return Definitions(path, (), findings.to_sorted())
        if not is_definition(path):
            # What else is wrong with a config is found when it is read as one.
            root = _keep_tests(root)
        parsed = _read_definition_fields(root, path, findings, LintOptions())
    except TooManyFindings:
        return Definitions(path, (), findings.to_sorted())
    if findings or not parsed[_TESTS]:
        return Definitions(path, (), findings.to_sorted())
    nodes = root.entries[_TESTS][1]
    assert isinstance(nodes, Sequence)
    cases = [_read_case(case, node) for case, node in zip(parsed[_TESTS], nodes.items, strict=True)]
    return Definitions(path, tuple(cases))


def _read_tree(text: str, name: str, findings: Findings) -> Mapping | None:
    source = Source(name, text)
    root = read_yaml(source, findings)
    if root is None and not is_definition(name) and "${" in text:
        # A variable may stand where YAML cannot be read without its value.
        findings.clear()
        source = Source(name, text)
        replace_variables(source, os.environ, findings, check=False)
        root = read_yaml(source, findings)
    if root is not None and not isinstance(root, Mapping):
        if not is_definition(name):
            return None  # whatever it is, it has no tests
        message = f"a file of tests is an object, got {describe_node(root)}"
        findings.add_at(root, "expected_object", message, "begin with `tests:`")
        return None
    return root


def _keep_tests(root: Mapping) -> Mapping:
    entries = {name: entry for name, entry in root.entries.items() if name == _TESTS}
    return Mapping(root.source, root.start, root.end, entries)


def _read_definition_fields(
    root: Mapping, name: str, findings: Findings, options: LintOptions
) -> ParsedFields:
    context = ReadContext(findings, read_component, options)
    parsed = read_fields(context, DEFINITION_FIELDS, root, "", root)
    check_tests(findings, name, parsed[_TESTS] or ())
    return parsed


def _read_case(parsed: ParsedFields, node: Node) -> Case:
    assert isinstance(node, Mapping)
    mocks: dict[str, Node] = {}
    if "mocks" in node.entries and isinstance(mocks_node := node.entries["mocks"][1], Mapping):
        mocks = {name: value for name, (_, value) in mocks_node.entries.items()}
    return Case(parsed, node.source.locate(node.start).line, mocks)
