"""A template's file: read, linted, and the component that it makes.

Environment variables are not replaced in it, as in Benthos.
"""

from __future__ import annotations

import re
from typing import Final

from streamer.config.components import read_component
from streamer.config.fields import find_node, read_fields
from streamer.config.file import read_file
from streamer.config.findings import Findings, TooManyFindings
from streamer.config.nodes import Mapping, Scalar, describe_node
from streamer.config.read_context import DEFAULT_OPTIONS, LintOptions, ReadContext
from streamer.config.source_map import Source
from streamer.config.templates.fields import TEMPLATE_FIELDS, read_component_fields
from streamer.config.templates.template import Template
from streamer.config.yaml_reader import read_yaml
from streamer.core.errors import ConfigError, Lint
from streamer.sdk.spec import Kind, Spec

_NAME: Final = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")


def lint_template(
    file: str, options: LintOptions = DEFAULT_OPTIONS
) -> tuple[Template | None, tuple[Lint, ...]]:
    """Return a template, if it can be read, and everything that is wrong with it.

    Its tests are not run; `check_template` does that.
    """
    findings = Findings()
    try:
        template = _read_template(file, ReadContext(findings, read_component, options))
    except ConfigError as e:
        return None, e.lints
    except TooManyFindings:
        template = None
    return template, findings.to_sorted()


def _read_template(file: str, context: ReadContext) -> Template | None:
    findings = context.findings
    root = read_yaml(Source(file, read_file(file)), findings)
    if root is None:
        return None
    if not isinstance(root, Mapping):
        message = f"a template is an object, got {describe_node(root)}"
        findings.add_at(root, "expected_object", message, "begin with `name:`")
        return None
    parsed = read_fields(context, TEMPLATE_FIELDS, root, "", root)
    fields = read_component_fields(context, parsed, root)
    if findings.harmful_count:
        return None
    if not _NAME.fullmatch(parsed["name"]):
        message = f"a template cannot have the name {parsed['name']!r}"
        hint = "a name has lower case letters and digits, in parts with single _ between them"
        findings.add_at(find_node(root, "name"), "bad_template", message, hint)
    mapping = find_node(root, "mapping")
    assert isinstance(mapping, Scalar)
    if not mapping.text.strip():
        findings.add_at(mapping, "bad_template", "the mapping is empty")
    spec = Spec(
        Kind(parsed["type"].lower()),
        parsed["name"],
        parsed["summary"],
        parsed["description"],
        status=parsed["status"].lower(),
        fields=fields,
        categories=parsed["categories"],
    )
    if findings.harmful_count:
        return None
    return Template(
        file, spec, mapping, parsed["tests"] or (), parsed["metrics_mapping"] or "", root
    )
