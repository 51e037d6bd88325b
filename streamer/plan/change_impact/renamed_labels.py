"""Resources that go by another name and are the same: a new label alone changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from streamer.components import catalog
from streamer.config import Config
from streamer.plan.change_impact.plain_values import to_plain_value
from streamer.sdk.spec import Field, Kind, ParsedComponent, ParsedFields

LabelRenames = dict[tuple[Kind, str], str]


def restore_labels(old: Config, new: Config) -> Config:
    """Return a config whose resources go by the labels that they have in another one.

    A resource was renamed when its label is new, one of the former labels is gone, both are of one
    kind, and nothing else about them differs.
    """
    names = _find_renames(old, new)
    if not names:
        return new
    resources = {
        (kind, names.get((kind, label), label)): _rename_component(one, names)
        for (kind, label), one in new.resources.items()
    }
    resources = {key: replace(one, label=key[1]) for key, one in resources.items()}
    return replace(
        new,
        input=_rename_component(new.input, names),
        buffer=_rename_component(new.buffer, names),
        processors=tuple(_rename_component(one, names) for one in new.processors),
        output=_rename_component(new.output, names),
        resources=resources,
        buffers=tuple(_rename_component(one, names) for one in new.buffers),
    )


def _find_renames(old: Config, new: Config) -> LabelRenames:
    gone = [key for key in old.resources if key not in new.resources]
    renames: LabelRenames = {}
    for key, one in new.resources.items():
        if key in old.resources:
            continue
        for former in gone:
            bare = replace(one, label="")
            if former[0] == key[0] and to_plain_value(bare) == to_plain_value(
                replace(old.resources[former], label="")
            ):
                renames[key] = former[1]
                gone.remove(former)
                break
    return renames


def _rename_component(component: ParsedComponent, names: LabelRenames) -> ParsedComponent:
    processors = tuple(_rename_component(one, names) for one in component.processors)
    if component.name == "resource":
        label = names.get((component.kind, component.config), component.config)
        return replace(component, config=label, processors=processors)
    spec = catalog.find_spec(component.kind, component.name)
    config = component.config
    if spec is not None:
        config = _rename_in_field(spec.body, config, names)
        if spec.references is not None:
            of = dict.fromkeys((k, label) for _, k, label in spec.references(config))
            config = _replace_labels(
                config, {label: names.get((k, label), label) for k, label in of}
            )
    place = component.place
    if place is not None:
        place = replace(
            place,
            processors=tuple(_rename_component(one, names) for one in place.processors),
            output=place.output and _rename_component(place.output, names),
        )
    return replace(component, config=config, processors=processors, place=place)


def _rename_in_field(field: Field, value: Any, names: LabelRenames) -> Any:
    if isinstance(value, ParsedComponent):
        return _rename_component(value, names)
    if isinstance(value, ParsedFields) and field.children:
        children = {child.name: child for child in field.children}
        values = {
            name: _rename_in_field(children[name], item, names) if name in children else item
            for name, item in value.items()
        }
        return ParsedFields(
            values, {name: value.place(name) for name in value if value.is_given(name)}
        )
    if isinstance(value, Mapping) and not isinstance(value, ParsedFields):
        return {name: _rename_in_field(field, item, names) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_rename_in_field(field, item, names) for item in value)
    if field.refers is not None and isinstance(value, str):
        return names.get((field.refers, value), value)
    return value


def _replace_labels(value: Any, labels: Mapping[str, str]) -> Any:
    """Return a component's fields with labels that its spec names replaced."""
    if all(before == after for before, after in labels.items()):
        return value
    if isinstance(value, ParsedFields):
        values = {name: _replace_labels(item, labels) for name, item in value.items()}
        return ParsedFields(
            values, {name: value.place(name) for name in value if value.is_given(name)}
        )
    if isinstance(value, dict):
        return {labels.get(k, k): _replace_labels(item, labels) for k, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_replace_labels(item, labels) for item in value)
    return labels.get(value, value) if isinstance(value, str) else value
