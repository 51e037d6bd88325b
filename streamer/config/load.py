"""From a file or a text to a `Config`, with everything that is wrong found in one go."""

from __future__ import annotations

import os
from collections.abc import Mapping as MappingType
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from streamer.bloblang import nest_inputs
from streamer.config.bloblang_section import add_sources, load_functions
from streamer.config.buffer_views import split_buffers
from streamer.config.components import read_component
from streamer.config.fields import read_fields
from streamer.config.file import read_config_text
from streamer.config.findings import MAX_FINDINGS, Findings, TooManyFindings
from streamer.config.lint.buffers import check_buffers
from streamer.config.lint.custom_metrics import check_custom_metrics
from streamer.config.lint.delivery_promises import check_delivery_promises
from streamer.config.lint.endless_windows import check_endless_window
from streamer.config.lint.history_groups import check_history_groups
from streamer.config.lint.http_paths import check_http_paths
from streamer.config.lint.ignores import drop_ignored, find_ignores
from streamer.config.lint.join_sides import check_join_sides
from streamer.config.lint.keyed_state import check_keyed_state
from streamer.config.lint.message_paths import check_message_paths
from streamer.config.lint.old_spellings import drop_disabled
from streamer.config.lint.rejected_messages import check_rejected_messages
from streamer.config.lint.rules import RULES
from streamer.config.lint.sync_response import check_sync_responses
from streamer.config.lint.whole_config import check_whole_config
from streamer.config.markdown import find_yaml_blocks, is_markdown
from streamer.config.model import Config
from streamer.config.nodes import Mapping, describe_node
from streamer.config.read_context import DEFAULT_OPTIONS, LintOptions, ReadContext
from streamer.config.resources import (
    ResourceText,
    check_references,
    collect_resources,
    holds_resources_only,
    read_resource_file,
)
from streamer.config.sections import SECTIONS
from streamer.config.set_option import apply_set
from streamer.config.shared_sections import SHARED, read_shared_sections
from streamer.config.source_map import Source
from streamer.config.unit_tests.definitions import is_definition, lint_definitions
from streamer.config.unit_tests.section import check_tests
from streamer.config.yaml_reader import read_source
from streamer.core.errors import ConfigError, Lint
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields

_STORING_BUFFER: Final = "sqlite"
"""A buffer that stores messages in Benthos, which are on the disk here without it."""


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
    text = "{}" if path is None else read_config_text(name)
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

    Example:
        >>> config = parse_config("output: {file: {path: out.ndjson}}")
        >>> config.input.name, config.output.config["path"]
        ('stdin', 'out.ndjson')
    """
    given = _ReadInputs(os.environ if env is None else env, sets, resources)
    with nest_inputs().active() as inputs:
        config, lints = _read_and_lint(text, name, given, DEFAULT_OPTIONS)
    if config is None or not all(chilled and RULES[lint.code].runs_chilled for lint in lints):
        raise ConfigError(lints)
    return replace(config, inputs=inputs, lints=lints)


def lint_config(
    path: str | os.PathLike[str],
    *,
    env: MappingType[str, str] | None = None,
    options: LintOptions = DEFAULT_OPTIONS,
    resources: Sequence[str | ResourceText] = (),
    sets: Sequence[str] = (),
) -> tuple[Lint, ...]:
    """Return everything that is wrong with a config's file, in the order of the file.

    What is wrong with files of further resources, which the config is read with, is found too.

    A file whose name says that it holds tests (`NAME_streamer_test.yaml`) is read as such, and of
    a page in Markdown, each block that is marked as YAML is a config.
    """
    name = os.fspath(path)
    try:
        text = read_config_text(name)
    except ConfigError as e:
        return e.lints
    if is_definition(name):
        return lint_definitions(text, name, options)
    given = _ReadInputs(os.environ if env is None else env, sets, resources)
    lints: list[Lint] = []
    for one in find_yaml_blocks(text) if is_markdown(name) else [text]:
        # Functions of one config are not those of another.
        with nest_inputs().active():
            lints += _read_and_lint(one, name, given, options)[1]
    return tuple(lints)


def lint_text(
    text: str,
    *,
    options: LintOptions = DEFAULT_OPTIONS,
    resources: Sequence[str | ResourceText] = (),
    sets: Sequence[str] = (),
) -> tuple[Lint, ...]:
    """Return everything that is wrong with a config's text, in its order; see `lint_config`.

    Example:
        >>> [str(lint) for lint in lint_text("input: {stdin: {codecs: lines}}")]
        ['(1,17) field codecs not recognised; did you mean codec?']
    """
    given = _ReadInputs(os.environ, sets, resources)
    with nest_inputs().active():
        return _read_and_lint(text, "", given, options)[1]


class _ReadInputs(NamedTuple):
    """The settings with which a config's text is read."""

    env: MappingType[str, str]
    sets: Sequence[str]
    resources: Sequence[str | ResourceText]


