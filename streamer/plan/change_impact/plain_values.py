"""Values of configs as plain ones that can be compared, without the places that they stand at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamer.sdk.spec import BufferPlace, ParsedComponent, SourcedText


def vars_of(place: BufferPlace) -> dict[str, Any]:
    """Return what stands beside one of several buffers, by the names of its fields."""
    return {"from": place.source, "processors": place.processors, "output": place.output}


def to_plain_value(value: Any) -> Any:
    """Return a value that is equal to another's when both configs mean the same."""
    if isinstance(value, ParsedComponent):
        return (
            value.kind,
            value.name,
            value.label,
            to_plain_value(value.config),
            to_plain_value(value.processors),
            value.mapping.strip(),
            value.metrics_mappings,
            None if value.place is None else to_plain_value(vars_of(value.place)),
        )
    if isinstance(value, Mapping):
        return {name: to_plain_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain_value(item) for item in value]
    if isinstance(value, SourcedText):
        return value.strip(), value.digest
    # What ends a block of text in YAML (`|`, `|-`) is no part of a mapping.
    if isinstance(value, str):
        return value.strip()
    # True is no 1, and 1 is no 1.0.
    return (type(value).__name__, value)
