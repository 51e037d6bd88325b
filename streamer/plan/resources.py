"""Resources in the place of the components that refer to them by their label."""

from __future__ import annotations

from dataclasses import replace

from streamer.core.errors import StreamerError
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.sdk.spec.parsed_config import Resources


def get_resource(resources: Resources, kind: Kind, label: str) -> ParsedComponent:
    """Return the resource of a label.

    Raises:
        StreamerError: there is none; the text names those that there are.
    """
    resource = resources.get((kind, label))
    if resource is None:
        known = ", ".join(sorted(name for of, name in resources if of == kind)) or "none"
        raise StreamerError(
            f"there is no {kind} resource with the label {label!r}; {kind}_resources has {known}"
        )
    return resource


def resolve_resource(component: ParsedComponent, resources: Resources) -> ParsedComponent:
    """Return a component, or the resource that it refers to.

    The processors beside a `resource` stay: those of an input run after the resource's own, those
    of an output before them, since they are the outer ones.
    """
    if component.name != "resource":
        return component
    target = resolve_resource(get_resource(resources, component.kind, component.config), resources)
    own = (target.processors, component.processors)
    if component.kind == Kind.OUTPUT:
        own = own[::-1]
    return replace(target, processors=(*own[0], *own[1]))
