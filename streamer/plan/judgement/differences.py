"""Where two configs differ: field by field, component by component, lists as they were edited."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Final

from streamer import catalog
from streamer.config import Config
from streamer.config.echo import Shown
from streamer.config.layout import yaml_text
from streamer.plan.judgement.raw import raw
from streamer.redaction import SCRUBBED
from streamer.spec import Field, Kind, Parsed, ParsedComponent

_NAME: Final = Field("name", "string", "A component's name.", default="")
_TEXT: Final = Field("text", "string", "A text.", default="", mapping=True)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two configs, at a place.

    Attributes:
        shown: takes the secrets out of its values.
        file: the file that the place stands in.
        line: the line that the place, or what holds it, begins at.
    """

    shown: Shown
    file: str
    line: int

    def at(self, component: ParsedComponent) -> Side:
        """Return the side at a component."""
        if not component.line:
            return self
        return Side(self.shown, component.file or self.file, component.line)

    def within(self, parsed: Parsed, name: str) -> Side:
        """Return the side at a field."""
        place = parsed.place(name)
        return Side(self.shown, self.file, place.line) if place.line else self


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference.

    Attributes:
        path: the dotted path.
        owner: the component that it is in; None in a section that is no component.
        field: the name of the field of the owner that it is in; empty for the component itself.
        below: the components from the section down to the owner, the outermost first.
        file: where it stands.
        line: the line there; 0 for nowhere.
        old: the value before, as it may be shown; None for none.
        new: the value after.
        beside: whether it is among the processors beside an input, or below them.
    """

    path: str
    owner: ParsedComponent | None
    field: str
    below: tuple[ParsedComponent, ...]
    file: str
    line: int
    old: str | None
    new: str | None
    beside: bool = False


@dataclass(frozen=True, slots=True)
class _Way:
    """How far down a walk is."""

    path: str
    below: tuple[ParsedComponent, ...] = ()
    field: str = ""
    beside: bool = False

    def down(self, name: str) -> _Way:
        """Return the way to a field or an item."""
        path = f"{self.path}.{name}" if self.path else name
        field = self.field or (name if self.below else "")
        return _Way(path, self.below, field, self.beside)

    def into(self, component: ParsedComponent) -> _Way:
        """Return the way into a component."""
        inner = f"{self.path}.{component.name}"
        return _Way(inner, (*self.below, component), "", self.beside)

    def aside(self, component: ParsedComponent) -> _Way:
        """Return the way to the processors beside a component."""
        beside = self.beside or component.kind == Kind.INPUT
        return _Way(f"{self.path}.processors", (*self.below, component), "processors", beside)


def side_of(config: Config, env: Mapping[str, str]) -> Side:
    """Return a config as one side of a comparison."""
    return Side(Shown(config, env), config.path, 0)


def between(path: str, field: Field, old: Any, new: Any, a: Side, b: Side) -> Iterator[Difference]:
    """Return the differences between two values of a field of the top level.

    Args:
        path: the field's dotted path.
        field: the field.
        old: its value before; None for none.
        new: its value after.
        a: the config before.
        b: the config after.
    """
    yield from _values(_Way(path), field, old, new, a, b)


def _values(way: _Way, field: Field, old: Any, new: Any, a: Side, b: Side) -> Iterator[Difference]:
    if raw(old) == raw(new):
        return
    if isinstance(old, ParsedComponent) and isinstance(new, ParsedComponent):
        yield from _components(way, old, new, a.at(old), b.at(new))
    elif isinstance(old, Parsed) and isinstance(new, Parsed) and field.children:
        for child in field.children:
            if child.name in old or child.name in new:
                left, right = old.get(child.name), new.get(child.name)
                sides = a.within(old, child.name), b.within(new, child.name)
                yield from _values(way.down(child.name), child, left, right, *sides)
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys((*old, *new)):
            yield from _values(way.down(name), field, old.get(name), new.get(name), a, b)
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple) and _deep(old, new):
        yield from _items(way, field, old, new, a, b)
    else:
        yield _leaf(way, field, old, new, a, b)


def _deep(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether lists hold what has differences of its own; those of plain values are shown whole."""
    return any(isinstance(one, ParsedComponent | Mapping | list | tuple) for one in (*old, *new))


