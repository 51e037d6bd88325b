"""Components to parsed ones: which component a node names, its body, label and processors."""

from __future__ import annotations

from typing import Any, Final

from streamer.components import catalog
from streamer.config.field_hints import find_field_hints
from streamer.config.fields import add_problem, find_node, read_body, read_field, read_fields
from streamer.config.findings import suggest_name
from streamer.config.known_names import explain_missing, list_unavailable, suggest_available
from streamer.config.labels import read_label
from streamer.config.lint.old_spellings import check_spelling
from streamer.config.nodes import Mapping, Node, Scalar, Sequence, describe_node
from streamer.config.read_context import (
    SERVING_COMPONENTS,
    MissingName,
    ReadContext,
    Reference,
    ServedComponent,
    StatefulPlace,
)
from streamer.config.shared_sections import take_shared_fields
from streamer.config.templates.expand import expand_template
from streamer.config.templates.template import find_template
from streamer.config.unset_variables import holds_unset
from streamer.core.extras import (
    EXTRA_OF,
    install_hint,
    is_installed,
    missing_packages_text,
    skip_if_missing,
)
from streamer.core.permissions import current_permissions
from streamer.sdk.spec import BufferPlace, Field, Kind, ParsedComponent, ParsedFields, Spec
from streamer.sdk.spec.keyed_state import name_state_calls, name_window_expectations

_SEVERAL_HINTS: Final = {
    Kind.PROCESSOR: "write each as its own list item",
    Kind.BUFFER: "keep one of them; several are a list, the field `buffers`",
}
_PROCESSORS: Final = Field(
    "processors", "processor", "Processors at this place.", default=(), shape="array"
)
_META: Final = Field("meta", "unknown", "Unstructured metadata.", optional=True, shape="map")
_MAPPING: Final = Field(
    "mapping",
    "string",
    "Renames, labels and drops metrics. `this`, and `$path`, is the name of a metric.",
    default="",
    mapping=True,
    variables=("path",),
)


def list_reserved_fields(
    kind: Kind, fields_beside: tuple[Field, ...] = ()
) -> dict[str, Field | None]:
    """Return the fields that stand beside the name of a component of a kind.

    The value is None for those that are not read as a field.

    Args:
        kind: the kind.
        fields_beside: what may stand there besides at one place, with a label.
    """
    fields: dict[str, Field | None] = {"type": None, "plugin": None, "meta": _META}
    if kind.has_label:
        fields["label"] = None
    if kind.has_processors:
        fields["processors"] = _PROCESSORS
    if kind == Kind.METRICS:
        fields["mapping"] = _MAPPING
    if fields_beside:
        fields |= {"label": None, **{field.name: field for field in fields_beside}}
    return fields


def read_component(
    context: ReadContext,
    kind: Kind,
    node: Node,
    path: str,
    fields_beside: tuple[Field, ...] = (),
) -> ParsedComponent | None:
    """Read a node as a component of a kind.

    Args:
        context: gets the findings.
        kind: the kind.
        node: the node.
        path: its dotted path.
        fields_beside: what may stand beside the component's name at this place, with a label.

    Returns:
        The component, or None when it cannot be told which one it is, with a finding added.
    """
    if not isinstance(node, Mapping):
        _report_no_object(context, kind, node)
        return None
    reserved_fields = list_reserved_fields(kind, fields_beside)
    choice = _choose_component(context, kind, node, reserved_fields)
    if choice is None:
        _read_fields_beside(context, node, reserved_fields, path)
        context.unread.append(node)
        return None
    name, key = choice
    if not context.templates:
        _collect_place(context, kind, choice, path)
    before = context.findings.harmful_count
    spec = catalog.find_spec(kind, name)
    assert spec is not None
    _check_component(context, spec, node, key, reserved_fields)
    label = read_label(context, kind, name, node, has_label=bool(fields_beside))
    config = _read_component_body(context, spec, node, f"{path}.{name}" if path else name, key)
    others = _read_fields_beside(context, node, reserved_fields, path)
    line, column = key.source.locate(key.start)
    component = ParsedComponent(
        *(kind, name, label, config, path, line, column),
        processors=others.get("processors") or (),
        mapping=others.get("mapping") or "",
        file=key.source.name,
        permissions=current_permissions(),
        place=_make_place(others) if fields_beside else None,
    )
    if name in SERVING_COMPONENTS:
        _collect_served(context, component, node, key)
    if not context.templates:
        _collect_state(context, component, key)
    template = find_template(kind, name)
    if template is None:
        return component
    # What a template would make of fields that are wrong is of no use to anybody.
    is_sound = context.findings.harmful_count == before
    return expand_template(context, template, component, key) if is_sound else None


