"""Fields of a template's file, and the fields of a config that its own `fields` stand for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from streamer.config.fields import find_node, read_field
from streamer.config.findings import Findings
from streamer.config.nodes import Mapping, Node
from streamer.config.read_context import ReadContext
from streamer.sdk.spec import REQUIRED, Field, Kind, ParsedFields, Shape

TEMPLATE_KINDS: Final = (Kind.CACHE, Kind.INPUT, Kind.OUTPUT, Kind.PROCESSOR, Kind.RATE_LIMIT)
_SHAPES: Final[dict[str, Shape]] = {"scalar": "scalar", "map": "map", "list": "array"}
_ENUMS: Final = ("string_enum", "string_annotated_enum")
_TYPES: Final = ("string", *_ENUMS, "int", "float", "bool", "bloblang", "unknown")

_FIELD_PROPERTIES: Final = (
    Field("name", "string", "The name of the field."),
    Field("description", "string", "What it is for.", default=""),
    Field(
        "type",
        "string",
        "What it takes; `unknown` takes any part of a config, `bloblang` a mapping.",
        options=_TYPES,
    ),
    Field(
        "kind",
        "string",
        "Whether it is one value, a map or a list of such values.",
        default="scalar",
        options=tuple(_SHAPES),
    ),
    Field(
        "default",
        "unknown",
        "The value when the field is left out; without a default, it must not be.",
        optional=True,
    ),
    Field("advanced", "bool", "Whether the short documentation leaves it out.", default=False),
    Field(
        "options",
        "unknown",
        "The values of a `string_enum`, as a list, or those of a `string_annotated_enum`, as an "
        "object with a description for each.",
        optional=True,
    ),
)
_TEST_FIELDS: Final = (
    Field("name", "string", "What is tested."),
    Field("label", "string", "The label that the component has in the test.", default=""),
    Field("config", "object", "The fields of the template, as a config would set them."),
    Field(
        "expected",
        "object",
        "What the template makes of them; without it, that is only linted.",
        optional=True,
    ),
)

TEMPLATE_FIELDS: Final = (
    Field("name", "string", "The name of the component that the template makes."),
    Field(
        "type",
        "string",
        "The kind of component.",
        options=tuple(str(kind) for kind in TEMPLATE_KINDS),
    ),
    Field(
        "status",
        "string",
        "How settled it is; `lint --deprecated` names the use of deprecated ones.",
        default="stable",
        options=("stable", "beta", "experimental", "deprecated"),
    ),
    Field(
        "categories",
        "string",
        "Words that `list` and the documentation group by.",
        default=(),
        shape="array",
    ),
    Field("summary", "string", "What it does, in a sentence.", default=""),
    Field("description", "string", "The rest of its documentation, Markdown.", default=""),
    Field(
        "fields",
        "object",
        "The fields of the component.",
        default=(),
        shape="array",
        children=_FIELD_PROPERTIES,
    ),
    Field(
        "mapping",
        "string",
        "A Bloblang mapping from the fields to a config of a component of this kind. "
        "`@label` is the label of the component.",
        mapping=True,
    ),
    Field(
        "metrics_mapping",
        "string",
        "A Bloblang mapping of the metrics of what the template makes, as `metrics.mapping` is of "
        "all metrics, and before it. `$label` is the label of the component.",
        default="",
        mapping=True,
        variables=("label",),
    ),
    Field(
        "tests",
        "object",
        "Fields with what the template makes of them, for `streamer template lint`.",
        default=(),
        shape="array",
        children=_TEST_FIELDS,
    ),
)


def read_component_fields(
    context: ReadContext, parsed: ParsedFields, root: Mapping
) -> tuple[Field, ...]:
    """Return the fields of the component that a template makes.

    Args:
        context: gets the findings.
        parsed: the template's `TEMPLATE_FIELDS`; fields that have findings already are left out.
        root: its tree.
    """
    made: dict[str, Field] = {}
    for index, one in enumerate(parsed["fields"] or ()):
        if one is None or not _is_complete(one):
            continue
        node = find_node(root, f"fields.{index}")
        if one["name"] in made:
            message = f"there are two fields of the name {one['name']!r}"
            context.findings.add_at(
                find_node(node, "name"), "bad_template", message, "rename one of them"
            )
        options = _read_options(context.findings, one, node)
        made[one["name"]] = _add_default(context, one, _make_field(one, options), node)
    return tuple(made.values())


def _is_complete(parsed: ParsedFields) -> bool:
    """Return whether a field says what it is called and takes."""
    type_, kind = parsed["type"], parsed["kind"]
    known = type_ is not None and type_.lower() in _TYPES
    return known and kind is not None and kind.lower() in _SHAPES and parsed["name"] is not None


def _make_field(parsed: ParsedFields, options: tuple[str, ...]) -> Field:
    type_ = parsed["type"].lower()
    return Field(
        parsed["name"],
        "string" if type_ in (*_ENUMS, "bloblang") else type_,
        parsed["description"],
        shape=_SHAPES[parsed["kind"].lower()],
        mapping=type_ == "bloblang",
        advanced=parsed["advanced"],
        options=options,
    )


def _add_default(context: ReadContext, parsed: ParsedFields, field: Field, node: Node) -> Field:
    """Return a field with its default, which is checked where it stands; null is none."""
    default = parsed["default"]
    if default is None:
        return field
    place = find_node(node, "default")
    read_field(context, field, place, "", place)
    return replace(field, default=_freeze_default(default))


def _freeze_default(default: Any) -> Any:
    return tuple(default) if isinstance(default, list) else default


def _read_options(findings: Findings, parsed: ParsedFields, node: Node) -> tuple[str, ...]:
    """Return the values that an enum may have, in order; none for a field of another type."""
    type_, given = parsed["type"].lower(), parsed["options"]
    if type_ not in _ENUMS or parsed["options"] is REQUIRED:
        return ()
    place = find_node(node, "options")
    what = "a list of texts" if type_ == "string_enum" else "an object: a text for each value"
    shape = list if type_ == "string_enum" else dict
    if not isinstance(given, shape) or not given:
        message = f"field options of {parsed['name']}: a {type_} has {what}"
        findings.add_at(place, "bad_template", message, "name at least one value")
        return ()
    texts = given if isinstance(given, list) else given.values()
    if not all(isinstance(text, str) for text in texts):
        message = f"field options of {parsed['name']}: expected {what}"
        findings.add_at(place, "bad_template", message, "quote what is no text")
        return ()
    if len(set(given)) < len(given):
        message = f"field options of {parsed['name']}: a value is listed twice"
        findings.add_at(place, "bad_template", message)
    return tuple(sorted(given))
