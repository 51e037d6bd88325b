"""Mappings that fold: what they say of a whole batch can be kept up to date, message by message.

A mapping that makes one message of a batch (`only_index` 0) folds when all it asks of the other
messages are `parts`: sums, extremes, counts, distinct values and the like. Then a window need not
keep its messages: of each group it keeps the first message, their number, and what these parts have
come to. The mapping is compiled a second time, with each part replaced by its value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Final

from streamer.bloblang import tree
from streamer.bloblang.annotations import annotation
from streamer.bloblang.arguments import Binding, Dynamic, Query
from streamer.bloblang.mapping import Mapping, compile_mapping
from streamer.bloblang.obstacles import NotFoldingError, Obstacle, refuse_batch
from streamer.bloblang.parts import Part, part_of
from streamer.message import Message


class FoldedBatch(list[Message]):
    """A batch of which only the first message is held, and what its parts have come to.

    Attributes:
        text: the mapping that it was folded for.
        fold: gives the value of a part by its number, or raises what the part has failed with.
    """

    __slots__ = ("text", "fold")

    def __init__(self, first: Message, text: str, fold: Callable[[int], Any]) -> None:
        self.append(first)
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
        program = _rewritten(mapping.program, parts, mapping.text)
    except NotFoldingError as e:
        return e.obstacle
    return Fold(text, tuple(parts), mapping.with_program(program))


_TREE: Final = (
    *(tree.Program, tree.Statement, tree.Node, tree.Argument),
    *(Binding, Dynamic, Query),
)


_PICKED: Final = ("first", "last", "latest")
"""Parts that are one message's value, which may be deleted."""


def _rewritten(node: Any, parts: list[Part], text: str) -> Any:
    """Return a part of a tree with each fold replaced."""
    if isinstance(node, tree.Method | tree.Call):
        part = part_of(node, text)
        if part is not None:
            if part not in parts:
                parts.append(part)
            special = part.kind in _PICKED
            return tree.Folded(node.place, parts.index(part), annotation(node), special)
        refuse_batch(node)
    if isinstance(node, list | tuple):
        return type(node)(_rewritten(item, parts, text) for item in node)
    if isinstance(node, dict):
        return {key: _rewritten(item, parts, text) for key, item in node.items()}
    if not isinstance(node, _TREE):
        return node
    inner = {each.name: getattr(node, each.name) for each in fields(node)}
    return replace(node, **{name: _rewritten(value, parts, text) for name, value in inner.items()})


__all__ = ["Fold", "FoldedBatch", "Obstacle", "Part", "fold_of"]
