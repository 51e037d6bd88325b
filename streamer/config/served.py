"""What the components of a config serve over HTTP: that no two of them want the same place.

A server has one answer at a path, and an address has one server.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from collections.abc import Mapping as MappingType
from typing import Final, NamedTuple

from streamer.config.fields import find
from streamer.config.nodes import Mapping, Node
from streamer.config.reading import SERVING, Reading
from streamer.endpoints.address import split_address
from streamer.endpoints.paths import Path
from streamer.spec import Kind, Parsed, ParsedComponent
from streamer.spec.inside import inside

_DYNAMIC: Final = "dynamic"

_PATHS: Final = ("path", "stream_path", "ws_path")
_ONE_BY_ONE: Final = "sequence"

Resources = MappingType[tuple[Kind, str], ParsedComponent]


class _Claim(NamedTuple):
    """A place that a component wants.

    Attributes:
        place: what is the same for two that cannot both have it.
        field: the field that says so.
        shown: the place as the config has it.
        change: what to do about it.
    """

    place: tuple[str, str]
    field: str
    shown: str
    change: str


_Taken = dict[tuple[str, str], ParsedComponent]


def check_served(reading: Reading, root: Mapping, parsed: Parsed, resources: Resources) -> None:
    """Add a finding for each component that wants what another one serves.

    Args:
        reading: has the components that serve, and gets the findings.
        root: the config's tree.
        parsed: its top level.
        resources: by kind and label.
    """
    buffer, taken = parsed["buffer"], _Taken()
    walk = _Walk(reading, root, resources)
    late = buffer.config.get("late_output") if buffer and isinstance(buffer.config, Parsed) else ""
    for one in (parsed["input"], parsed["output"], resources.get((Kind.OUTPUT, late or ""))):
        if one is not None:
            walk.go(one, taken, frozenset())


class _Walk:
    def __init__(self, reading: Reading, root: Mapping, resources: Resources) -> None:
        self._findings = reading.findings
        self._nodes = {id(one.component): one for one in reading.served}
        self._root = root
        self._resources = resources
        self._visits: Counter[int] = Counter()

    def go(self, component: ParsedComponent, taken: _Taken, open_: frozenset[str]) -> None:
        """Look at a component and what is inside of it; `open_` are the resources around it."""
        if component.name == "resource":
            label = str(component.config)
            found = self._resources.get((component.kind, label))
            if found is not None and label not in open_:
                self.go(found, taken, open_ | {label})
            return
        # An output that several name is one for all of them; an input is opened for each, and
        # whether that goes wrong is seen at the second: resources of resources may be very many.
        self._visits[id(component)] += 1
        if self._visits[id(component)] > (1 if component.kind == Kind.OUTPUT else 2):
            return
        before = set(taken)
        for claim in _claims(component):
            other = taken.setdefault(claim.place, component)
            if claim.place in before:
                self._refuse(component, other, claim)
        children = [one for one in inside(component) if one.kind == component.kind]
        if component.kind == Kind.INPUT and component.name == _ONE_BY_ONE:
            self._one_by_one(children, taken, open_)
            return
        for child in children * _copies(component):
            self.go(child, taken, open_)

    def _one_by_one(
        self, children: list[ParsedComponent], taken: _Taken, open_: frozenset[str]
    ) -> None:
        """Look at inputs of which only one is open at a time."""
        before, after = dict(taken), dict(taken)
        for child in children:
            mine = dict(before)
            self.go(child, mine, open_)
            after |= mine
        taken |= after

    def _refuse(self, component: ParsedComponent, other: ParsedComponent, claim: _Claim) -> None:
        what = f"{other.kind} {other.name} at line {other.line}"
        if other is component:
            message = f"field {claim.field}: this {component.kind} is there more than once, and "
            message += f"each would serve {claim.shown}"
        elif claim.field == "address":
            message = f"field address: the {what} listens on {claim.shown} already"
        else:
            message = f"field {claim.field}: the {what} serves {claim.shown} on the same server"
        node = self._nodes.get(id(component))
        at: Node = find(self._root, str(component.kind))
        if node is not None and node.key is not None:
            found = find(node.body, claim.field) if node.body is not None else node.body
            at = node.key if found is None or found is node.body else found
        self._findings.at(at, "duplicate_path", message, claim.change)


def _copies(component: ParsedComponent) -> int:
    """Return 2 where a broker reads each of its inputs more than once."""
    several = isinstance(component.config, Parsed) and (component.config.get("copies") or 1) > 1
    return 2 if several and component.kind == Kind.INPUT else 1


def _claims(component: ParsedComponent) -> Iterator[_Claim]:
    config = component.config
    if component.name not in SERVING or not isinstance(config, Parsed):
        return
    if component.name == _DYNAMIC:
        base = f"{str(config.get('prefix') or '').rstrip('/')}/{component.kind}s"
        yield from _path("prefix", base, "give one of them another prefix")
        return
    address = config.get("address")
    if isinstance(address, str) and address:
        if _fixed(address) and not (config.get("tcp") or {}).get("reuse_port"):
            yield _Claim((address, ""), "address", address, "give one of them another address")
        return
    for field in _PATHS:
        hint = f"give one of them another {field}, or an address of its own"
        yield from _path(field, config.get(field), hint)


def _path(field: str, text: object, change: str) -> Iterator[_Claim]:
    if isinstance(text, str) and text:
        try:
            shape = Path(text if text.startswith("/") else f"/{text}").shape
        except (ValueError, re.error):
            return
        yield _Claim(("", shape), field, text, change)


def _fixed(address: str) -> bool:
    """Tell whether an address names its port, and does not leave it to the system."""
    try:
        return split_address(address)[1] != 0
    except ValueError:
        return False


def served_paths(
    input_: ParsedComponent, buffer: ParsedComponent, output: ParsedComponent, resources: Resources
) -> Iterator[str]:
    """Return the paths that components of a config serve on the server of their stream."""
    pending, seen = [input_, output], set[int]()
    late = buffer.config.get("late_output") if isinstance(buffer.config, Parsed) else None
    pending += [found for found in [resources.get((Kind.OUTPUT, str(late)))] if found is not None]
    while pending:
        component = pending.pop()
        if id(component) in seen:
            continue
        seen.add(id(component))
        if component.name == "resource":
            found = resources.get((component.kind, str(component.config)))
            pending += [] if found is None else [found]
            continue
        for claim in _claims(component):
            if claim.field != "address":
                path = claim.shown if claim.shown.startswith("/") else f"/{claim.shown}"
                yield path
                if component.name == _DYNAMIC:
                    yield f"{path}/"
        pending += [one for one in inside(component) if one.kind == component.kind]
