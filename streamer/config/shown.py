"""A component that has been read, as a document that shows what was set, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer import catalog
from streamer.durations import format_duration
from streamer.redaction import scrub_credential, scrub_secret, scrub_urls
from streamer.spec import Field, Parsed, ParsedComponent


def shown(component: ParsedComponent) -> dict[str, Any]:
    """Return a component as its config could be written, with all its fields."""
    spec = catalog.spec(component.kind, component.name)
    found: dict[str, Any] = {"label": component.label} if component.label else {}
    found[component.name] = _value(spec.body, component.config) if spec is not None else None
    if component.processors:
        found["processors"] = [shown(one) for one in component.processors]
    return found


def _value(field: Field, value: Any) -> Any:
    if field.secret and value:
        return scrub_secret(value)
    if isinstance(value, ParsedComponent):
        return shown(value)
    if isinstance(value, Parsed):
        fields = {one.name: one for one in field.children}
        return {
            name: _value(fields[name], item)
            for name, item in value.items()
            if name in fields and item is not None
        }
    if isinstance(value, Mapping):
        found = {name: _value(field, item) for name, item in value.items()}
        if not field.credentials:
            return found
        return {name: scrub_credential(name, item) for name, item in found.items()}
    if isinstance(value, list | tuple):
        return [_value(field, item) for item in value]
    if field.duration and isinstance(value, int):
        return format_duration(value)
    return scrub_urls(value) if isinstance(value, str) else value
