"""Components of a plan, looked up: resources, inputs of pieces, outputs of the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from streamer.components.inputs.broker import children
from streamer.core.errors import StreamerError
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import child_components
from streamer.sdk.spec.component import Resources

WRITER_OUTPUTS: Final = frozenset({"delta", "file", "iceberg", "parquet", "stdout"})
"""Names of outputs whose bytes the driver writes to one place each."""

DRIVER_WRITTEN: Final = WRITER_OUTPUTS | {"dynamic", "http_server", "inproc"}
"""Outputs whose bytes return to the driver."""
_DEDUPE: Final = "dedupe_headers"
_FAILURE_HANDLERS: Final = frozenset({"drop_on", "fallback", "retry"})
"""Outputs that do something else with what an output inside of them does not take."""


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


def input_of_path(
    component: ParsedComponent, input_path: Sequence[int], resources: Resources
) -> ParsedComponent:
    """Return the input at a path of numbers, with the processors of all inputs that it is in.

    A config that was changed meanwhile may have no such input any more: then it is the whole one.

    Args:
        component: the plan's input.
        input_path: the numbers of the sources that a piece is from, the outermost first.
        resources: the plan's.
    """
    if component.name != "broker" or not input_path or input_path[0] >= len(children(component)):
        return component
    child = resolve_resource(children(component)[input_path[0]], resources)
    return _with_broker_processors(component, input_of_path(child, input_path[1:], resources))


def input_paths(component: ParsedComponent, resources: Resources) -> Iterator[tuple[int, ...]]:
    """Return the paths of an input and of all inputs that it reads from."""
    yield ()
    component = resolve_resource(component, resources)
    if component.name == "broker":
        for number, child in enumerate(children(component)):
            yield from ((number, *path) for path in input_paths(child, resources))


def leaf_inputs(component: ParsedComponent, resources: Resources) -> Iterator[ParsedComponent]:
    """Return the inputs that an input reads from, itself if it is no broker."""
    component = resolve_resource(component, resources)
    if component.name != "broker":
        yield component
        return
    for child in component.config["inputs"]:
        for one in leaf_inputs(child, resources):
            yield _with_broker_processors(component, one)


def inner_inputs(
    component: ParsedComponent, input_path: Sequence[int], resources: Resources
) -> Iterator[ParsedComponent]:
    """Return the inputs inside of an input that messages of a path come through, outermost first.

    What has come through which input of a `sequence` no path knows: all of them are returned.

    Args:
        component: the plan's input.
        input_path: the numbers of the sources that a piece is from, the outermost first.
        resources: the plan's.
    """
    inner = [one for one in child_components(component) if one.kind == Kind.INPUT]
    further: Sequence[int] = ()
    if component.name == "broker" and input_path:
        inner, further = [children(component)[input_path[0]]], input_path[1:]
    for one in inner:
        input_component = resolve_resource(one, resources)
        yield input_component
        yield from inner_inputs(input_component, further, resources)


def _with_broker_processors(broker: ParsedComponent, child: ParsedComponent) -> ParsedComponent:
    return replace(child, processors=(*child.processors, *broker.processors))


def find_driver_outputs(
    outputs: Iterable[ParsedComponent], resources: Resources
) -> tuple[ParsedComponent, ...]:
    """Return the outputs in these that the driver writes, each place in the config once.

    Args:
        outputs: a stream's outputs, which are not among them themselves.
        resources: the plan's.
    """
    by_path: dict[str, ParsedComponent] = {}
    for output in outputs:
        for one in _walk_driver_outputs(output, resources, ()):
            by_path.setdefault(one.path, one)
    return tuple(by_path.values())


def is_numbered(output: ParsedComponent, resources: Resources) -> bool:
    """Return whether an output, or one inside of it, tells messages apart by their places."""
    return any(
        isinstance(one.config, ParsedFields) and one.config.get(_DEDUPE) is True
        for one in flatten_outputs([output], resources)
    )


def is_transactional(output: ParsedComponent, resources: Resources) -> bool:
    """Return whether an output, or one inside of it, sends in transactions."""
    return any(
        isinstance(one.config, ParsedFields) and bool(one.config.get("transactional"))
        for one in flatten_outputs([output], resources)
    )


def is_sent_by_workers(output: ParsedComponent, resources: Resources) -> bool:
    """Return whether nothing of what an output is given returns to the driver."""
    return not any(one.name in DRIVER_WRITTEN for one in flatten_outputs([output], resources))


def may_cut_retries(output: ParsedComponent, resources: Resources) -> bool:
    """Return whether nothing hangs on how often an output inside of this one tries by itself.

    What it does not take is sent again in any case, unless something around it counts its tries.
    """
    return all(one.name not in _FAILURE_HANDLERS for one in flatten_outputs([output], resources))


def find_output(
    outputs: Iterable[ParsedComponent], resources: Resources, path: str
) -> ParsedComponent | None:
    """Return the output of a config path among some and those inside of them; None without one."""
    return next((one for one in _walk_outputs(outputs, resources, ()) if one.path == path), None)


def _walk_outputs(
    outputs: Iterable[ParsedComponent], resources: Resources, visited: tuple[str, ...]
) -> Iterator[ParsedComponent]:
    for output in outputs:
        yield output
        one = resolve_resource(output, resources)
        if one.path not in visited:
            below = [child for child in child_components(one) if child.kind == Kind.OUTPUT]
            yield one
            yield from _walk_outputs(below, resources, (*visited, one.path))


def flatten_outputs(
    outputs: Iterable[ParsedComponent], resources: Resources
) -> tuple[ParsedComponent, ...]:
    """Return outputs and all that are inside of them, each place in the config once."""
    by_path: dict[str, ParsedComponent] = {}
    for output in outputs:
        for one in _walk_resolved(resolve_resource(output, resources), resources, ()):
            by_path.setdefault(one.path, one)
    return tuple(by_path.values())


def _walk_resolved(
    output: ParsedComponent, resources: Resources, visited: tuple[str, ...]
) -> Iterator[ParsedComponent]:
    yield output
    for child in child_components(output):
        if child.kind == Kind.OUTPUT:
            one = resolve_resource(child, resources)
            if one.path not in visited:
                yield from _walk_resolved(one, resources, (*visited, one.path))


def _walk_driver_outputs(
    output: ParsedComponent, resources: Resources, visited: tuple[str, ...]
) -> Iterator[ParsedComponent]:
    if output.name in DRIVER_WRITTEN:
        return
    for child in child_components(output):
        if child.kind != Kind.OUTPUT:
            continue
        one = resolve_resource(child, resources)
        if one.path in visited:
            continue
        if one.name in DRIVER_WRITTEN:
            yield one
            # Of what is inside of a `dynamic` the driver takes care as it comes and goes.
            continue
        yield from _walk_driver_outputs(one, resources, (*visited, one.path))
