"""Lints the paths that components serve over HTTP: no two of them take the same one.

A server has one answer at a path, and an address has one server.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from streamer.config.fields import find_node
from streamer.config.nodes import Mapping, Node
from streamer.config.read_context import SERVING_COMPONENTS, ReadContext
from streamer.connectors.http_server.address import split_address
from streamer.connectors.http_server.paths import PathPattern
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import child_components
from streamer.sdk.spec.component import Resources

_DYNAMIC_COMPONENT: Final = "dynamic"

_PATH_FIELDS: Final = ("path", "stream_path", "ws_path")
_SEQUENCE_INPUT: Final = "sequence"


class _PathClaim(NamedTuple):
    """A place that a component wants.

    Attributes:
        place: what is the same for two that cannot both have it.
        field: the field that says so.
        text: the place as the config has it.
        suggestion: what to do about it.
    """

    place: tuple[str, str]
    field: str
    text: str
    suggestion: str


_ClaimedPlaces = dict[tuple[str, str], ParsedComponent]


def check_http_paths(
    context: ReadContext, root: Mapping, views: Iterable[ParsedFields], resources: Resources
) -> None:
    """Add a finding for each component that wants what another one serves.

    Args:
        context: has the components that serve, and gets the findings.
        root: the config's tree.
        views: the top level; of several buffers, as it is for each of them.
        resources: by kind and label.
    """
    claimed = _ClaimedPlaces()
    walk = _ComponentWalk(context, root, resources)
    for number, parsed in enumerate(views):
        buffer = parsed["buffer"]
        late = (
            buffer.config.get("late_output")
            if buffer and isinstance(buffer.config, ParsedFields)
            else ""
        )
        # All buffers read one input.
        ends = (parsed["input"] if number == 0 else None, parsed["output"])
        for one in (*ends, resources.get((Kind.OUTPUT, late or ""))):
            if one is not None:
                walk.visit(one, claimed, frozenset())


class _ComponentWalk:
    def __init__(self, context: ReadContext, root: Mapping, resources: Resources) -> None:
        self._findings = context.findings
        self._nodes = {id(one.component): one for one in context.served_components}
        self._root = root
        self._resources = resources
        self._visits: Counter[int] = Counter()

    def visit(
        self, component: ParsedComponent, claimed: _ClaimedPlaces, open_: frozenset[str]
    ) -> None:
        """Check a component and those inside of it; `open_` are the resources around it."""
        if component.name == "resource":
            label = str(component.config)
            resource = self._resources.get((component.kind, label))
            if resource is not None and label not in open_:
                self.visit(resource, claimed, open_ | {label})
            return
        # An output that several name is one for all of them; an input is opened for each, and
        # whether that goes wrong is seen at the second: resources of resources may be very many.
        self._visits[id(component)] += 1
        if self._visits[id(component)] > (1 if component.kind == Kind.OUTPUT else 2):
            return
        before = set(claimed)
        for claim in _find_claims(component):
            other = claimed.setdefault(claim.place, component)
            if claim.place in before:
                self._report_collision(component, other, claim)
        children = [one for one in child_components(component) if one.kind == component.kind]
        if component.kind == Kind.INPUT and component.name == _SEQUENCE_INPUT:
            self._visit_sequence(children, claimed, open_)
            return
        for child in children * _count_copies(component):
            self.visit(child, claimed, open_)

    def _visit_sequence(
        self, children: list[ParsedComponent], claimed: _ClaimedPlaces, open_: frozenset[str]
    ) -> None:
        """Check inputs of which only one is open at a time."""
        before, after = dict(claimed), dict(claimed)
        for child in children:
            mine = dict(before)
            self.visit(child, mine, open_)
            after |= mine
        claimed |= after

    def _report_collision(
        self, component: ParsedComponent, other: ParsedComponent, claim: _PathClaim
    ) -> None:
        what = f"{other.kind} {other.name} at line {other.line}"
        if other is component:
            message = f"field {claim.field}: this {component.kind} is there more than once, and "
            message += f"each would serve {claim.text}"
        elif claim.field == "address":
            message = f"field address: the {what} listens on {claim.text} already"
        else:
            message = f"field {claim.field}: the {what} serves {claim.text} on the same server"
        node = self._nodes.get(id(component))
        at: Node = find_node(self._root, str(component.kind))
        if node is not None and node.key is not None:
            field_node = find_node(node.body, claim.field) if node.body is not None else node.body
            at = node.key if field_node is None or field_node is node.body else field_node
        self._findings.add_at(at, "duplicate_path", message, claim.suggestion)


def _count_copies(component: ParsedComponent) -> int:
    """Return 2 where a broker reads each of its inputs more than once."""
    several = (
        isinstance(component.config, ParsedFields) and (component.config.get("copies") or 1) > 1
    )
    return 2 if several and component.kind == Kind.INPUT else 1


def _find_claims(component: ParsedComponent) -> Iterator[_PathClaim]:
    config = component.config
    if component.name not in SERVING_COMPONENTS or not isinstance(config, ParsedFields):
        return
    if component.name == _DYNAMIC_COMPONENT:
        base = f"{str(config.get('prefix') or '').rstrip('/')}/{component.kind}s"
        yield from _claim_path("prefix", base, "give one of them another prefix")
        return
    address = config.get("address")
    if isinstance(address, str) and address:
        if _has_fixed_port(address) and not (config.get("tcp") or {}).get("reuse_port"):
            yield _PathClaim((address, ""), "address", address, "give one of them another address")
        return
    for field in _PATH_FIELDS:
        hint = f"give one of them another {field}, or an address of its own"
        yield from _claim_path(field, config.get(field), hint)


def _claim_path(field: str, text: object, suggestion: str) -> Iterator[_PathClaim]:
    if isinstance(text, str) and text:
        try:
            shape = PathPattern(text if text.startswith("/") else f"/{text}").shape
        except (ValueError, re.error):
            return
        yield _PathClaim(("", shape), field, text, suggestion)


def _has_fixed_port(address: str) -> bool:
    """Return whether an address names its port, and does not leave it to the system."""
    try:
        return split_address(address)[1] != 0
    except ValueError:
        return False


def find_served_paths(
    ends: Iterable[ParsedComponent], late_outputs: Iterable[str], resources: Resources
) -> Iterator[str]:
    """Return the paths that components of a config serve on the server of their stream.

    Args:
        ends: its inputs and outputs.
        late_outputs: the labels of the outputs that get what windows drop.
        resources: by kind and label.
    """
    pending, seen = [*ends], set[int]()
    named = (resources.get((Kind.OUTPUT, label)) for label in late_outputs)
    pending += [resource for resource in named if resource is not None]
    while pending:
        component = pending.pop()
        if id(component) in seen:
            continue
        seen.add(id(component))
        if component.name == "resource":
            resource = resources.get((component.kind, str(component.config)))
            pending += [] if resource is None else [resource]
            continue
        for claim in _find_claims(component):
            if claim.field != "address":
                path = claim.text if claim.text.startswith("/") else f"/{claim.text}"
                yield path
                if component.name == _DYNAMIC_COMPONENT:
                    yield f"{path}/"
        pending += [one for one in child_components(component) if one.kind == component.kind]
