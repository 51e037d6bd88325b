"""Differences of two configs: by field, by component, in lists as they were edited."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Final

from streamer.components import catalog
from streamer.config import Config
from streamer.config.echo import ConfigRedactor
from streamer.config.yaml_writer import format_yaml
from streamer.core.redaction import SCRUBBED
from streamer.plan.change_impact.plain_values import to_plain_value
from streamer.sdk.processing.batching import BATCHING
from streamer.sdk.spec import BufferPlace, Field, Kind, ParsedComponent, ParsedFields, SourcedText

_NAME: Final = Field("name", "string", "A component's name.", default="")
_PROCESSORS: Final = Field("processors", "processor", "Processors.", default=(), shape="array")
_OUTPUT: Final = Field("output", "output", "An output.", optional=True)
_TEXT: Final = Field("text", "string", "A text.", default="", mapping=True)


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two configs, at a place.

    Attributes:
        redactor: takes the secrets out of its values.
        file: the file that the place stands in.
        line: the line that the place, or what holds it, begins at.
    """

    redactor: ConfigRedactor
    file: str
    line: int

    def at(self, component: ParsedComponent) -> Side:
        """Return the side at a component."""
        if not component.line:
            return self
        return Side(self.redactor, component.file or self.file, component.line)

    def within(self, parsed: ParsedFields, name: str) -> Side:
        """Return the side at a field."""
        place = parsed.place(name)
        return Side(self.redactor, self.file, place.line) if place.line else self


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference.

    Attributes:
        path: the dotted path.
        owner: the component that it is in; None in a section that is no component.
        field: the name of the field of the owner that it is in; empty for the component itself.
        ancestors: the components from the section down to the owner, the outermost first.
        file: where it stands.
        line: the line there; 0 for nowhere.
        old: the value before, as it may be shown; None for none.
        new: the value after.
        is_input_processor: whether it is among the processors beside an input, or below them, or
            in its batching.
        is_rotated: whether only a secret has changed that both name by the same reference.
    """

    path: str
    owner: ParsedComponent | None
    field: str
    ancestors: tuple[ParsedComponent, ...]
    file: str
    line: int
    old: str | None
    new: str | None
    is_input_processor: bool = False
    is_rotated: bool = False


@dataclass(frozen=True, slots=True)
class _Cursor:
    """The depth of a walk."""

    path: str
    ancestors: tuple[ParsedComponent, ...] = ()
    field: str = ""
    is_input_processor: bool = False

    def child(self, name: str) -> _Cursor:
        """Return the way to a field or an item."""
        path = f"{self.path}.{name}" if self.path else name
        field = self.field or (name if self.ancestors else "")
        is_processor = self.is_input_processor or (name == BATCHING and self._cuts_batches())
        return _Cursor(path, self.ancestors, field, is_processor)

    def _cuts_batches(self) -> bool:
        """Return whether the batching of the component here leaves its offsets as they are."""
        if not self.ancestors:
            return False
        owner = self.ancestors[-1]
        spec = catalog.find_spec(owner.kind, owner.name)
        return spec is not None and spec.batching is not None

    def enter(self, component: ParsedComponent) -> _Cursor:
        """Return the way into a component."""
        inner = f"{self.path}.{component.name}"
        return _Cursor(inner, (*self.ancestors, component), "", self.is_input_processor)

    def enter_processors(self, component: ParsedComponent) -> _Cursor:
        """Return the way to the processors beside a component."""
        is_input_processor = self.is_input_processor or component.kind == Kind.INPUT
        return _Cursor(
            f"{self.path}.processors",
            (*self.ancestors, component),
            "processors",
            is_input_processor,
        )


def side_of(config: Config, env: Mapping[str, str]) -> Side:
    """Return a config as one side of a comparison."""
    return Side(ConfigRedactor(config, env), config.path, 0)


def compare_values(
    path: str, field: Field, old: Any, new: Any, a: Side, b: Side
) -> Iterator[Difference]:
    """Return the differences between two values of a field of the top level.

    Args:
        path: the field's dotted path.
        field: the field.
        old: its value before; None for none.
        new: its value after.
        a: the config before.
        b: the config after.
    """
    yield from _compare(_Cursor(path), field, old, new, a, b)


def _compare(
    cursor: _Cursor, field: Field, old: Any, new: Any, a: Side, b: Side
) -> Iterator[Difference]:
    if to_plain_value(old) == to_plain_value(new):
        return
    if isinstance(old, ParsedComponent) and isinstance(new, ParsedComponent):
        yield from _compare_components(cursor, old, new, a.at(old), b.at(new))
    elif isinstance(old, ParsedFields) and isinstance(new, ParsedFields) and field.children:
        for child in field.children:
            if child.name in old or child.name in new:
                left, right = old.get(child.name), new.get(child.name)
                sides = a.within(old, child.name), b.within(new, child.name)
                yield from _compare(cursor.child(child.name), child, left, right, *sides)
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys((*old, *new)):
            yield from _compare(cursor.child(name), field, old.get(name), new.get(name), a, b)
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple) and _is_nested(old, new):
        yield from _compare_items(cursor, field, old, new, a, b)
    else:
        yield _make_difference(cursor, field, old, new, a, b)


def _is_nested(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether lists hold what has differences of its own; those of plain values are shown whole."""
    return any(isinstance(one, ParsedComponent | Mapping | list | tuple) for one in (*old, *new))


