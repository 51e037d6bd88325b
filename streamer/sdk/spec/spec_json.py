"""Specs as plain data, for `streamer list`."""

from __future__ import annotations

from typing import Any

from streamer.sdk.spec.component import REQUIRED, Field, Spec


def spec_to_json(spec: Spec) -> dict[str, Any]:
    """Return what a component is and takes.

    It has `name`, `type` (the kind), `status`, `summary`, `description`, `categories`, `config` (a
    field, see `field_to_json`) and `examples` (each with `title`, `summary` and `config`). A
    plugin has `package` too: the package that it comes from, and its version.
    """
    package = {"package": spec.distribution} if spec.distribution else {}
    return {
        "name": spec.name,
        "type": str(spec.kind),
        **package,
        "status": spec.status,
        "summary": spec.summary,
        "description": spec.description,
        "categories": list(spec.categories),
        "config": field_to_json(spec.body),
        "examples": [
            {"title": one.title, "summary": one.summary, "config": one.config}
            for one in spec.examples
        ],
    }


def field_to_json(field: Field) -> dict[str, Any]:
    """Return a field: `name`, `type`, `kind` (its shape), `description`, and what else is so.

    A field without `default` is required, unless it `is_optional`.
    """
    document: dict[str, Any] = {
        "name": field.name,
        "type": field.type,
        "kind": field.shape,
        "description": field.description,
    }
    if field.default is not REQUIRED and not field.optional and field.name:
        document["default"] = field.default
    flags = {
        "is_optional": field.optional,
        "is_advanced": field.advanced,
        "is_deprecated": field.deprecated,
        "is_secret": field.secret,
        "interpolated": field.interpolated,
        "bloblang": field.mapping,
    }
    document |= {name: True for name, is_so in flags.items() if is_so}
    if field.options:
        document["options"] = list(field.options)
    if field.examples:
        document["examples"] = list(field.examples)
    if field.children:
        document["children"] = [field_to_json(child) for child in field.children]
    return document
