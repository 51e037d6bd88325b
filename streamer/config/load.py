"""From a file or a text to a `Config`, with everything that is wrong found in one go."""

from __future__ import annotations

import os
from collections.abc import Mapping as MappingType
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from streamer.config.answers import check_answers
from streamer.config.assemble import assemble
from streamer.config.components import read_component
from streamer.config.custom_metrics import check_custom_metrics
from streamer.config.definitions import is_definition, lint_definitions
from streamer.config.fields import read_fields
from streamer.config.file import read_file
from streamer.config.findings import MAX_FINDINGS, Findings, TooManyFindings
from streamer.config.ignores import find_ignores, without_ignored
from streamer.config.markdown import is_markdown, snippets
from streamer.config.message_paths import check_message_paths
from streamer.config.model import Config
from streamer.config.nodes import Mapping, described
from streamer.config.old_spellings import without_disabled
from streamer.config.read import read_source
from streamer.config.reading import DEFAULT_OPTIONS, LintOptions, Reading
from streamer.config.rejecting import check_rejecting
from streamer.config.repeats import check_repeats
from streamer.config.resources import (
    ResourceText,
    check_references,
    holds_resources_only,
    read_resource_file,
    resources_of,
)
from streamer.config.rules import RULES
from streamer.config.sections import SECTIONS
from streamer.config.served import check_served
from streamer.config.sets import apply_set
from streamer.config.sides import check_sides
from streamer.config.source import Source
from streamer.config.tests_section import check_tests
from streamer.config.whole import check_whole
from streamer.errors import ConfigError, Lint


def load_config(
    path: str | os.PathLike[str] | None = None,
    *,
    env: MappingType[str, str] | None = None,
    sets: Sequence[str] = (),
    resources: Sequence[str] = (),
    chilled: bool = False,
) -> Config:
    """Read a config's file.

    Args:
        path: the file; without one the config is empty, so that stdin goes to stdout.
        env: the environment's variables; those of the process when None.
        sets: `path=value` expressions of the command line.
        resources: files with further resources.
        chilled: take a config in spite of findings that it can run with (`Rule.runs_chilled`);
            they are its `lints`.

    Raises:
        ConfigError: with everything that is wrong, in the order of the file.
    """
    name = "" if path is None else os.fspath(path)
    text = "{}" if path is None else read_file(name)
    return parse_config(text, name, env=env, sets=sets, resources=resources, chilled=chilled)


def parse_config(
    text: str,
    name: str = "",
    *,
    env: MappingType[str, str] | None = None,
    sets: Sequence[str] = (),
    resources: Sequence[str | ResourceText] = (),
    chilled: bool = False,
) -> Config:
    """Read a config's text; see `load_config`.

    Args:
        text: YAML.
        name: what findings call it.
        env: the environment's variables; those of the process when None.
        sets: `path=value` expressions of the command line.
        resources: files with further resources, or texts.
        chilled: take a config in spite of findings that it can run with.
    """
    given = _Given(os.environ if env is None else env, sets, resources)
    config, lints = _check(text, name, given, DEFAULT_OPTIONS)
    if config is None or not all(chilled and RULES[lint.code].runs_chilled for lint in lints):
        raise ConfigError(lints)
    return replace(config, lints=lints) if lints else config


def lint_config(
    path: str | os.PathLike[str],
    *,
    env: MappingType[str, str] | None = None,
    options: LintOptions = DEFAULT_OPTIONS,
    resources: Sequence[str] = (),
) -> tuple[Lint, ...]:
    """Return everything that is wrong with a config's file, in the order of the file.

    What is wrong with files of further resources, which the config is read with, is found too.

    A file whose name says that it holds tests (`NAME_streamer_test.yaml`) is read as such, and of
    a page in Markdown, each block that is marked as YAML is a config.
    """
    name = os.fspath(path)
    try:
        text = read_file(name)
    except ConfigError as e:
        return e.lints
    if is_definition(name):
        return lint_definitions(text, name, options)
    given = _Given(os.environ if env is None else env, (), resources)
    texts = snippets(text) if is_markdown(name) else [text]
    return tuple(lint for one in texts for lint in _check(one, name, given, options)[1])


class _Given(NamedTuple):
    """What a config's text is read with."""

    env: MappingType[str, str]
    sets: Sequence[str]
    resources: Sequence[str | ResourceText]


def _check(
    text: str,
    name: str,
    given: _Given,
    options: LintOptions,
) -> tuple[Config | None, tuple[Lint, ...]]:
    """Read a text whole; returns the config, if one can be made of it, and the findings."""
    findings = Findings()
    reading = Reading(findings, read_component, options)
    try:
        config = _read(text, name, given, reading)
    except TooManyFindings:
        lints = findings.sorted()
        message = f"there are more findings than these {MAX_FINDINGS:,}"
        return None, (*lints, replace(lints[-1], code="too_many", message=message, suggestion=""))
    # A lint that does not mind missing values does not mind what comes of them either.
    lints = findings.sorted(without_unset=options.thorough and not options.check_variables)
    lints = without_ignored(lints, reading.ignores, options)
    return config, without_disabled(text, lints)


def _read(text: str, name: str, given: _Given, reading: Reading) -> Config | None:
    """Read a text; what comes back is of use only when comments silence all findings."""
    findings = reading.findings
    options = reading.options
    source, root = read_source(
        Source(name, text),
        given.env,
        findings,
        check=options.check_variables,
        marks=options.thorough,
    )
    if root is None:
        return None
    if not isinstance(root, Mapping):
        message = f"a config is an object, got {described(root)}"
        findings.at(root, "expected_object", message, "begin with `input:`, for example")
        return None
    reading.ignores += find_ignores(source, root)
    for expression in given.sets:
        apply_set(root, expression, findings)
    parsed = read_fields(reading, SECTIONS, root, "", root)
    resources = resources_of(reading, parsed, root)
    check_tests(findings, name, parsed["tests"] or ())
    roots = [root]
    for path in dict.fromkeys(given.resources):
        more, tree = read_resource_file(reading, path, given.env)
        resources |= more
        roots += [tree] if tree is not None else []
    if not holds_resources_only(root):
        check_references(reading, roots)
    check_sides(reading, root, parsed, resources)
    check_served(reading, root, parsed, resources)
    check_repeats(reading, root, parsed, resources)
    if reading.options.thorough:
        check_whole(reading, root)
        check_message_paths(reading, parsed, resources)
        check_custom_metrics(reading, parsed, resources)
        if not holds_resources_only(root):
            check_answers(reading, parsed["buffer"])
            check_rejecting(reading, root, parsed, resources)
    if findings.harmful:
        return None
    return assemble(parsed, resources, name, text, findings.secrets)
