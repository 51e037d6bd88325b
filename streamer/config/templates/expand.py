"""A component of a template, in the place of which stands what the template makes of it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping as MappingType
from dataclasses import replace
from typing import Any, Final

from streamer.bloblang import compile_mapping
from streamer.config.findings import Findings
from streamer.config.inside import offset_inside
from streamer.config.nodes import Scalar, written
from streamer.config.reading import Reading
from streamer.config.templates.template import Template
from streamer.errors import MessageError
from streamer.message import Execution, Message
from streamer.spec import Kind, MetricsMapping, Parsed, ParsedComponent
from streamer.value import parse_json

_LINE: Final = re.compile(r"\(line (\d+)\)")


class TemplateError(Exception):
    """A template's mapping makes no config of the fields that it was given."""


def render(template: Template, config: MappingType[str, Any], label: str) -> dict[str, Any]:
    """Return the config that a template makes.

    Args:
        template: the template.
        config: the fields of its component, defaults filled in.
        label: the component's label.

    Raises:
        TemplateError: the mapping fails, or makes something else than an object; the text says
            where in the template.
    """
    message = Message.of(_plain(config), {"label": label})
    try:
        mapping = compile_mapping(template.mapping.text, json_numbers=False)
        made = mapping.apply([message], 0, Execution(time.time_ns))
        value = None if made is None else parse_json(made.raw)
    except MessageError as e:
        line = _LINE.search(str(e))
        at = _place(template, int(line[1]) if line else 1)
        raise TemplateError(f"its mapping fails: {e}, at {at}") from None
    except ValueError:
        value = ""
    if not isinstance(value, dict):
        found = {type(None): "nothing", list: "an array"}.get(type(value), "a plain value")
        at = _place(template, 1)
        raise TemplateError(f"its mapping makes {found}, expected an object, at {at}")
    return value


def expand(
    reading: Reading, template: Template, component: ParsedComponent, key: Scalar
) -> ParsedComponent | None:
    """Return what a template makes of a component.

    The processors beside a template stay: those of an input run after the template's own, those
    of an output before them, as in Benthos.

    Args:
        reading: gets the findings, which name the template, at the place of its use.
        template: the template.
        component: its component, read without findings.
        key: where the component is named.

    Returns:
        The component, or None when there is none, with a finding added.
    """
    kind, name = component.kind, component.name
    use = f"template {name}"
    if name in reading.templates:
        way = " → ".join((*reading.templates, name))
        reading.findings.at(key, "bad_template", f"{use}: it uses itself: {way}")
        return None
    try:
        made = render(template, component.config, component.label)
    except TemplateError as e:
        reading.findings.at(key, "bad_template", f"{use}: {e}")
        return None
    findings = Findings()
    findings.secrets = reading.findings.secrets
    inner = replace(
        reading,
        findings=findings,
        options=replace(reading.options, labels=False),
        labels={},
        templates=(*reading.templates, name),
    )
    found = reading.component(inner, kind, written(made, key.source, key.start), component.path)
    for lint in findings.sorted():
        message = f"{use}, of what {template.file} makes: {lint.message}"
        reading.findings.add(replace(lint, message=message))
    if found is None:
        return None
    found = _mapped(found, template, component.label)
    own = (
        tuple(_mapped(one, template, component.label) for one in found.processors),
        component.processors,
    )
    if kind == Kind.OUTPUT:
        own = own[::-1]
    return replace(found, label=found.label or component.label, processors=(*own[0], *own[1]))


def _mapped(found: ParsedComponent, template: Template, label: str) -> ParsedComponent:
    """Return a component whose metrics are those that the template makes of them."""
    if not template.metrics_mapping:
        return found
    mapping = MetricsMapping(template.metrics_mapping, label)
    return replace(found, metrics_mappings=(*found.metrics_mappings, mapping))


def _plain(value: Any) -> Any:
    if isinstance(value, Parsed | dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _place(template: Template, line: int) -> str:
    node = template.mapping
    at = node.source.place(offset_inside(node, line, 1))
    return f"{template.file}({at.line},{at.column})"
