"""A template's file: read, linted, and the component that it makes.

Environment variables are not replaced in it, as in Benthos.
"""

from __future__ import annotations

import re
from typing import Final

from streamer.config.components import read_component
from streamer.config.fields import find, read_fields
from streamer.config.file import read_file
from streamer.config.findings import Findings, TooManyFindings
from streamer.config.nodes import Mapping, Scalar, described
from streamer.config.read import read_yaml
from streamer.config.reading import DEFAULT_OPTIONS, LintOptions, Reading
from streamer.config.source import Source
from streamer.config.templates.fields import TEMPLATE_FIELDS, component_fields
from streamer.config.templates.template import Template
from streamer.errors import ConfigError, Lint
from streamer.spec import Kind, Spec

_NAME: Final = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*")


def read_template(file: str) -> Template:
    """Read a template.

    Raises:
        ConfigError: with everything that is wrong with it.
    """
    template, lints = lint_template(file)
    if template is None or lints:
        raise ConfigError(lints)
    return template


def lint_template(
    file: str, options: LintOptions = DEFAULT_OPTIONS
) -> tuple[Template | None, tuple[Lint, ...]]:
    """Return a template, if it can be read, and everything that is wrong with it.

    Its tests are not run; `check_template` does that.
    """
    findings = Findings()
    try:
        template = _read(file, Reading(findings, read_component, options))
    except ConfigError as e:
        return None, e.lints
    except TooManyFindings:
        template = None
    return template, findings.sorted()


def _read(file: str, reading: Reading) -> Template | None:
    findings = reading.findings
    root = read_yaml(Source(file, read_file(file)), findings)
    if root is None:
        return None
    if not isinstance(root, Mapping):
        message = f"a template is an object, got {described(root)}"
        findings.at(root, "expected_object", message, "begin with `name:`")
        return None
    parsed = read_fields(reading, TEMPLATE_FIELDS, root, "", root)
    fields = component_fields(reading, parsed, root)
    if findings.harmful:
        return None
    if not _NAME.fullmatch(parsed["name"]):
        message = f"a template cannot have the name {parsed['name']!r}"
        hint = "a name has lower case letters and digits, in parts with single _ between them"
        findings.at(find(root, "name"), "bad_template", message, hint)
    mapping = find(root, "mapping")
    assert isinstance(mapping, Scalar)
    if not mapping.text.strip():
        findings.at(mapping, "bad_template", "the mapping is empty")
    spec = Spec(
        Kind(parsed["type"].lower()),
        parsed["name"],
        parsed["summary"],
        parsed["description"],
        status=parsed["status"].lower(),
        fields=fields,
        categories=parsed["categories"],
    )
    if findings.harmful:
        return None
    return Template(
        file, spec, mapping, parsed["tests"] or (), parsed["metrics_mapping"] or "", root
    )