def _components(
    way: _Way, old: ParsedComponent, new: ParsedComponent, a: Side, b: Side
) -> Iterator[Difference]:
    spec = catalog.spec(new.kind, new.name)
    if old.name != new.name or spec is None:
        yield _leaf(way, Field("", str(new.kind), "A component."), old, new, a, b)
        return
    inner = way.into(new)
    if old.label != new.label:
        yield _leaf(
            _Way(f"{way.path}.label", inner.below, "label", way.beside),
            _NAME,
            old.label or None,
            new.label or None,
            a,
            b,
        )
    yield from _values(inner, spec.body, old.config, new.config, a, b)
    processors = Field("processors", "processor", "Processors.", default=(), shape="array")
    yield from _values(way.aside(new), processors, old.processors, new.processors, a, b)
    if old.mapping.strip() != new.mapping.strip():
        at = _Way(f"{way.path}.mapping", inner.below, "mapping", way.beside)
        yield _leaf(at, _TEXT, old.mapping or None, new.mapping or None, a, b)
    if old.metrics_mappings != new.metrics_mappings:
        at = _Way(f"{way.path}.metrics_mapping", inner.below, "metrics_mapping", way.beside)
        yield _leaf(at, _TEXT, _templates(old), _templates(new), a, b)


def _templates(component: ParsedComponent) -> str | None:
    return "\n".join(one.text for one in component.metrics_mappings) or None


def _items(
    way: _Way, field: Field, old: Sequence[Any], new: Sequence[Any], a: Side, b: Side
) -> Iterator[Difference]:
    """Compare lists as if they had been edited: what was put in moves all that follows it."""
    texts = [[repr(raw(one)) for one in side] for side in (old, new)]
    matcher = SequenceMatcher(a=texts[0], b=texts[1], autojunk=False)
    for what, i1, i2, j1, j2 in matcher.get_opcodes():
        if what == "equal":
            continue
        for i, j in zip_longest(range(i1, i2), range(j1, j2)):
            left = None if i is None else old[i]
            right = None if j is None else new[j]
            at = way.down(str(i if j is None else j))
            sides = _side(a, left), _side(b, right)
            yield from _values(at, field, left, right, *sides)


def _side(side: Side, value: Any) -> Side:
    return side.at(value) if isinstance(value, ParsedComponent) else side


def _leaf(way: _Way, field: Field, old: Any, new: Any, a: Side, b: Side) -> Difference:
    here = a if new is None else b
    left, right = _shown(a, field, old), _shown(b, field, new)
    if left == right and left is not None:
        # Both are the same once what is secret in them is taken out.
        left, right = f"{SCRUBBED} (before)", f"{SCRUBBED} (after)"
    owner = way.below[-1] if way.below else None
    found = new if new is not None else old
    if isinstance(found, ParsedComponent):
        owner = found
    return Difference(
        way.path, owner, way.field, way.below, here.file, here.line, left, right, way.beside
    )


def _shown(side: Side, field: Field, value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, ParsedComponent):
        shown: Any = side.shown.component(value)
    elif isinstance(value, Mapping) and not isinstance(value, Parsed):
        shown = {str(name): _item(side, field, item) for name, item in value.items()}
    else:
        shown = _item(side, field, value)
    if isinstance(shown, str):
        return shown
    return yaml_text(shown).strip() if isinstance(shown, dict) else _flow(shown)


def _item(side: Side, field: Field, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_item(side, field, item) for item in value]
    if isinstance(value, ParsedComponent):
        return side.shown.component(value)
    return side.shown.field(_single(field), value)


def _single(field: Field) -> Field:
    return replace(field, shape="scalar")


def _flow(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
