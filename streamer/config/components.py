"""Components to parsed ones: which component a node names, its body, label and processors."""

from __future__ import annotations

from typing import Any, Final

from streamer import catalog
from streamer.config.fields import find, problem_text, read_body, read_field, read_fields
from streamer.config.findings import did_you_mean
from streamer.config.labels import read_label
from streamer.config.nodes import Mapping, Node, Scalar, Sequence, described
from streamer.config.old_spellings import check_spelling
from streamer.config.reading import SERVING, Reading, Reference, Served
from streamer.config.templates.expand import expand
from streamer.config.templates.template import template_of
from streamer.config.unavailable import available_text, missing_text, unavailable
from streamer.config.unset import holds_unset
from streamer.extras import EXTRA_OF, install_hint, is_installed, lacking_text, unless_lacking
from streamer.permissions import current_permissions
from streamer.spec import Field, Kind, Parsed, ParsedComponent, Spec

_PROCESSORS: Final = Field(
    "processors", "processor", "Processors at this place.", default=(), shape="array"
)
_META: Final = Field("meta", "unknown", "Unstructured metadata.", optional=True, shape="map")
_MAPPING: Final = Field(
    "mapping", "string", "Renames, labels and drops metrics.", default="", mapping=True
)


def reserved(kind: Kind) -> dict[str, Field | None]:
    """Return the fields that stand beside the name of a component of a kind.

    The value is None for those that are not read as a field.
    """
    fields: dict[str, Field | None] = {"type": None, "plugin": None, "meta": _META}
    if kind.has_label:
        fields["label"] = None
    if kind.has_processors:
        fields["processors"] = _PROCESSORS
    if kind == Kind.METRICS:
        fields["mapping"] = _MAPPING
    return fields


def read_component(reading: Reading, kind: Kind, node: Node, path: str) -> ParsedComponent | None:
    """Read a node as a component of a kind.

    Returns:
        The component, or None when it cannot be told which one it is, with a finding added.
    """
    if not isinstance(node, Mapping):
        hint = ""
        if isinstance(node, Scalar) and node.text in catalog.names(kind):
            hint = f"write `{node.text}: {{}}`"
        elif isinstance(node, Scalar) and not node.text:
            hint = f"name the {kind}, or remove the field"
        message = f"expected object value, got {described(node)}"
        reading.findings.at(node, "expected_object", message, hint)
        return None
    beside = reserved(kind)
    chosen = _choose(reading, kind, node, beside)
    if chosen is None:
        _beside(reading, node, beside, path)
        reading.unread.append(node)
        return None
    name, key = chosen
    if kind == Kind.PROCESSOR and name == "catch" and not reading.templates:
        reading.catches.append(key)
    if name == "sync_response" and not reading.templates:
        reading.answers.append(key)
    before = reading.findings.harmful
    found = catalog.spec(kind, name)
    assert found is not None
    for other, (other_key, _) in node.entries.items():
        if other != name and other not in beside:
            reading.findings.at(
                other_key,
                "unknown_field",
                f"field {other} is invalid when the component type is {name} ({kind})",
                did_you_mean(other, beside) or _belongs(found, other, name),
            )
    if found.status == "deprecated" and reading.options.deprecated:
        reading.findings.at(key, "deprecated", f"component {name} is deprecated")
    check_spelling(reading, name, node)
    label = read_label(reading, kind, name, node)
    config = _body(reading, found, node, f"{path}.{name}" if path else name, key)
    others = _beside(reading, node, beside, path)
    line, column = key.source.place(key.start)
    component = ParsedComponent(
        kind,
        name,
        label,
        config,
        path,
        line,
        column,
        processors=others.get("processors") or (),
        mapping=others.get("mapping") or "",
        file=key.source.name,
        permissions=current_permissions(),
    )
    if name in SERVING:
        entry = node.entries.get(name) or node.entries.get("plugin")
        made = bool(reading.templates)
        shown = (None, None) if made else (key, entry[1] if entry else None)
        reading.served.append(Served(component, *shown))
    template = template_of(kind, name)
    if template is None:
        return component
    # What a template would make of fields that are wrong is of no use to anybody.
    sound = reading.findings.harmful == before
    return expand(reading, template, component, key) if sound else None


def _belongs(found: Spec, field: str, name: str) -> str:
    """Suggest to indent a field that stands beside a component's name instead of below it."""
    inside = any(field == known.name for known in found.fields)
    return f"indent it, so that it is below {name}" if inside else ""


