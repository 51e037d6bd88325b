"""The tests of a template: what it makes of fields is linted, and compared with what is expected.

They are those of Benthos's `template lint`; all are run, where Benthos stops at the first that
fails.
"""

from __future__ import annotations

from dataclasses import replace

from streamer.config.components import read_component
from streamer.config.fields import find, read_fields
from streamer.config.findings import Findings
from streamer.config.nodes import Mapping, Scalar
from streamer.config.reading import Reading
from streamer.config.templates.expand import TemplateError, expand, render
from streamer.config.templates.template import Template
from streamer.errors import Lint
from streamer.spec import Parsed, ParsedComponent
from streamer.unit_tests.difference import difference_lines, differences


def check_template(template: Template) -> tuple[Lint, ...]:
    """Run the tests of a template; return what is wrong, each at its place in the file."""
    return tuple(
        replace(lint, message=f"test {test['name']!r}: {lint.message}")
        for index, test in enumerate(template.tests)
        for lint in _check(template, index, test)
    )


def _check(template: Template, index: int, test: Parsed) -> tuple[Lint, ...]:
    name = find(template.root, f"tests.{index}.name")
    config = find(template.root, f"tests.{index}.config")
    assert isinstance(name, Scalar) and isinstance(config, Mapping)
    findings = Findings()
    reading = Reading(findings, read_component)
    fields = read_fields(reading, template.spec.fields, config, "", config)
    if findings.harmful:
        return findings.sorted()
    try:
        made = render(template, fields, test["label"])
    except TemplateError as e:
        findings.at(name, "bad_template", str(e))
        return findings.sorted()
    component = ParsedComponent(template.spec.kind, template.spec.name, test["label"], fields)
    expand(reading, template, component, name)
    if test["expected"]:
        found = differences(test["expected"], made, superset=False)
        if found:
            lines = "\n".join(line.text for line in difference_lines(found))
            place = find(template.root, f"tests.{index}.expected")
            findings.at(place, "bad_template", f"it makes something else:\n{lines}")
    return findings.sorted()
