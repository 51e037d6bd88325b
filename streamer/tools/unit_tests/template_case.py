"""The tests of a template: what it makes of fields is linted, and compared with what is expected.

They are those of Benthos's `template lint`; all are run, where Benthos stops at the first that
fails.
"""

from __future__ import annotations

from dataclasses import replace

from streamer.config.components import read_component
from streamer.config.fields import find_node, read_fields
from streamer.config.findings import Findings
from streamer.config.nodes import Mapping, Scalar
from streamer.config.read_context import ReadContext
from streamer.config.templates.expand import TemplateError, expand_template, render_template
from streamer.config.templates.template import Template
from streamer.core.errors import Lint
from streamer.sdk.spec import ParsedComponent, ParsedFields
from streamer.tools.unit_tests.difference import find_differences, format_differences


def check_template(template: Template) -> tuple[Lint, ...]:
    """Run the tests of a template; return what is wrong, each at its place in the file."""
    return tuple(
        replace(lint, message=f"test {test['name']!r}: {lint.message}")
        for index, test in enumerate(template.tests)
        for lint in _check_test(template, index, test)
    )


def _check_test(template: Template, index: int, test: ParsedFields) -> tuple[Lint, ...]:
    name = find_node(template.root, f"tests.{index}.name")
    config = find_node(template.root, f"tests.{index}.config")
    assert isinstance(name, Scalar) and isinstance(config, Mapping)
    findings = Findings()
    context = ReadContext(findings, read_component)
    fields = read_fields(context, template.spec.fields, config, "", config)
    if findings.harmful_count:
        return findings.to_sorted()
    try:
        rendered = render_template(template, fields, test["label"])
    except TemplateError as e:
        findings.add_at(name, "bad_template", str(e))
        return findings.to_sorted()
    component = ParsedComponent(template.spec.kind, template.spec.name, test["label"], fields)
    expand_template(context, template, component, name)
    if test["expected"]:
        differing = find_differences(test["expected"], rendered, superset=False)
        if differing:
            lines = "\n".join(line.text for line in format_differences(differing))
            place = find_node(template.root, f"tests.{index}.expected")
            findings.add_at(place, "bad_template", f"it makes something else:\n{lines}")
    return findings.to_sorted()