def _read_and_lint(
    text: str,
    name: str,
    inputs: _ReadInputs,
    options: LintOptions,
) -> tuple[Config | None, tuple[Lint, ...]]:
    """Read a text whole; returns the config, if one can be made of it, and the findings."""
    findings = Findings()
    context = ReadContext(findings, read_component, options)
    try:
        config = _read_config(text, name, inputs, context)
    except TooManyFindings:
        lints = findings.to_sorted()
        message = f"there are more findings than these {MAX_FINDINGS:,}"
        return None, (*lints, replace(lints[-1], code="too_many", message=message, suggestion=""))
    # A lint that does not mind missing values does not mind what comes of them either.
    lints = findings.to_sorted(without_unset=options.thorough and not options.check_variables)
    lints = drop_ignored(lints, context.ignores, options)
    return config, drop_disabled(text, lints)


def _read_config(text: str, name: str, inputs: _ReadInputs, context: ReadContext) -> Config | None:
    """Read a text; what comes back is of use only when comments silence all findings."""
    findings = context.findings
    options = context.options
    source, root = read_source(
        Source(name, text),
        inputs.env,
        findings,
        check=options.check_variables,
        marks=options.thorough,
    )
    if root is None:
        return None
    if not isinstance(root, Mapping):
        message = f"a config is an object, got {describe_node(root)}"
        findings.add_at(root, "expected_object", message, "begin with `input:`, for example")
        return None
    context.ignores += find_ignores(source, root)
    for expression in inputs.sets:
        apply_set(root, expression, findings)
    context.shared_sections = read_shared_sections(context, root)
    load_functions(context, root)
    # Of a section in which something is wrong, that is told.
    broken = {one.name for one in SHARED} & root.entries.keys() - context.shared_sections.keys()
    context.lacks_sections = bool(broken) or holds_resources_only(root)
    parsed = read_fields(context, SECTIONS, root, "", root)
    resources = collect_resources(context, parsed, root)
    check_tests(findings, name, parsed["tests"] or ())
    roots = [root]
    for path in dict.fromkeys(inputs.resources):
        more, tree = read_resource_file(context, path, inputs.env)
        resources |= more
        roots += [tree] if tree is not None else []
    if not holds_resources_only(root):
        check_references(context, roots)
    check_buffers(context, root, parsed, resources)
    views = split_buffers(root, parsed)
    check_http_paths(context, root, [parts for _, parts in views], resources)
    for view, parts in views:
        check_join_sides(context, view, parts, resources)
        check_endless_window(context, view, parts)
        check_delivery_promises(context, view, parts, resources)
        check_keyed_state(context, parts["buffer"])
        check_history_groups(context, (parts["pipeline"] or {}).get("processors") or ())
        if context.options.thorough:
            check_whole_config(context, view)
            check_message_paths(context, parts, resources)
            check_custom_metrics(context, parts, resources)
            if not holds_resources_only(root):
                check_sync_responses(context, parts["buffer"])
                check_rejected_messages(context, view, parts, resources)
    if findings.harmful_count:
        return None
    return assemble_config(parsed, resources, name, text, findings.secrets)


def assemble_config(
    parsed: ParsedFields,
    resources: MappingType[tuple[Kind, str], ParsedComponent],
    name: str,
    text: str,
    secrets: MappingType[str, str],
) -> Config:
    """Return the config of a top level in which nothing was found to be wrong.

    Args:
        parsed: the top level's fields.
        resources: by kind and label.
        name: the file's name.
        text: the file's text.
        secrets: what must not be seen, by what is shown instead.
    """
    buffers = parsed["buffers"] or ()
    first, processors = parsed["buffer"], parsed["pipeline"]["processors"]
    if buffers:
        first, processors = buffers[0], buffers[0].place.processors
    elif first.name == _STORING_BUFFER:
        given = first.config
        processors = (*given["pre_processors"], *given["post_processors"], *processors)
        first = replace(first, name="none", config={})
    return Config(
        input=parsed["input"],
        buffer=first,
        processors=processors,
        output=parsed["output"],
        resources=resources,
        logger=parsed["logger"],
        bloblang=add_sources(parsed["bloblang"]),
        redpanda=parsed["redpanda"],
        http=parsed["http"],
        spark=parsed["spark"],
        metrics=parsed["metrics"],
        tracer=parsed["tracer"],
        error_handling=parsed["error_handling"],
        limits=parsed["limits"],
        shutdown_delay=parsed["shutdown_delay"] or 0,
        shutdown_timeout=parsed["shutdown_timeout"] or 0,
        threads=parsed["pipeline"]["threads"],
        tests=parsed["tests"] or (),
        path=name,
        buffers=buffers,
        text=text,
        secrets=dict(secrets),
    )
