"""Aggregates of a mapping, found in its tree: its expressions over all messages of a batch.

A part begins with `from_all()` of an expression that looks at one message's document alone, goes
on with `map_each` and `filter`, if at all, and ends with a method whose result can be kept up to
date, message by message, and brought together from several readers' parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from streamer.bloblang import tree
from streamer.bloblang.analysis.aggregation_obstacles import (
    NotAggregatableError,
    literal_argument,
    split_from_all,
)
from streamer.bloblang.analysis.purity import (
    Dependence,
    find_message_dependence,
    find_query_dependence,
)
from streamer.bloblang.analysis.snippets import describe_shape, extract_snippet
from streamer.bloblang.annotations import describe_expression
from streamer.bloblang.arguments import QueryArgument, StaticArgument
from streamer.bloblang.message_expression import ElementQuery, MessageExpression
from streamer.bloblang.runtime.paths import split_path

AggregateKind = Literal[
    "count",
    "sum",
    "min",
    "max",
    "distinct",
    "unique",
    "first",
    "last",
    "latest",
    "any",
    "all",
    "counts",
    "top",
    "top distinct",
]

_PLAIN_METHODS: Final[dict[str, AggregateKind]] = {
    "length": "count",
    "sum": "sum",
    "min": "min",
    "max": "max",
}
_QUERY_METHODS: Final[dict[str, AggregateKind]] = {
    "any": "any",
    "all": "all",
    "count_by": "counts",
    "top_k": "top",
}
_INDEX_KINDS: Final[dict[int, AggregateKind]] = {0: "first", -1: "last"}
_FIELD_KINDS: Final = ("count", "sum", "min", "max", "distinct", "unique")


@dataclass(frozen=True)
class Aggregate:
    """One thing that a mapping asks of all messages of a batch.

    Attributes:
        kind: `count`, `sum`, `min` and `max` of values, the number of `distinct` ones, or
            the `unique` ones in the order of their first message; the `first` and the `last`;
            whether `any` or `all` pass a test; the `counts` by key; the `top` ones in descending
            order, or the `top distinct` ones; what an expression gives for the `latest` message,
            whatever it gives for others.
        path: the field whose values they are, as `json()` takes it; empty for the document.
        origin: what Benthos's error texts call the array of values.
        expression: what each message brings, where that is not just the field.
        query: what is asked of each value: the test, the key, or what it is ordered by.
        number: how many of the `top`.
        identity: what tells the part from others, when that is not all that stands above.
        text: the part as the mapping has it, when it is not just a field that it looks at.
    """

    kind: AggregateKind
    path: tuple[str, ...]
    origin: str
    expression: MessageExpression | None = field(default=None, compare=False)
    query: ElementQuery | None = field(default=None, compare=False)
    number: int = 0
    identity: str = ""
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        if self.text:
            return self.text
        name = ".".join(self.path)
        kind = self.kind.replace("top", f"top {self.number}")
        return f"{kind} of {name}" if self.path else kind


def find_aggregate(node: tree.Node, text: str) -> Aggregate | None:
    """Return what an expression asks of all messages; None when it is not of that kind.

    Args:
        node: the expression.
        text: the mapping that it is from, to quote.

    Raises:
        NotAggregatableError: it is of that kind, and looks at what it may not look at.
    """
    if isinstance(node, tree.Call):
        return Aggregate("count", (), "") if node.name == "batch_size" else None
    if not isinstance(node, tree.Method):
        return None
    if node.name == "from" and literal_argument(node, 0) == -1:
        return _find_latest(node, text)
    kind, array, question, number = _parse_final_method(node)
    if kind is None or (split := split_from_all(array)) is None:
        return None
    source, steps = split
    if (stop := find_message_dependence(source)) is not None:
        raise _make_dependence_error(stop, "the expression before from_all()")
    for step in steps:
        if (stop := find_query_dependence(step.arguments[0].value)) is not None:
            raise _make_dependence_error(stop, f"the argument of {step.name}()")
    if question is not None and (stop := find_query_dependence(question)) is not None:
        raise _make_dependence_error(stop, f"the argument of {node.name}()")
    path = _static_json_path(source)
    plain = path is not None and not steps
    if plain and kind in _FIELD_KINDS:
        return Aggregate(kind, path or (), describe_expression(array))
    return Aggregate(
        kind,
        path or (),
        describe_expression(array),
        MessageExpression(path, source, steps),
        None if question is None else ElementQuery(question),
        number,
        "" if plain and question is None else repr(describe_shape(node)),
        "" if plain and question is None else extract_snippet(node, text),
    )


def _find_latest(node: tree.Method, text: str) -> Aggregate:
    if (stop := find_message_dependence(node.target)) is not None:
        raise _make_dependence_error(stop, "the expression before from()")
    element = MessageExpression(_static_json_path(node.target), node.target, ())
    identity, snippet = repr(describe_shape(node)), extract_snippet(node, text)
    return Aggregate(
        "latest", (), describe_expression(node), element, identity=identity, text=snippet
    )


def _parse_final_method(
    node: tree.Method,
) -> tuple[AggregateKind | None, tree.Node, tree.Node | None, int]:
    """Return what a method asks of an array: the kind, the array, the question and a number."""
    array = node.target
    if node.name == "index":
        return _INDEX_KINDS.get(literal_argument(node, 0)), array, None, 0
    if node.name in _QUERY_METHODS:
        last = node.bound.arguments[-1]
        question = last.node if isinstance(last, QueryArgument) else None
        number = literal_argument(node, 0) if node.name == "top_k" else 0
        if number and question is None and _is_unique(array):
            assert isinstance(array, tree.Method)
            return "top distinct", array.target, None, number
        return (None if number is None else _QUERY_METHODS[node.name]), array, question, number or 0
    if node.arguments:
        return None, array, None, 0
    if node.name == "unique":
        return "unique", array, None, 0
    if node.name == "length" and _is_unique(array):
        assert isinstance(array, tree.Method)
        return "distinct", array.target, None, 0
    return _PLAIN_METHODS.get(node.name), array, None, 0


def _is_unique(node: tree.Node) -> bool:
    return isinstance(node, tree.Method) and node.name == "unique" and not node.arguments


def _static_json_path(node: tree.Node) -> tuple[str, ...] | None:
    """Return the path of `json("path")`."""
    if not (isinstance(node, tree.Call) and node.name == "json"):
        return None
    argument = node.bound.arguments[0]
    if not isinstance(argument, StaticArgument):
        return None
    path: tuple[str, ...] = tuple(split_path(argument.value)) if argument.value else ()
    return None if "*" in path else path


def _make_dependence_error(stop: Dependence, where: str) -> NotAggregatableError:
    return NotAggregatableError(
        stop.place, f"{where} looks at {stop.description}, so it cannot be kept up to date"
    )