def _check_component(
    context: ReadContext, spec: Spec, node: Mapping, key: Scalar, reserved: dict[str, Field | None]
) -> None:
    """Add what is wrong with a component beside its own fields."""
    _check_other_fields(context, spec, node, reserved)
    if spec.status == "deprecated" and context.options.deprecated:
        context.findings.add_at(key, "deprecated", f"component {spec.name} is deprecated")
    check_spelling(context, spec.name, node)


def _collect_place(context: ReadContext, kind: Kind, choice: tuple[str, Scalar], path: str) -> None:
    """Collect the place of a component that is checked when all of the config is read."""
    name, key = choice
    if kind == Kind.PROCESSOR and name == "catch":
        context.catches.append(key)
    if name == "sync_response":
        context.sync_responses.append(key)


def _collect_state(context: ReadContext, component: ParsedComponent, key: Scalar) -> None:
    """Collect a processor that keeps state by key itself, or that is about windows."""
    if component.kind != Kind.PROCESSOR:
        return
    path = f"{component.path}.{component.name}"
    calls = name_state_calls(component.name, component.config)
    if calls:
        context.stateful_places.append(StatefulPlace(key, path, calls))
    expectations = name_window_expectations(component.name, component.config)
    if expectations:
        context.window_places.append(StatefulPlace(key, path, expectations))


def _collect_served(
    context: ReadContext, component: ParsedComponent, node: Mapping, key: Scalar
) -> None:
    """Collect a component that serves HTTP, whose paths are compared with those of others."""
    entry = node.entries.get(component.name) or node.entries.get("plugin")
    places = (None, None) if context.templates else (key, entry[1] if entry else None)
    context.served_components.append(ServedComponent(component, *places))


def _make_place(others: dict[str, Any]) -> BufferPlace:
    pipeline = others.get("pipeline")
    processors = (pipeline and pipeline["processors"]) or ()
    return BufferPlace(others.get("from") or "", processors, others.get("output"))


def _report_no_object(context: ReadContext, kind: Kind, node: Node) -> None:
    hint = ""
    if isinstance(node, Scalar) and node.text in catalog.component_names(kind):
        hint = f"write `{node.text}: {{}}`"
    elif isinstance(node, Sequence) and kind == Kind.BUFFER:
        hint = "a list of buffers is the field `buffers`, with a label for each"
    elif isinstance(node, Scalar) and not node.text:
        hint = f"name the {kind}, or remove the field"
    message = f"expected object value, got {describe_node(node)}"
    context.findings.add_at(node, "expected_object", message, hint)


def _check_other_fields(
    context: ReadContext, spec: Spec, node: Mapping, reserved_fields: dict[str, Field | None]
) -> None:
    """Add a finding for each field beside the component's name that has no business there."""
    for name, (key, _) in node.entries.items():
        if name == spec.name or name in reserved_fields:
            continue
        hint = suggest_name(name, reserved_fields)
        if not hint and any(name == known.name for known in spec.fields):
            hint = f"indent it, so that it is below {spec.name}"
        message = f"field {name} is invalid when the component type is {spec.name} ({spec.kind})"
        context.findings.add_at(key, "unknown_field", message, hint)


def _choose_component(
    context: ReadContext, kind: Kind, node: Mapping, beside: dict[str, Field | None]
) -> tuple[str, Scalar] | None:
    """Return the name of the component that a node names, and where."""
    if "type" in node.entries:
        value = node.entries["type"][1]
        if not isinstance(value, Scalar):
            message = f"field type: expected string value, got {describe_node(value)}"
            context.findings.add_at(value, "expected_string", message)
            return None
        if catalog.has_component(kind, value.text):
            return value.text, value
        _report_unknown(context, kind, value)
        return None
    candidates = {name: key for name, (key, _) in node.entries.items() if name not in beside}
    known = [name for name in candidates if catalog.has_component(kind, name)]
    if len(known) > 1:
        first, second = sorted(known)[:2]
        context.findings.add_at(
            candidates[known[1]],
            "several_components",
            f"unable to infer {kind} type, multiple candidates '{first}' and '{second}'",
            _suggest_replacement(kind, known, candidates)
            or _SEVERAL_HINTS.get(kind, "keep one of them"),
        )
        return None
    if known:
        return known[0], candidates[known[0]]
    if not candidates:
        context.findings.add_at(
            node, "missing_component", f"an explicit {kind} type must be specified"
        )
    for key in candidates.values():
        _report_unknown(context, kind, key)
    return None


def _suggest_replacement(kind: Kind, known: list[str], keys: dict[str, Scalar]) -> str:
    """Return how `--set` replaces a component, where it has added one beside another."""
    for name in known:
        option, _, path = keys[name].source.name.partition(" ")
        if option == "--set" and f".{name}" in path:
            parent = path.partition(f".{name}")[0]
            return f"to replace the {kind}, set it as a whole: -s '{parent}={{{name}: {{…}}}}'"
    return ""


