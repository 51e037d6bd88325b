"""Resources that go by another name and are the same: a new label alone changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from streamer import catalog
from streamer.config import Config
from streamer.plan.judgement.raw import raw
from streamer.spec import Field, Kind, Parsed, ParsedComponent

Names = dict[tuple[Kind, str], str]


def with_labels_of(old: Config, new: Config) -> Config:
    """Return a config whose resources go by the labels that they have in another one.

    A resource was renamed when its label is new, one of the former labels is gone, both are of one
    kind, and nothing else about them differs.
    """
    names = _renamed(old, new)
    if not names:
        return new
    resources = {
        (kind, names.get((kind, label), label)): _named(one, names)
        for (kind, label), one in new.resources.items()
    }
    resources = {key: replace(one, label=key[1]) for key, one in resources.items()}
    return replace(
        new,
        input=_named(new.input, names),
        buffer=_named(new.buffer, names),
        processors=tuple(_named(one, names) for one in new.processors),
        output=_named(new.output, names),
        resources=resources,
    )


def _renamed(old: Config, new: Config) -> Names:
    gone = [key for key in old.resources if key not in new.resources]
    found: Names = {}
    for key, one in new.resources.items():
        if key in old.resources:
            continue
        for former in gone:
            bare = replace(one, label="")
            if former[0] == key[0] and raw(bare) == raw(replace(old.resources[former], label="")):
                found[key] = former[1]
                gone.remove(former)
                break
    return found


def _named(component: ParsedComponent, names: Names) -> ParsedComponent:
    processors = tuple(_named(one, names) for one in component.processors)
    if component.name == "resource":
        label = names.get((component.kind, component.config), component.config)
        return replace(component, config=label, processors=processors)
    spec = catalog.spec(component.kind, component.name)
    config = component.config
    if spec is not None:
        config = _in(spec.body, config, names)
        if spec.references is not None:
            of = dict.fromkeys((k, label) for _, k, label in spec.references(config))
            config = _replaced(config, {label: names.get((k, label), label) for k, label in of})
    return replace(component, config=config, processors=processors)


def _in(field: Field, value: Any, names: Names) -> Any:
    if isinstance(value, ParsedComponent):
        return _named(value, names)
    if isinstance(value, Parsed) and field.children:
        children = {child.name: child for child in field.children}
        values = {
            name: _in(children[name], item, names) if name in children else item
            for name, item in value.items()
        }
        return Parsed(values, {name: value.place(name) for name in value if value.given(name)})
    if isinstance(value, Mapping) and not isinstance(value, Parsed):
        return {name: _in(field, item, names) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_in(field, item, names) for item in value)
    if field.refers is not None and isinstance(value, str):
        return names.get((field.refers, value), value)
    return value


def _replaced(value: Any, labels: Mapping[str, str]) -> Any:
    """Return a component's fields with labels that its spec names replaced."""
    if all(before == after for before, after in labels.items()):
        return value
    if isinstance(value, Parsed):
        values = {name: _replaced(item, labels) for name, item in value.items()}
        return Parsed(values, {name: value.place(name) for name in value if value.given(name)})
    if isinstance(value, dict):
        return {labels.get(k, k): _replaced(item, labels) for k, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(_replaced(item, labels) for item in value)
    return labels.get(value, value) if isinstance(value, str) else value