def _compare_components(
    cursor: _Cursor, old: ParsedComponent, new: ParsedComponent, a: Side, b: Side
) -> Iterator[Difference]:
    spec = catalog.find_spec(new.kind, new.name)
    if old.name != new.name or spec is None:
        yield _make_difference(cursor, Field("", str(new.kind), "A component."), old, new, a, b)
        return
    inner = cursor.enter(new)
    if old.label != new.label:
        yield _make_difference(
            _Cursor(f"{cursor.path}.label", inner.ancestors, "label", cursor.is_input_processor),
            _NAME,
            old.label or None,
            new.label or None,
            a,
            b,
        )
    yield from _compare(inner, spec.body, old.config, new.config, a, b)
    yield from _compare(
        cursor.enter_processors(new), _PROCESSORS, old.processors, new.processors, a, b
    )
    if old.place is not None and new.place is not None:
        yield from _compare_places(cursor, inner.ancestors, old.place, new.place, a, b)
    if old.mapping.strip() != new.mapping.strip():
        at = _Cursor(
            f"{cursor.path}.mapping", inner.ancestors, "mapping", cursor.is_input_processor
        )
        yield _make_difference(at, _TEXT, old.mapping or None, new.mapping or None, a, b)
    if old.metrics_mappings != new.metrics_mappings:
        at = _Cursor(
            f"{cursor.path}.metrics_mapping",
            inner.ancestors,
            "metrics_mapping",
            cursor.is_input_processor,
        )
        yield _make_difference(at, _TEXT, _metrics_templates(old), _metrics_templates(new), a, b)


def _compare_places(
    cursor: _Cursor,
    ancestors: tuple[ParsedComponent, ...],
    old: BufferPlace,
    new: BufferPlace,
    a: Side,
    b: Side,
) -> Iterator[Difference]:
    """Compare what stands beside one of several buffers."""
    beside = {
        "from": (_NAME, old.source or None, new.source or None),
        "pipeline.processors": (_PROCESSORS, old.processors, new.processors),
        "output": (_OUTPUT, old.output, new.output),
    }
    for name, (field, left, right) in beside.items():
        at = _Cursor(f"{cursor.path}.{name}", ancestors, name, cursor.is_input_processor)
        yield from _compare(at, field, left, right, a, b)


def _metrics_templates(component: ParsedComponent) -> str | None:
    return "\n".join(one.text for one in component.metrics_mappings) or None


def _compare_items(
    cursor: _Cursor, field: Field, old: Sequence[Any], new: Sequence[Any], a: Side, b: Side
) -> Iterator[Difference]:
    """Compare lists as if they had been edited: what was put in moves all that follows it."""
    texts = [[repr(to_plain_value(one)) for one in side] for side in (old, new)]
    matcher = SequenceMatcher(a=texts[0], b=texts[1], autojunk=False)
    for what, i1, i2, j1, j2 in matcher.get_opcodes():
        if what == "equal":
            continue
        for i, j in zip_longest(range(i1, i2), range(j1, j2)):
            left = None if i is None else old[i]
            right = None if j is None else new[j]
            at = cursor.child(str(i if j is None else j))
            sides = _side_at(a, left), _side_at(b, right)
            yield from _compare(at, field, left, right, *sides)


def _side_at(side: Side, value: Any) -> Side:
    return side.at(value) if isinstance(value, ParsedComponent) else side


def _make_difference(
    cursor: _Cursor, field: Field, old: Any, new: Any, a: Side, b: Side
) -> Difference:
    here = a if new is None else b
    left, right = _format_value(a, field, old), _format_value(b, field, new)
    is_rotated = (
        isinstance(old, str)
        and isinstance(new, str)
        and a.redactor.name_secrets(old) == b.redactor.name_secrets(new)
    )
    if left == right and left is not None:
        # Both are the same once what is secret in them is taken out.
        left, right = f"{SCRUBBED} (before)", f"{SCRUBBED} (after)"
    owner = cursor.ancestors[-1] if cursor.ancestors else None
    current = new if new is not None else old
    if isinstance(current, ParsedComponent):
        owner = current
    return Difference(
        cursor.path,
        owner,
        cursor.field,
        cursor.ancestors,
        here.file,
        here.line,
        left,
        right,
        cursor.is_input_processor,
        is_rotated,
    )


def _format_value(side: Side, field: Field, value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, SourcedText):
        return str(side.redactor.redact_text(value.describe()))
    if isinstance(value, ParsedComponent):
        redacted: Any = side.redactor.redact_component(value)
    elif isinstance(value, Mapping) and not isinstance(value, ParsedFields):
        redacted = {str(name): _redact_item(side, field, item) for name, item in value.items()}
    else:
        redacted = _redact_item(side, field, value)
    if isinstance(redacted, str):
        return redacted
    return format_yaml(redacted).strip() if isinstance(redacted, dict) else _flow_text(redacted)


def _redact_item(side: Side, field: Field, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_redact_item(side, field, item) for item in value]
    if isinstance(value, SourcedText):
        return side.redactor.redact_text(value.describe())
    if isinstance(value, ParsedComponent):
        return side.redactor.redact_component(value)
    return side.redactor.redact_field(_as_scalar(field), value)


def _as_scalar(field: Field) -> Field:
    return replace(field, shape="scalar")


def _flow_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
