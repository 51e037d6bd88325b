"""What Redpanda Connect lists of a component of Kafka, and the paths of fields, theirs and ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from streamer.sdk.spec import Field


def connects(listed: Path, part: str, names: Any) -> dict[str, dict[str, Any]]:
    """Return the fields of components with their defaults, by name, from a list of configs."""
    documents = yaml.safe_load_all(listed.read_text())
    return {name: one[part][name] for one in documents for name in names if name in one[part]}


def leaves(fields: tuple[Field, ...], path: str = "") -> Iterator[tuple[str, Field]]:
    """Return the fields that have no fields of their own, by their paths."""
    for field in fields:
        if field.children and field.shape == "scalar":
            yield from leaves(field.children, f"{path}{field.name}.")
        else:
            yield f"{path}{field.name}", field


def nested(path: str, value: Any) -> dict[str, Any]:
    """Return a value at a path of fields."""
    first, _, rest = path.partition(".")
    return {first: nested(rest, value) if rest else value}
