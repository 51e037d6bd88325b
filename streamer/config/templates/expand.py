"""A component of a template, in the place of which stands what the template makes of it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping as MappingType
from dataclasses import replace
from typing import Any, Final

from streamer.bloblang import compile_mapping
from streamer.config.findings import Findings
from streamer.config.nodes import Scalar, from_python
from streamer.config.read_context import ReadContext
from streamer.config.templates.template import Template
from streamer.config.text_offsets import find_offset
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.parse import parse_json
from streamer.core.message import Message
from streamer.sdk.spec import Kind, MetricsMapping, ParsedComponent, ParsedFields

_LINE_NUMBER: Final = re.compile(r"\(line (\d+)\)")


class TemplateError(Exception):
    """A template's mapping makes no config of the fields that it was given."""


def render_template(
    template: Template, config: MappingType[str, Any], label: str
) -> dict[str, Any]:
    """Return the config that a template makes.

    Args:
        template: the template.
        config: the fields of its component, defaults filled in.
        label: the component's label.

    Raises:
        TemplateError: the mapping fails, or makes something else than an object; the text says
            where in the template.
    """
    message = Message.from_value(_to_python(config), {"label": label})
    try:
        mapping = compile_mapping(template.mapping.text, json_numbers=False)
        result = mapping.apply([message], 0, Execution(time.time_ns))
        value = None if result is None else parse_json(result.raw)
    except MessageError as e:
        line = _LINE_NUMBER.search(str(e))
        at = _format_place(template, int(line[1]) if line else 1)
        raise TemplateError(f"its mapping fails: {e}, at {at}") from None
    except ValueError:
        value = ""
    if not isinstance(value, dict):
        got = {type(None): "nothing", list: "an array"}.get(type(value), "a plain value")
        at = _format_place(template, 1)
        raise TemplateError(f"its mapping makes {got}, expected an object, at {at}")
    return value


def expand_template(
    context: ReadContext, template: Template, component: ParsedComponent, key: Scalar
) -> ParsedComponent | None:
    """Return what a template makes of a component.

    The processors beside a template stay: those of an input run after the template's own, those
    of an output before them, as in Benthos.

    Args:
        context: gets the findings, which name the template, at the place of its use.
        template: the template.
        component: its component, read without findings.
        key: where the component is named.

    Returns:
        The component, or None when there is none, with a finding added.
    """
    kind, name = component.kind, component.name
    use = f"template {name}"
    if name in context.templates:
        way = " → ".join((*context.templates, name))
        context.findings.add_at(key, "bad_template", f"{use}: it uses itself: {way}")
        return None
    try:
        rendered = render_template(template, component.config, component.label)
    except TemplateError as e:
        context.findings.add_at(key, "bad_template", f"{use}: {e}")
        return None
    findings = Findings()
    findings.secrets = context.findings.secrets
    inner = replace(
        context,
        findings=findings,
        options=replace(context.options, labels=False),
        labels={},
        templates=(*context.templates, name),
    )
    expanded = context.read_component(
        inner, kind, from_python(rendered, key.source, key.start), component.path, ()
    )
    for lint in findings.to_sorted():
        message = f"{use}, of what {template.file} makes: {lint.message}"
        context.findings.add(replace(lint, message=message))
    if expanded is None:
        return None
    expanded = _add_metrics_mapping(expanded, template, component.label)
    own = (
        tuple(_add_metrics_mapping(one, template, component.label) for one in expanded.processors),
        component.processors,
    )
    if kind == Kind.OUTPUT:
        own = own[::-1]
    return replace(expanded, label=expanded.label or component.label, processors=(*own[0], *own[1]))


def _add_metrics_mapping(
    component: ParsedComponent, template: Template, label: str
) -> ParsedComponent:
    """Return a component whose metrics are those that the template makes of them."""
    if not template.metrics_mapping:
        return component
    mapping = MetricsMapping(template.metrics_mapping, label)
    return replace(component, metrics_mappings=(*component.metrics_mappings, mapping))


def _to_python(value: Any) -> Any:
    if isinstance(value, ParsedFields | dict):
        return {name: _to_python(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_to_python(item) for item in value]
    return value


def _format_place(template: Template, line: int) -> str:
    node = template.mapping
    at = node.source.locate(find_offset(node, line, 1))
    return f"{template.file}({at.line},{at.column})"