def _choose(
    reading: Reading, kind: Kind, node: Mapping, beside: dict[str, Field | None]
) -> tuple[str, Scalar] | None:
    """Return the name of the component that a node names, and where."""
    if "type" in node.entries:
        value = node.entries["type"][1]
        if not isinstance(value, Scalar):
            message = f"field type: expected string value, got {described(value)}"
            reading.findings.at(value, "expected_string", message)
            return None
        if value.text in catalog.names(kind):
            return value.text, value
        _unknown(reading, kind, value)
        return None
    candidates = {name: key for name, (key, _) in node.entries.items() if name not in beside}
    known = [name for name in candidates if name in catalog.names(kind)]
    if len(known) > 1:
        first, second = sorted(known)[:2]
        reading.findings.at(
            candidates[known[1]],
            "several_components",
            f"unable to infer {kind} type, multiple candidates '{first}' and '{second}'",
            "keep one of them" if kind != Kind.PROCESSOR else "write each as its own list item",
        )
        return None
    if known:
        return known[0], candidates[known[0]]
    if not candidates:
        reading.findings.at(node, "missing_component", f"an explicit {kind} type must be specified")
    for key in candidates.values():
        _unknown(reading, kind, key)
    return None


def _unknown(reading: Reading, kind: Kind, key: Scalar) -> None:
    if message := missing_text(kind, key.text):
        reading.findings.at(key, "unavailable_component", message, available_text(kind, key.text))
        return
    hint = did_you_mean(key.text, [*catalog.names(kind), *unavailable(kind)])
    if not hint:
        kinds = [other for other in Kind if key.text in catalog.names(other)]
        hint = f"it is the name of a component of kind {kinds[0]}" if kinds else ""
    reading.findings.at(key, "unknown_component", f"{kind} '{key.text}' is not known", hint)


def _body(reading: Reading, found: Spec, node: Mapping, path: str, key: Scalar) -> Any:
    entry = node.entries.get(found.name) or node.entries.get("plugin")
    before = reading.findings.harmful
    body = entry[1] if entry else Mapping(key.source, key.start, key.start)
    if found.config is not None:
        config = read_body(reading, found.config, body if entry else None, path, key)
    elif isinstance(body, Mapping):
        config = read_fields(reading, found.fields, body, path, key, f" in {found.name}")
    else:
        reading.findings.at(
            body,
            "expected_object",
            f"{found.name}: expected object value, got {described(body)}",
            f"write `{found.name}: {{}}`" if isinstance(body, Scalar) and not body.text else "",
        )
        return Parsed({})
    if found.check and reading.findings.harmful == before:
        problems: list[tuple[str, str]] = []
        with unless_lacking():
            problems += found.check(config)
        if problems and not reading.other_values and holds_unset(body):
            problems = _whatever_is_unset(reading, found, body, path, key, problems)
        for name, problem in problems:
            # A field that is there is shown; what is missing is reported at the component.
            place = find(body, name) if name else key
            place = key if place is body else place
            if holds_unset(place):
                continue
            reading.findings.at(place, "bad_value", problem_text(name, problem))
    _check_packages(reading, found, config, body, key)
    if found.references and reading.findings.harmful == before:
        for name, kind, label in found.references(config):
            at = find(body, name)
            reading.references.append(Reference(kind, label, at, f"{path}.{name}"))
    return config


def _whatever_is_unset(
    reading: Reading,
    found: Spec,
    body: Node,
    path: str,
    key: Scalar,
    problems: list[tuple[str, str]],
) -> list[tuple[str, str]]:
    """Return those problems that are there with other values in the place of unknown ones too."""
    if not isinstance(body, Mapping) or found.check is None:
        return problems
    again = reading.again()
    other = read_fields(again, found.fields, body, path, key)
    still = set()
    if not again.findings.harmful:
        with unless_lacking():
            still |= {name for name, _ in found.check(other)}
    return [one for one in problems if one[0] in still]


def _check_packages(
    reading: Reading, found: Spec, config: Any, body: Node | None, key: Scalar
) -> None:
    """Add a finding for the packages that a component needs, and one for each field's own."""
    if not reading.options.packages:
        return
    lacking: dict[str, list[str]] = {}
    for package in found.requires:
        if package.needed_by(config) and not is_installed(package.name):
            lacking.setdefault(package.field, []).append(package.name)
    # With all that the component needs, what a field of it needs is installed too.
    always = {EXTRA_OF[name] for name in lacking.get("", ())}
    for field, names in lacking.items():
        if field and always.issuperset(EXTRA_OF[name] for name in names):
            continue
        place = key if body is None or not field else find(body, field)
        what = f"{found.kind} {found.name}" + (f" with the field {field}" if field else "")
        message = lacking_text(what, names)
        reading.findings.at(place, "missing_package", message, install_hint(names))


def _beside(
    reading: Reading, node: Mapping, beside: dict[str, Field | None], path: str
) -> dict[str, Any]:
    """Read the fields that stand beside the component's name."""
    key, processors = node.entries.get("processors", (node, None))
    if "processors" in beside and isinstance(processors, Sequence) and not processors.items:
        message = "field processors is empty and can be removed"
        reading.findings.at(key, "should_omit", message)
    return {
        name: read_field(reading, field, node.entries[name][1], f"{path}.{name}", node)
        for name, field in beside.items()
        if field is not None and name in node.entries
    }