def _report_unknown(context: ReadContext, kind: Kind, key: Scalar) -> None:
    message = explain_missing(kind, key.text)
    context.missing.append(MissingName(kind, key, bool(message)))
    if message:
        context.findings.add_at(
            key, "unavailable_component", message, suggest_available(kind, key.text)
        )
        return
    hint = suggest_name(key.text, [*catalog.component_names(kind), *list_unavailable(kind)])
    if not hint:
        kinds = [other for other in Kind if key.text in catalog.component_names(other)]
        hint = f"it is the name of a component of kind {kinds[0]}" if kinds else ""
    context.findings.add_at(key, "unknown_component", f"{kind} '{key.text}' is not known", hint)


def _read_component_body(
    context: ReadContext, spec: Spec, node: Mapping, path: str, key: Scalar
) -> Any:
    """Read the fields of a component, while the context names its path."""
    around, context.component_path = context.component_path, path
    try:
        return _read_body(context, spec, node, path, key)
    finally:
        context.component_path = around


def _read_body(context: ReadContext, spec: Spec, node: Mapping, path: str, key: Scalar) -> Any:
    entry = node.entries.get(spec.name) or node.entries.get("plugin")
    before = context.findings.harmful_count
    body = entry[1] if entry else Mapping(key.source, key.start, key.start)
    if spec.config is not None:
        config = read_body(context, spec.config, body if entry else None, path, key)
    elif isinstance(body, Mapping):
        of = f" in {spec.name}"
        hints = find_field_hints(spec, body.entries)
        config = read_fields(context, spec.fields, body, path, key, of, hints)
        config = take_shared_fields(context, spec, config, key)
    else:
        context.findings.add_at(
            body,
            "expected_object",
            f"{spec.name}: expected object value, got {describe_node(body)}",
            f"write `{spec.name}: {{}}`" if isinstance(body, Scalar) and not body.text else "",
        )
        return ParsedFields({})
    if spec.check and context.findings.harmful_count == before:
        problems: list[tuple[str, str]] = []
        with skip_if_missing():
            problems += spec.check(config)
        if problems and not context.uses_other_values and holds_unset(body):
            problems = _confirm_problems(context, spec, body, path, key, problems)
        for name, problem in problems:
            # A field that is there is shown; what is missing is reported at the component.
            place = find_node(body, name) if name else key
            place = key if place is body else place
            if holds_unset(place):
                continue
            add_problem(context, place, name, problem)
    _check_packages(context, spec, config, body, key)
    if spec.references and context.findings.harmful_count == before:
        for name, kind, label in spec.references(config):
            at = find_node(body, name)
            context.references.append(Reference(kind, label, at, f"{path}.{name}"))
    return config


def _confirm_problems(
    context: ReadContext,
    spec: Spec,
    body: Node,
    path: str,
    key: Scalar,
    problems: list[tuple[str, str]],
) -> list[tuple[str, str]]:
    """Return those problems that are there with other values in the place of unknown ones too."""
    if not isinstance(body, Mapping) or spec.check is None:
        return problems
    again = context.make_second_pass()
    other = take_shared_fields(again, spec, read_fields(again, spec.fields, body, path, key), key)
    remaining = set()
    if not again.findings.harmful_count:
        with skip_if_missing():
            remaining |= {name for name, _ in spec.check(other)}
    return [one for one in problems if one[0] in remaining]


def _check_packages(
    context: ReadContext, spec: Spec, config: Any, body: Node | None, key: Scalar
) -> None:
    """Add a finding for the packages that a component needs, and one for each field's own."""
    if not context.options.packages:
        return
    lacking: dict[str, list[str]] = {}
    for package in spec.requires:
        if package.needed_by(config) and not is_installed(package.name):
            lacking.setdefault(package.field, []).append(package.name)
    # With all that the component needs, what a field of it needs is installed too.
    always = {EXTRA_OF[name] for name in lacking.get("", ())}
    for field, names in lacking.items():
        if field and always.issuperset(EXTRA_OF[name] for name in names):
            continue
        place = key if body is None or not field else find_node(body, field)
        what = f"{spec.kind} {spec.name}" + (f" with the field {field}" if field else "")
        message = missing_packages_text(what, names)
        context.findings.add_at(place, "missing_package", message, install_hint(names))


def _read_fields_beside(
    context: ReadContext, node: Mapping, beside: dict[str, Field | None], path: str
) -> dict[str, Any]:
    """Read the fields that stand beside the component's name."""
    key, processors = node.entries.get("processors", (node, None))
    if "processors" in beside and isinstance(processors, Sequence) and not processors.items:
        message = "field processors is empty and can be removed"
        context.findings.add_at(key, "should_omit", message)
    return {
        name: read_field(context, field, node.entries[name][1], f"{path}.{name}", node)
        for name, field in beside.items()
        if field is not None and name in node.entries
    }
