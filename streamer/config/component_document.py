"""A component that has been read, as a document that shows what was set, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.components import catalog
from streamer.core.durations import format_duration
from streamer.core.redaction import redact_credential, redact_secret, redact_urls
from streamer.sdk.spec import Field, ParsedComponent, ParsedFields


def redact_component(component: ParsedComponent) -> dict[str, Any]:
    """Return a component as its config could be written, with all its fields."""
    spec = catalog.find_spec(component.kind, component.name)
    document: dict[str, Any] = {"label": component.label} if component.label else {}
    document[component.name] = (
        _redact_value(spec.body, component.config) if spec is not None else None
    )
    if component.processors:
        document["processors"] = [redact_component(one) for one in component.processors]
    return document


def _redact_value(field: Field, value: Any) -> Any:
    if field.secret and value:
        return redact_secret(value)
    if isinstance(value, ParsedComponent):
        return redact_component(value)
    if isinstance(value, ParsedFields):
        fields = {one.name: one for one in field.children}
        return {
            name: _redact_value(fields[name], item)
            for name, item in value.items()
            if name in fields and item is not None
        }
    if isinstance(value, Mapping):
        values = {name: _redact_value(field, item) for name, item in value.items()}
        if not field.credentials:
            return values
        return {name: redact_credential(name, item) for name, item in values.items()}
    if isinstance(value, list | tuple):
        return [_redact_value(field, item) for item in value]
    if field.duration and isinstance(value, int):
        return format_duration(value)
    return redact_urls(value) if isinstance(value, str) else value
