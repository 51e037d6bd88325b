"""The parts of a mapping that fold: what it asks of all messages of a batch, found in its tree.

A part begins with `from_all()` of an expression that looks at one message's document alone, goes
on with `map_each` and `filter`, if at all, and ends with a method whose result can be kept up to
date, message by message, and brought together from several readers' parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from streamer.bloblang import tree
from streamer.bloblang.annotations import annotation
from streamer.bloblang.arguments import Query, Static
from streamer.bloblang.dependence import Dependence, of_message, of_query
from streamer.bloblang.element import Element, Question
from streamer.bloblang.obstacles import NotFoldingError, elements, static_argument
from streamer.bloblang.quoting import quoted, shape
from streamer.bloblang.runtime.paths import split_path

Kind = Literal[
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

_REDUCED: Final[dict[str, Kind]] = {"length": "count", "sum": "sum", "min": "min", "max": "max"}
_ASKED: Final[dict[str, Kind]] = {"any": "any", "all": "all", "count_by": "counts", "top_k": "top"}
_ENDS: Final[dict[int, Kind]] = {0: "first", -1: "last"}
_PLAIN: Final = ("count", "sum", "min", "max", "distinct", "unique")


@dataclass(frozen=True)
class Part:
    """One thing that a mapping asks of all messages of a batch.

    Attributes:
        kind: `count`, `sum`, `min` and `max` of values, the number of `distinct` ones, or the
            `unique` ones in the order of their first message; the `first` and the `last`; whether
            `any` or `all` pass a test; the `counts` by key; the `top` ones in descending order, or
            the `top distinct` ones; what an expression gives for the `latest` message, whatever it
            gives for others.
        path: the field whose values they are, as `json()` takes it; empty for the document.
        origin: what Benthos's error texts call the array of values.
        element: what each message brings, where that is not just the field.
        question: what is asked of each value: the test, the key, or what it is ordered by.
        number: how many of the `top`.
        identity: what tells the part from others, when that is not all that stands above.
        text: the part as the mapping has it, when it is not just a field that it looks at.
    """

    kind: Kind
    path: tuple[str, ...]
    origin: str
    element: Element | None = field(default=None, compare=False)
    question: Question | None = field(default=None, compare=False)
    number: int = 0
    identity: str = ""
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        if self.text:
            return self.text
        name = ".".join(self.path)
        kind = self.kind.replace("top", f"top {self.number}")
        return f"{kind} of {name}" if self.path else kind


def part_of(node: tree.Node, text: str) -> Part | None:
    """Return what an expression asks of all messages; None when it is not of that kind.

    Args:
        node: the expression.
        text: the mapping that it is from, to quote.

    Raises:
        NotFoldingError: it is of that kind, and looks at what it may not look at.
    """
    if isinstance(node, tree.Call):
        return Part("count", (), "") if node.name == "batch_size" else None
    if not isinstance(node, tree.Method):
        return None
    if node.name == "from" and static_argument(node, 0) == -1:
        return _latest(node, text)
    kind, array, question, number = _ending(node)
    if kind is None or (found := elements(array)) is None:
        return None
    source, steps = found
    if (stop := of_message(source)) is not None:
        raise _in_the_way(stop, "the expression before from_all()")
    for step in steps:
        if (stop := of_query(step.arguments[0].value)) is not None:
            raise _in_the_way(stop, f"the argument of {step.name}()")
    if question is not None and (stop := of_query(question)) is not None:
        raise _in_the_way(stop, f"the argument of {node.name}()")
    path = _path_of(source)
    plain = path is not None and not steps
    if plain and kind in _PLAIN:
        return Part(kind, path or (), annotation(array))
    return Part(
        kind,
        path or (),
        annotation(array),
        Element(path, source, steps),
        None if question is None else Question(question),
        number,
        "" if plain and question is None else repr(shape(node)),
        "" if plain and question is None else quoted(node, text),
    )


def _latest(node: tree.Method, text: str) -> Part:
    if (stop := of_message(node.target)) is not None:
        raise _in_the_way(stop, "the expression before from()")
    element = Element(_path_of(node.target), node.target, ())
    identity, said = repr(shape(node)), quoted(node, text)
    return Part("latest", (), annotation(node), element, identity=identity, text=said)


def _ending(node: tree.Method) -> tuple[Kind | None, tree.Node, tree.Node | None, int]:
    """Return what a method asks of an array: the kind, the array, the question and a number."""
    array = node.target
    if node.name == "index":
        return _ENDS.get(static_argument(node, 0)), array, None, 0
    if node.name in _ASKED:
        last = node.bound.arguments[-1]
        question = last.node if isinstance(last, Query) else None
        number = static_argument(node, 0) if node.name == "top_k" else 0
        if number and question is None and _is_unique(array):
            assert isinstance(array, tree.Method)
            return "top distinct", array.target, None, number
        return (None if number is None else _ASKED[node.name]), array, question, number or 0
    if node.arguments:
        return None, array, None, 0
    if node.name == "unique":
        return "unique", array, None, 0
    if node.name == "length" and _is_unique(array):
        assert isinstance(array, tree.Method)
        return "distinct", array.target, None, 0
    return _REDUCED.get(node.name), array, None, 0


def _is_unique(node: tree.Node) -> bool:
    return isinstance(node, tree.Method) and node.name == "unique" and not node.arguments


def _path_of(node: tree.Node) -> tuple[str, ...] | None:
    """Return the path of `json("path")`."""
    if not (isinstance(node, tree.Call) and node.name == "json"):
        return None
    argument = node.bound.arguments[0]
    if not isinstance(argument, Static):
        return None
    path: tuple[str, ...] = tuple(split_path(argument.value)) if argument.value else ()
    return None if "*" in path else path


def _in_the_way(stop: Dependence, where: str) -> NotFoldingError:
    return NotFoldingError(
        stop.place, f"{where} looks at {stop.what}, so it cannot be kept up to date"
    )
