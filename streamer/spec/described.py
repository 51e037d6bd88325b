"""Specs as plain data, for `streamer list`."""

from __future__ import annotations

from typing import Any

from streamer.spec.component import Spec
from streamer.spec.field import REQUIRED, Field


def described(spec: Spec) -> dict[str, Any]:
    """Return what a component is and takes.

    It has `name`, `type` (the kind), `status`, `summary`, `description`, `categories`, `config` (a
    field, see `described_field`) and `examples` (each with `title`, `summary` and `config`).
    """
    return {
        "name": spec.name,
        "type": str(spec.kind),
        "status": spec.status,
        "summary": spec.summary,
        "description": spec.description,
        "categories": list(spec.categories),
        "config": described_field(spec.body),
        "examples": [
            {"title": one.title, "summary": one.summary, "config": one.config}
            for one in spec.examples
        ],
    }


def described_field(field: Field) -> dict[str, Any]:
    """Return a field: `name`, `type`, `kind` (its shape), `description`, and what else is so.

    A field without `default` is required, unless it `is_optional`.
    """
    found: dict[str, Any] = {
        "name": field.name,
        "type": field.type,
        "kind": field.shape,
        "description": field.description,
    }
    if field.default is not REQUIRED and not field.optional and field.name:
        found["default"] = field.default
    flags = {
        "is_optional": field.optional,
        "is_advanced": field.advanced,
        "is_deprecated": field.deprecated,
        "is_secret": field.secret,
        "interpolated": field.interpolated,
        "bloblang": field.mapping,
    }
    found |= {name: True for name, is_so in flags.items() if is_so}
    if field.options:
        found["options"] = list(field.options)
    if field.examples:
        found["examples"] = list(field.examples)
    if field.children:
        found["children"] = [described_field(child) for child in field.children]
    return found
