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
from streamer.config.env import replace_variables
from streamer.config.fields import read_fields
from streamer.config.file import read_file
from streamer.config.findings import Findings, TooManyFindings
from streamer.config.ignores import find_ignores, without_ignored
from streamer.config.nodes import Mapping, Node, Sequence, described
from streamer.config.read import read_yaml
from streamer.config.reading import Ignore, LintOptions, Reading
from streamer.config.source import Source
from streamer.config.tests_section import DEFINITION_FIELDS, check_tests
from streamer.errors import ConfigError, Lint
from streamer.spec import Parsed

SUFFIXES: Final = ("_streamer_test", "_benthos_test")
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

    parsed: Parsed
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
    """Tell whether a file holds tests only, by its name."""
    return os.path.splitext(os.fspath(path))[0].endswith(SUFFIXES)


def config_of(definition: str) -> str:
    """Return the config that a file of definitions belongs to."""
    stem, ending = os.path.splitext(definition)
    for suffix in SUFFIXES:
        stem = stem.removesuffix(suffix)
    return stem + ending


def definitions_of(config: str) -> list[str]:
    """Return the files of definitions that there are beside a config."""
    stem, ending = os.path.splitext(config)
    beside = (f"{stem}{suffix}{ending}" for suffix in SUFFIXES)
    return [path for path in beside if os.path.exists(path)]


def lint_definitions(text: str, name: str, options: LintOptions) -> tuple[Lint, ...]:
    """Return everything that is wrong with a file of definitions."""
    findings = Findings()
    ignores: tuple[Ignore, ...] = ()
    try:
        root = _tree(text, name, findings)
        if root is not None:
            ignores = tuple(find_ignores(root.source, root))
            _fields(root, name, findings, options)
    except TooManyFindings:
        pass
    return without_ignored(findings.sorted(), ignores, options)


def read_definitions(path: str) -> Definitions:
    """Read the tests of a config, or of a file of definitions.

    A file that is no YAML gives its findings; one without tests gives none.
    """
    try:
        text = read_file(path)
    except ConfigError as e:
        return Definitions(path, (), e.lints)
    if _TESTS not in text and not is_definition(path):
        return Definitions(path)
    findings = Findings()
    try:
        root = _tree(text, path, findings)
        if root is None:
            return Definitions(path, (), findings.sorted())
        if not is_definition(path):
            # What else is wrong with a config is found when it is read as one.
            root = _only_tests(root)
        parsed = _fields(root, path, findings, LintOptions())
    except TooManyFindings:
        return Definitions(path, (), findings.sorted())
    if findings or not parsed[_TESTS]:
        return Definitions(path, (), findings.sorted())
    nodes = root.entries[_TESTS][1]
    assert isinstance(nodes, Sequence)
    cases = [_case(case, node) for case, node in zip(parsed[_TESTS], nodes.items, strict=True)]
    return Definitions(path, tuple(cases))


def _tree(text: str, name: str, findings: Findings) -> Mapping | None:
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
        message = f"a file of tests is an object, got {described(root)}"
        findings.at(root, "expected_object", message, "begin with `tests:`")
        return None
    return root


def _only_tests(root: Mapping) -> Mapping:
    entries = {name: entry for name, entry in root.entries.items() if name == _TESTS}
    return Mapping(root.source, root.start, root.end, entries)


def _fields(root: Mapping, name: str, findings: Findings, options: LintOptions) -> Parsed:
    reading = Reading(findings, read_component, options)
    parsed = read_fields(reading, DEFINITION_FIELDS, root, "", root)
    check_tests(findings, name, parsed[_TESTS] or ())
    return parsed


def _case(parsed: Parsed, node: Node) -> Case:
    assert isinstance(node, Mapping)
    mocks: dict[str, Node] = {}
    if "mocks" in node.entries and isinstance(found := node.entries["mocks"][1], Mapping):
        mocks = {name: value for name, (_, value) in found.entries.items()}
    return Case(parsed, node.source.place(node.start).line, mocks)
