"""Resources in the place of the components that refer to them by their label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from streamer.errors import StreamerError
from streamer.spec import Kind, ParsedComponent

Resources = Mapping[tuple[Kind, str], ParsedComponent]


def resource_of(resources: Resources, kind: Kind, label: str) -> ParsedComponent:
    """Return the resource of a label.

    Raises:
        StreamerError: there is none; the text names those that there are.
    """
    found = resources.get((kind, label))
    if found is None:
        known = ", ".join(sorted(name for of, name in resources if of == kind)) or "none"
        raise StreamerError(
            f"there is no {kind} resource with the label {label!r}; {kind}_resources has {known}"
        )
    return found


def resolved(component: ParsedComponent, resources: Resources) -> ParsedComponent:
    """Return a component, or the resource that it refers to.

    The processors beside a `resource` stay: those of an input run after the resource's own, those
    of an output before them, since they are the outer ones.
    """
    if component.name != "resource":
        return component
    found = resolved(resource_of(resources, component.kind, component.config), resources)
    own = (found.processors, component.processors)
    if component.kind == Kind.OUTPUT:
        own = own[::-1]
    return replace(found, processors=(*own[0], *own[1]))
