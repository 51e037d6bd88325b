"""From a file or a text to a `Config`, with everything that is wrong found in one go."""

from __future__ import annotations

import os
from collections.abc import Mapping as MappingType
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from streamer.config.components import read_component
from streamer.config.env import replace_variables
from streamer.config.fields import read_fields
from streamer.config.file import read_file
from streamer.config.findings import MAX_FINDINGS, Findings, TooManyFindings
from streamer.config.model import Config
from streamer.config.nodes import Mapping, Node, described
from streamer.config.read import read_yaml
from streamer.config.reading import DEFAULT_OPTIONS, LintOptions, Reading
from streamer.config.sections import SECTIONS
from streamer.config.sets import apply_set
from streamer.config.source import Source
from streamer.errors import ConfigError, Lint
from streamer.spec import Kind, Parsed, ParsedComponent

_RESOURCE_KINDS: Final = (
    Kind.INPUT,
    Kind.PROCESSOR,
    Kind.OUTPUT,
    Kind.CACHE,
    Kind.RATE_LIMIT,
)


def load_config(
    path: str | os.PathLike[str] | None = None,
    *,
    env: MappingType[str, str] | None = None,
    sets: Sequence[str] = (),
) -> Config:
    """Read a config's file.

    Args:
        path: the file; without one the config is empty, so that stdin goes to stdout.
        env: the environment's variables; those of the process when None.
        sets: `path=value` expressions of the command line.

    Raises:
        ConfigError: with everything that is wrong, in the order of the file.
    """
    if path is None:
        return parse_config("{}", env=env, sets=sets)
    name = os.fspath(path)
    return parse_config(read_file(name), name, env=env, sets=sets)


def parse_config(
    text: str,
    name: str = "",
    *,
    env: MappingType[str, str] | None = None,
    sets: Sequence[str] = (),
) -> Config:
    """Read a config's text; see `load_config`.

    Args:
        text: YAML.
        name: what findings call it.
        env: the environment's variables; those of the process when None.
        sets: `path=value` expressions of the command line.
    """
    config, lints = _check(text, name, os.environ if env is None else env, sets, DEFAULT_OPTIONS)
    if config is None or lints:
        raise ConfigError(lints)
    return config


def lint_config(
    path: str | os.PathLike[str],
    *,
    env: MappingType[str, str] | None = None,
    options: LintOptions = DEFAULT_OPTIONS,
) -> tuple[Lint, ...]:
    """Return everything that is wrong with a config's file, in the order of the file."""
    name = os.fspath(path)
    try:
        text = read_file(name)
    except ConfigError as e:
        return e.lints
    return _check(text, name, os.environ if env is None else env, (), options)[1]


def _check(
    text: str,
    name: str,
    env: MappingType[str, str],
    sets: Sequence[str],
    options: LintOptions,
) -> tuple[Config | None, tuple[Lint, ...]]:
    """Read a text whole; returns the config, if there are no findings, and the findings."""
    findings = Findings()
    try:
        config = _read(text, name, env, sets, Reading(findings, read_component, options))
    except TooManyFindings:
        lints = findings.sorted()
        message = f"there are more findings than these {MAX_FINDINGS:,}"
        return None, (*lints, replace(lints[-1], code="too_many", message=message, suggestion=""))
    return (None if findings else config), findings.sorted()


def _read(
    text: str,
    name: str,
    env: MappingType[str, str],
    sets: Sequence[str],
    reading: Reading,
) -> Config | None:
    """Read a text; what comes back is of use only when there are no findings."""
    findings = reading.findings
    source = Source(name, text)
    replace_variables(source, env, findings, reading.options.check_variables)
    root = read_yaml(source, findings)
    if root is None:
        return None
    if not isinstance(root, Mapping):
        message = f"a config is an object, got {described(root)}"
        findings.at(root, "expected_object", message, "begin with `input:`, for example")
        return None
    for expression in sets:
        apply_set(root, expression, findings)
    parsed = read_fields(reading, SECTIONS, root, "", root)
    resources = _resources(reading, parsed, root)
    return None if findings else _assemble(parsed, resources, name, text)


def _resources(
    reading: Reading, parsed: Parsed, root: Mapping
) -> dict[tuple[Kind, str], ParsedComponent]:
    """Return the resources by kind and label; one without a label could never be used."""
    resources = {}
    for kind in _RESOURCE_KINDS:
        for index, component in enumerate(parsed[f"{kind}_resources"] or ()):
            if component is None:
                continue
            if not component.label:
                node = _item(root, f"{kind}_resources", index)
                reading.findings.at(
                    node, "missing_label", f"this {kind} resource has no label", "add `label: …`"
                )
            resources[kind, component.label] = component
    return resources


def _item(root: Mapping, section: str, index: int) -> Node:
    node: Node = root.entries[section][1]
    items = getattr(node, "items", [node])
    found: Node = items[index] if index < len(items) else node
    return found


def _assemble(
    parsed: Parsed,
    resources: dict[tuple[Kind, str], ParsedComponent],
    name: str,
    text: str,
) -> Config:
    return Config(
        input=parsed["input"],
        buffer=parsed["buffer"],
        processors=parsed["pipeline"]["processors"],
        output=parsed["output"],
        resources=resources,
        logger=parsed["logger"],
        http=parsed["http"],
        spark=parsed["spark"],
        metrics=parsed["metrics"],
        tracer=parsed["tracer"],
        error_handling=parsed["error_handling"],
        shutdown_delay=parsed["shutdown_delay"] or 0,
        shutdown_timeout=parsed["shutdown_timeout"] or 0,
        threads=parsed["pipeline"]["threads"],
        tests=parsed["tests"] or (),
        path=name,
        text=text,
    )
