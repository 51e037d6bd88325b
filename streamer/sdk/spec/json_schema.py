"""Specs to JSON Schema (draft 7, which editors know best), for completion and checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from streamer.sdk.spec.component import REQUIRED, Field, Kind, Spec

Schema = dict[str, Any]

# A variable's text stands where its value will: an editor sees it before it is replaced.
_VARIABLE: Final[Schema] = {"type": "string", "pattern": r"\$\{[^!]"}
_SCALARS: Final[Mapping[str, Schema]] = {
    "string": {"type": ["string", "number", "boolean"]},
    "int": {"anyOf": [{"type": "integer"}, _VARIABLE]},
    "float": {"anyOf": [{"type": "number"}, _VARIABLE]},
    "bool": {"anyOf": [{"type": "boolean"}, _VARIABLE]},
    "object": {"type": "object"},
    "unknown": {},
}
_LABEL: Final[Schema] = {
    "type": "string",
    "description": "A name for the component, used once in a config.",
    "pattern": r"^([a-z0-9][a-z0-9_\-]*)?$",
}
_UNITS: Final = "ns|us|\u00b5s|\u03bcs|ms|s|m|h|d"
_DURATION: Final[Schema] = {
    "anyOf": [
        {
            "type": "string",
            "pattern": rf"^([-+]?((\d+\.?\d*|\.\d+)({_UNITS}))+|[-+]?0)?$",
        },
        {"const": 0},
        _VARIABLE,
    ]
}


def config_schema(title: str, sections: Iterable[Field], specs: Iterable[Spec]) -> Schema:
    """Return the schema of a whole config.

    Args:
        title: what the schema is called.
        sections: the fields of the top level.
        specs: every component, which become definitions by kind.
    """
    by_kind: dict[Kind, list[Spec]] = {kind: [] for kind in Kind}
    for spec in specs:
        by_kind[spec.kind].append(spec)
    listed = list(sections)
    schema = object_schema(listed)
    for name, section in schema["properties"].items():
        if name.endswith("_resources"):
            labelled = {"required": ["label"], "properties": {"label": {"minLength": 1}}}
            section["items"] = {"allOf": [section["items"], labelled]}
    definitions = {str(kind): _kind_schema(kind, some) for kind, some in by_kind.items()}
    for section in listed:
        if section.kind is not None and section.children:
            definitions[f"listed_{section.kind}"] = _listed_schema(section, definitions)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": title,
        **schema,
        "definitions": definitions,
    }


def _listed_schema(field: Field, definitions: Mapping[str, Schema]) -> Schema:
    """Return the schema of a component with a label and fields beside its name."""
    named = definitions[str(field.kind)]["properties"]
    properties: Schema = {
        name: {"allOf": [{"$ref": f"#/definitions/{field.kind}/properties/{name}"}]}
        for name in named
    }
    properties["label"] = _LABEL
    properties |= {child.name: field_schema(child) for child in field.children}
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "required": ["label"],
    }


def object_schema(fields: Iterable[Field]) -> Schema:
    """Return the schema of an object with these fields and no others."""
    listed = list(fields)
    required = [field.name for field in listed if field.required]
    return {
        "type": "object",
        "properties": {field.name: field_schema(field) for field in listed},
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def field_schema(field: Field) -> Schema:
    """Return the schema of a field, of any shape, with its description."""
    schema = _item_schema(field)
    if field.shape in ("array", "2darray"):
        schema = {"type": "array", "items": schema}
    if field.shape == "2darray":
        schema = {"type": "array", "items": schema}
    if field.shape == "map":
        schema = {"type": "object", "additionalProperties": schema}
    if "$ref" in schema:
        # Draft 7 ignores everything beside a $ref.
        schema = {"allOf": [schema]}
    notes: Schema = {"description": field.description} if field.description else {}
    if field.default is not REQUIRED and field.default is not None:
        notes["default"] = field.default
    if field.examples:
        notes["examples"] = list(field.examples)
    if field.deprecated:
        notes["deprecated"] = True
    return {**notes, **schema}


def _item_schema(field: Field) -> Schema:
    if field.kind is not None and field.children:
        return {"$ref": f"#/definitions/listed_{field.kind}"}
    if field.kind is not None:
        return {"$ref": f"#/definitions/{field.kind}"}
    if field.children:
        return object_schema(field.children)
    if field.options and not field.interpolated:
        # Options are read in any case; an editor should offer each once.
        in_any_case = "|".join(map(_any_case_pattern, field.options))
        others = {"type": "string", "pattern": f"^({in_any_case})$"}
        return {"anyOf": [{"enum": list(field.options)}, others, _VARIABLE]}
    return dict(_DURATION if field.duration else _SCALARS[field.type])


def _any_case_pattern(word: str) -> str:
    return "".join(
        f"[{char.upper()}{char.lower()}]" if char.isalpha() else re.escape(char) for char in word
    )


def _kind_schema(kind: Kind, specs: Iterable[Spec]) -> Schema:
    """Return the schema of a component of a kind: one name, and what may stand beside it."""
    specs = list(specs)
    names = {"enum": [spec.name for spec in specs]} if specs else {}
    properties: Schema = {
        "type": {
            "type": "string",
            "description": f"The {kind}'s name, where it has no field of its own name.",
            **names,
        },
        "plugin": {"description": f"The {kind}'s fields, where it is named by `type`."},
        "meta": {"type": "object", "description": "Notes for people and tools; ignored."},
    }
    if kind.has_label:
        properties["label"] = _LABEL
    if kind.has_processors:
        properties["processors"] = {
            "type": "array",
            "items": {"$ref": f"#/definitions/{Kind.PROCESSOR}"},
            "minItems": 1,
            "description": f"Processors of this {kind}.",
        }
    if kind == Kind.METRICS:
        properties["mapping"] = {
            "type": "string",
            "description": "Renames, labels and drops metrics.",
        }
    properties.update((spec.name, _body_schema(spec)) for spec in specs)
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if specs:
        named = [{"required": [spec.name]} for spec in specs]
        # By its own name, once, or by `type` alone.
        by_type = {"required": ["type"], "not": {"anyOf": named}}
        # A name that there is not is told by itself, and nothing else about it.
        schema["if"] = {"propertyNames": {"enum": list(properties)}}
        schema["then"] = {"oneOf": [*named, by_type]}
    if kind.has_label and any(spec.name == "resource" for spec in specs):
        # The label of a reference is that of what it points to.
        schema["not"] = {"required": ["label", "resource"]}
    return schema


def _body_schema(spec: Spec) -> Schema:
    text = f"{spec.summary} {spec.description}".strip()
    if spec.distribution:
        text += f" It comes from the package {spec.distribution}."
    noted = {"deprecated": True} if spec.status == "deprecated" else {}
    return {**field_schema(spec.body), **noted, "description": text}
