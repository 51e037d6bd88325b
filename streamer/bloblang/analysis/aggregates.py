"""Aggregates of a mapping, found in its tree: its expressions over all messages of a batch.

A part begins with `from_all()` of an expression that looks at one message's document alone, goes
on with `map_each` and `filter`, if at all, and ends with a method whose result can be kept up to
date, message by message, and brought together from several readers' parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
    "avg",
    "stddev_pop",
    "stddev_samp",
    "values",
    "histogram",
    "approximate distinct",
    "min_by",
    "max_by",
    "first values",
    "last values",
]

_PLAIN_METHODS: Final[dict[str, AggregateKind]] = {
    "length": "count",
    "sum": "sum",
    "min": "min",
    "max": "max",
    "avg": "avg",
    "stddev_pop": "stddev_pop",
    "stddev_samp": "stddev_samp",
    "approx_count_distinct": "approximate distinct",
}
_SHARED_METHODS: Final[dict[str, AggregateKind]] = {
    "median": "values",
    "percentile": "values",
    "percentile_disc": "values",
    "percentile_approx": "histogram",
}
"""Methods that stay as they are, and are given what is kept instead of the array.

Several of one array share it."""

_QUERY_METHODS: Final[dict[str, AggregateKind]] = {
    "any": "any",
    "all": "all",
    "count_by": "counts",
    "top_k": "top",
    "min_by": "min_by",
    "max_by": "max_by",
}
_INDEX_KINDS: Final[dict[int, AggregateKind]] = {0: "first", -1: "last"}
_FIELD_KINDS: Final = (
    *("count", "sum", "min", "max", "distinct", "unique", "avg", "stddev_pop", "stddev_samp"),
    *("values", "histogram", "approximate distinct"),
)
_NUMBERED_KINDS: Final[dict[str, str]] = {
    "top": "top",
    "top distinct": "top",
    "first values": "first",
    "last values": "last",
}
"""Kinds with a number, by the word that it comes after when they are described."""


@dataclass(frozen=True)
class Aggregate:
    """One thing that a mapping asks of all messages of a batch.

    Attributes:
        kind: `count`, `sum`, `min` and `max` of values, the number of `distinct` ones, or
            the `unique` ones in the order of their first message; the `first` and the `last`;
            whether `any` or `all` pass a test; the `counts` by key; the `top` ones in descending
            order, or the `top distinct` ones; what an expression gives for the `latest` message,
            whatever it gives for others; the mean and the standard deviations; all `values` in
            ascending order, or a `histogram` of them; about how many distinct ones there are; the
            one for which a query gives the least or the most; so many `first values`, or last.
        path: the field whose values they are, as `json()` takes it; empty for the document.
        origin: what Benthos's error texts call the array of values.
        expression: what each message brings, where that is not just the field.
        query: what is asked of each value: the test, the key, or what it is ordered by.
        number: how many of the `top`, `first values` or `last values`.
        identity: what tells the part from others, when that is not all that stands above.
        text: the part as the mapping has it, when it is not just a field that it looks at.
        only_fails: it stands for an array that a variable holds, and is there for its error alone.
    """

    kind: AggregateKind
    path: tuple[str, ...]
    origin: str
    expression: MessageExpression | None = field(default=None, compare=False)
    query: ElementQuery | None = field(default=None, compare=False)
    number: int = 0
    identity: str = ""
    text: str = field(default="", compare=False)
    only_fails: bool = False

    def __str__(self) -> str:
        if self.text:
            return self.text
        name = ".".join(self.path)
        kind: str = self.kind
        if kind in _NUMBERED_KINDS:
            word = _NUMBERED_KINDS[kind]
            kind = kind.replace(word, f"{word} {self.number}")
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
    if kind is None or split_from_all(array) is None:
        return None
    return _make_aggregate(node, kind, array, question, number, text)


def find_shared_aggregate(node: tree.Node, text: str) -> Aggregate | None:
    """Return what a method needs of an array of all messages; None when it is not of that kind.

    The method is then evaluated on what is kept. Arguments and errors are `find_aggregate`'s.
    """
    if not isinstance(node, tree.Method) or node.name not in _SHARED_METHODS:
        return None
    kind = _SHARED_METHODS[node.name]
    if split_from_all(node.target) is None:
        return None
    return _make_aggregate(node, kind, node.target, None, 0, text)


def aggregate_array(array: tree.Method, text: str) -> Aggregate:
    """Return what fails as an array of all messages does: their number.

    Raises:
        NotAggregatableError: the array looks at what it may not look at.
    """
    return replace(_make_aggregate(array, "count", array, None, 0, text), only_fails=True)


def _make_aggregate(
    node: tree.Method,
    kind: AggregateKind,
    array: tree.Node,
    question: tree.Node | None,
    number: int,
    text: str,
) -> Aggregate:
    split = split_from_all(array)
    assert split is not None
    source, steps = split
    if steps:
        # What a variable is called makes no difference to the values that it holds.
        steps = (*steps[:-1], replace(steps[-1], alias=""))
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
    shared = node is array or node.name in _SHARED_METHODS
    whole = array if shared else node
    assert isinstance(whole, tree.Method)
    described = not plain or question is not None
    snippet = extract_snippet(whole, text) if described else ""
    return Aggregate(
        kind,
        path or (),
        describe_expression(array),
        MessageExpression(path, source, steps),
        None if question is None else ElementQuery(question),
        number,
        repr(describe_shape(whole)) if described else "",
        f"{kind} of {snippet}" if snippet and shared else snippet,
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
    if node.name == "slice":
        sliced, length = parse_slice(node)
        return sliced, array, None, length
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


def parse_slice(node: tree.Method) -> tuple[AggregateKind | None, int]:
    """Return what `slice(0, n)` and `slice(-n)` ask of an array, and the number."""
    match node.bound.arguments:
        case [StaticArgument(value=0), StaticArgument(value=int(high))] if high > 0:
            return "first values", high
        case [StaticArgument(value=int(low)), StaticArgument(value=None)] if low < 0:
            return "last values", -low
    return None, 0


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
