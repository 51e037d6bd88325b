"""From a file or a text to a `Config`, with everything that is wrong found in one go."""

from __future__ import annotations

import os
from collections.abc import Mapping as MappingType
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from streamer.config.components import read_component
from streamer.config.env import replace_variables
from streamer.config.fields import read_fields
from streamer.config.findings import Findings
from streamer.config.nodes import Mapping, Node, described
from streamer.config.read import read_yaml
from streamer.config.reading import DEFAULT_OPTIONS, LintOptions, Reading
from streamer.config.sections import SECTIONS
from streamer.config.sets import apply_set
from streamer.config.source import Source
from streamer.errors import ConfigError, Lint
from streamer.spec import Kind, Parsed, ParsedComponent

MAX_BYTES: Final = 5_000_000
_RESOURCE_KINDS: Final = (
    Kind.INPUT,
    Kind.PROCESSOR,
    Kind.OUTPUT,
    Kind.CACHE,
    Kind.RATE_LIMIT,
)


@dataclass(frozen=True)
class Config:
    """A config that has no error. It can be pickled.

    Attributes:
        input: where messages come from; `stdin` when the config names none.
        buffer: the buffer; `none` when the config names none.
        processors: those of `pipeline`.
        output: where messages go; `stdout` when the config names none.
        resources: components of the `*_resources` sections, by kind and label.
        logger: the `logger` section.
        http: the `http` section.
        spark: the `spark` section: `master`, `shards`, `trigger_interval` (ns or None),
            `checkpoint`, `conf`.
        metrics: where metrics go.
        tracer: where traces go.
        error_handling: the `error_handling` section.
        shutdown_delay: nanoseconds.
        shutdown_timeout: nanoseconds.
        threads: `pipeline.threads`; -1 when the config leaves it to the program.
        tests: the `tests` section.
        path: the file's name as the user wrote it; empty without a file.
        text: the file's text as it is on disk, without the values of variables.
    """

    input: ParsedComponent
    buffer: ParsedComponent
    processors: tuple[ParsedComponent, ...]
    output: ParsedComponent
    resources: MappingType[tuple[Kind, str], ParsedComponent]
    logger: Parsed
    http: Parsed
    spark: Parsed
    metrics: ParsedComponent
    tracer: ParsedComponent
    error_handling: Parsed
    shutdown_delay: int
    shutdown_timeout: int
    threads: int = -1
    tests: tuple[Parsed, ...] = ()
    path: str = ""
    text: str = field(default="", repr=False)


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
    return parse_config(_read_file(name), name, env=env, sets=sets)


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
        text = _read_file(name)
    except ConfigError as e:
        return e.lints
    return _check(text, name, os.environ if env is None else env, (), options)[1]


def _read_file(name: str) -> str:
    try:
        size = Path(name).stat().st_size
        if size > MAX_BYTES:
            raise _unreadable(name, f"the file has {size:,} bytes; expected at most {MAX_BYTES:,}")
        raw = Path(name).read_bytes()
    except OSError as e:
        reason = {
            FileNotFoundError: "there is no such file",
            IsADirectoryError: "this is a directory; expected a file",
            PermissionError: "the file cannot be read: permission denied",
        }.get(type(e), f"the file cannot be read: {e.strerror or e}")
        raise _unreadable(name, reason) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        before = raw[: e.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        message = f"the file is not UTF-8: found byte 0x{raw[e.start]:02x}"
        lint = Lint(name, line, column, "unreadable", message, "save it as UTF-8")
        raise ConfigError([lint]) from None


def _unreadable(name: str, message: str) -> ConfigError:
    return ConfigError([Lint(name, 1, 1, "unreadable", message)])


def _check(
    text: str,
    name: str,
    env: MappingType[str, str],
    sets: Sequence[str],
    options: LintOptions,
) -> tuple[Config | None, tuple[Lint, ...]]:
    """Read a text whole; returns the config, if there are no findings, and the findings."""
    findings = Findings()
    source = Source(name, text)
    replace_variables(source, env, findings, options.check_variables)
    root = read_yaml(source, findings)
    if root is None:
        return None, findings.sorted()
    if not isinstance(root, Mapping):
        message = f"a config is an object, got {described(root)}"
        findings.at(root, "expected_object", message, "begin with `input:`, for example")
        return None, findings.sorted()
    for expression in sets:
        apply_set(root, expression, findings)
    reading = Reading(findings, read_component, options)
    parsed = read_fields(reading, SECTIONS, root, "", root)
    resources = _resources(reading, parsed, root)
    lints = findings.sorted()
    return None if lints else _assemble(parsed, resources, name, text), lints


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
