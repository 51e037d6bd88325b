"""Mappings that fold: what they say of a whole batch can be kept up to date, message by message.

A mapping that makes one message of a batch (`only_index` 0) folds when all it asks of the other
messages are sums, extremes, counts and distinct values of fields of their documents. Then a window
need not keep its messages: of each group it keeps the first message, their number, and what these
parts have come to. The mapping is compiled a second time, with each part replaced by its value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Final, Literal

from streamer.bloblang import tree
from streamer.bloblang.annotations import annotation
from streamer.bloblang.arguments import Binding, Dynamic, Query, Static
from streamer.bloblang.mapping import Mapping, compile_mapping
from streamer.bloblang.runtime.paths import split_path
from streamer.message import Message

Kind = Literal["count", "sum", "min", "max", "distinct", "unique"]

_REDUCED: Final[dict[str, Kind]] = {"length": "count", "sum": "sum", "min": "min", "max": "max"}


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a mapping asks of all messages of a batch.

    Attributes:
        kind: `count`, `sum`, `min` and `max` of what a field holds, the number of its `distinct`
            values, or its `unique` values in the order of their first message.
        path: the field, as `json()` takes it; empty for the document.
        origin: what Benthos's error texts call the field's values.
    """

    kind: Kind
    path: tuple[str, ...]
    origin: str

    def __str__(self) -> str:
        field = ".".join(self.path)
        return f"{self.kind} of {field}" if self.path else self.kind


class FoldedBatch(list[Message]):
    """A batch of which only the first message is held, and what its parts have come to.

    Attributes:
        text: the mapping that it was folded for.
        fold: gives the value of a part by its number, or raises what the part has failed with.
    """

    def __init__(self, first: Message, text: str, fold: Callable[[int], Any]) -> None:
        super().__init__([first])
        self.text = text
        self.fold = fold


@dataclass(frozen=True, slots=True)
class Fold:
    """A mapping that folds.

    Attributes:
        text: the mapping as written.
        parts: what it asks of all messages, by number.
        mapping: is applied to a `FoldedBatch`, at index 0, instead of the mapping as written.
    """

    text: str
    parts: tuple[Part, ...]
    mapping: Mapping


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a mapping does not fold.

    Attributes:
        place: of the expression that stands in the way; None when it is the whole mapping.
        reason: what it does.
    """

    place: tree.Place | None
    reason: str

    def __str__(self) -> str:
        where = f"line {self.place.line}, column {self.place.column}: " if self.place else ""
        return where + self.reason


class _NotFoldingError(Exception):
    pass


def fold_of(text: str) -> Fold | Obstacle:
    """Return how a mapping folds, or what stands in the way.

    Raises:
        BloblangError: the text is no mapping.
    """
    mapping = compile_mapping(text)
    if mapping.uses.impure:
        return Obstacle(None, "it reaches outside of its messages")
    return _fold_of(text)


@lru_cache(maxsize=256)
def _fold_of(text: str) -> Fold | Obstacle:
    mapping = compile_mapping(text)
    if mapping.only_index != 0:
        reason = "it does not say that it keeps the first message only: "
        return Obstacle(None, reason + "root = if batch_index() == 0 { … } else { deleted() }")
    parts: list[Part] = []
    try:
        program = _rewritten(mapping.program, parts)
    except _NotFoldingError as e:
        found: Obstacle = e.args[0]
        return found
    return Fold(text, tuple(parts), mapping.with_program(program))


_TREE: Final = (
    *(tree.Program, tree.Statement, tree.Node, tree.Argument),
    *(Binding, Dynamic, Query),
)


def _rewritten(node: Any, parts: list[Part]) -> Any:
    """Return a part of a tree with each fold replaced."""
    if isinstance(node, tree.Method | tree.Call):
        part = _part_of(node)
        if part is not None:
            if part not in parts:
                parts.append(part)
            return tree.Folded(node.place, parts.index(part), annotation(node))
        _refuse_batch(node)
    if isinstance(node, list | tuple):
        return type(node)(_rewritten(item, parts) for item in node)
    if isinstance(node, dict):
        return {key: _rewritten(item, parts) for key, item in node.items()}
    if not isinstance(node, _TREE):
        return node
    inner = {each.name: getattr(node, each.name) for each in fields(node)}
    return replace(node, **{name: _rewritten(value, parts) for name, value in inner.items()})


def _part_of(node: tree.Node) -> Part | None:
    if isinstance(node, tree.Call):
        return Part("count", (), "") if node.name == "batch_size" else None
    if not isinstance(node, tree.Method) or node.arguments:
        return None
    source = node.target
    if node.name in _REDUCED:
        field = _field_of_all(source)
        if field is not None:
            kind = _REDUCED[node.name]
            return Part(kind, field, annotation(source))
        if node.name == "length" and _is_unique(source):
            return _distinct("distinct", source)
    return _distinct("unique", node) if _is_unique(node) else None


def _is_unique(node: tree.Node) -> bool:
    return isinstance(node, tree.Method) and node.name == "unique" and not node.arguments


def _distinct(kind: Kind, node: tree.Node) -> Part | None:
    assert isinstance(node, tree.Method)
    field = _field_of_all(node.target)
    return None if field is None else Part(kind, field, annotation(node.target))


def _field_of_all(node: tree.Node) -> tuple[str, ...] | None:
    """Return the path of `json("path").from_all()`."""
    if not (isinstance(node, tree.Method) and node.name == "from_all"):
        return None
    target = node.target
    if not (isinstance(target, tree.Call) and target.name == "json"):
        return None
    argument = target.bound.arguments[0]
    if not isinstance(argument, Static):
        return None
    path: tuple[str, ...] = tuple(split_path(argument.value)) if argument.value else ()
    return None if "*" in path else path


def _refuse_batch(node: tree.Method | tree.Call) -> None:
    """Stop at what looks at other messages, or counts them, in a way that does not fold."""
    if node.name == "batch_index" or "batch" not in node.bound.declaration.uses:
        return
    kind = "method" if isinstance(node, tree.Method) else "function"
    reason = f"the {kind} {node.name} looks at other messages in a way that does not fold"
    if node.name == "from_all":
        reason = (
            'from_all() folds as json("path").from_all() followed by sum(), min(), max(), '
            "length() or unique(), and not as it is used here"
        )
    raise _NotFoldingError(Obstacle(node.place, reason))
