"""Mappings that can be pre-aggregated: their values of a batch are kept up to date by message.

A mapping that makes one message of a batch (`only_index` 0) folds when all it asks of the other
messages are `aggregates`: sums, extremes, counts, distinct values and the like. Then a window need
not keep its messages: of each group it keeps the first message, their number, and what these parts
have come to. The mapping is compiled a second time, with each part replaced by its value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final

from streamer.bloblang import tree
from streamer.bloblang.analysis.aggregates import (
    Aggregate,
    aggregate_array,
    find_aggregate,
    find_shared_aggregate,
)
from streamer.bloblang.analysis.aggregation_obstacles import (
    NotAggregatableError,
    Obstacle,
    explain_kept_messages,
    refuse_batch_access,
)
from streamer.bloblang.analysis.let_values import inline_variables
from streamer.bloblang.annotations import describe_expression
from streamer.bloblang.mapping import Mapping, compile_mapping
from streamer.core.message import Message


class PreAggregatedBatch(list[Message]):
    """A batch of which only the first message is held, and what its parts have come to.

    Attributes:
        text: the mapping that it was folded for.
        aggregate_value: gives the value of a part by its number, or raises what the part has failed
            with.
    """

    __slots__ = ("text", "aggregate_value")

    def __init__(self, first: Message, text: str, aggregate_value: Callable[[int], Any]) -> None:
        self.append(first)
        self.text = text
        self.aggregate_value = aggregate_value


@dataclass(frozen=True, slots=True)
class PreAggregation:
    """A mapping that can be pre-aggregated.

    Attributes:
        text: the mapping as written.
        aggregates: what it asks of all messages, by number.
        mapping: is applied to a `PreAggregatedBatch`, at index 0, instead of the mapping as
            written.
    """

    text: str
    aggregates: tuple[Aggregate, ...]
    mapping: Mapping


def analyze_pre_aggregation(text: str) -> PreAggregation | Obstacle:
    """Return how to pre-aggregate a mapping, or what stands in the way.

    Raises:
        BloblangError: the text is no mapping.
    """
    mapping = compile_mapping(text)
    if mapping.uses.impure:
        return Obstacle(None, "it reaches outside of its messages")
    if mapping.uses.keyed_state:
        calls = ", ".join(call.text for call in mapping.state_calls)
        return Obstacle(None, f"it keeps state by key, {calls}; do that in a mapping behind it")
    return _analyze_cached(text)


@lru_cache(maxsize=256)
def _analyze_cached(text: str) -> PreAggregation | Obstacle:
    mapping = compile_mapping(text)
    if mapping.only_index != 0:
        return explain_kept_messages(mapping.program)
    aggregates: list[Aggregate] = []
    try:
        program = _aggregate_program(mapping, aggregates)
    except NotAggregatableError as e:
        return e.obstacle
    return PreAggregation(text, tuple(aggregates), mapping.with_program(program))


_SINGLE_VALUE_KINDS: Final = ("first", "last", "latest")
"""Parts that are one message's value, which may be deleted."""


def _aggregate_program(mapping: Mapping, aggregates: list[Aggregate]) -> tree.Program:
    """Return a mapping's tree with each aggregation replaced; note their aggregates."""

    def keep_array(array: tree.Method) -> tree.Node:
        return _make_value(array, aggregate_array(array, mapping.text), aggregates)

    program = inline_variables(mapping.program, keep_array)
    replaced: tree.Program = _replace_aggregates(program, aggregates, mapping.text)
    return replaced


def _replace_aggregates(node: Any, aggregates: list[Aggregate], text: str) -> Any:
    """Return a part of a tree with each aggregation replaced."""
    if isinstance(node, tree.Method | tree.Call):
        aggregate = find_aggregate(node, text)
        if aggregate is not None:
            return _make_value(node, aggregate, aggregates)
        shared = find_shared_aggregate(node, text)
        if shared is None:
            refuse_batch_access(node)
        else:
            assert isinstance(node, tree.Method)
            node = replace(node, target=_make_value(node.target, shared, aggregates))
    change = partial(_replace_aggregates, aggregates=aggregates, text=text)
    changed = tree.map_children(node, change)
    if isinstance(changed, tree.Method | tree.Call):
        changed.bound = changed.bound.map_nodes(change)
    return changed


def _make_value(
    node: tree.Node, aggregate: Aggregate, aggregates: list[Aggregate]
) -> tree.AggregateValue:
    """Return what takes an expression's place, and note its aggregate."""
    if aggregate not in aggregates:
        aggregates.append(aggregate)
    special = aggregate.kind in _SINGLE_VALUE_KINDS
    return tree.AggregateValue(
        node.place, aggregates.index(aggregate), describe_expression(node), special
    )


__all__ = [
    "PreAggregation",
    "PreAggregatedBatch",
    "Obstacle",
    "Aggregate",
    "analyze_pre_aggregation",
]
