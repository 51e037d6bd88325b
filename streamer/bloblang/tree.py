"""The nodes of a parsed mapping, and how to walk them. Every node knows where it stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar

from streamer.bloblang.errors import BloblangError

# Deeper than this is refused: nobody writes it, and Python's own compiler would give up.
MAX_DEPTH = 48
TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"


@dataclass(slots=True)
class Place:
    """1-based line and column within the text."""

    line: int
    column: int


@dataclass(slots=True)
class Node:
    """An expression."""

    place: Place


@dataclass(slots=True)
class Literal(Node):
    """A value known when the mapping is read; `name` is set for `deleted()` and `nothing()`."""

    value: Any
    name: str = ""


@dataclass(slots=True)
class Name(Node):
    """`this`, `root`, a named context, or the first part of a bare path; resolved later."""

    name: str


@dataclass(slots=True)
class Path(Node):
    """A path into `this`, `root` or a named context (`base`)."""

    base: str
    path: tuple[str, ...]


@dataclass(slots=True)
class Get(Node):
    """A path into the result of another expression."""

    target: Node
    path: tuple[str, ...]


@dataclass(slots=True)
class Argument:
    """One argument of a call, with its name when it was given one."""

    name: str | None
    value: Node


@dataclass(slots=True)
class Call(Node):
    """A function call; `end` is the place after it, where Benthos finds fault with it."""

    name: str
    arguments: list[Argument]
    bound: Any = None
    end: Place | None = None


@dataclass(slots=True)
class Method(Node):
    """A method call on the result of another expression; `end` is the place after it."""

    target: Node
    name: str
    arguments: list[Argument]
    bound: Any = None
    end: Place | None = None
    alias: str = ""


@dataclass(slots=True)
class Brackets(Node):
    """An expression in brackets; none is left once names are resolved."""

    query: Node


@dataclass(slots=True)
class MapInto(Node):
    """`target.(query)`: the query with `this` set to the target."""

    target: Node
    query: Node


@dataclass(slots=True)
class Not(Node):
    """`!operand`."""

    operand: Node


@dataclass(slots=True)
class Binary(Node):
    """Two operands and an operator other than `|`, `&&` and `||`."""

    operator: str
    left: Node
    right: Node


@dataclass(slots=True)
class Chain(Node):
    """Operands joined by `|`, or by `&&` and `||`, evaluated left to right and only as needed."""

    operators: list[str]
    operands: list[Node]


@dataclass(slots=True)
class If(Node):
    """An `if` expression; `otherwise` is None when there is no `else`."""

    branches: list[tuple[Node, Node]]
    otherwise: Node | None


@dataclass(slots=True)
class Match(Node):
    """A `match` expression; a case without a condition is `_`."""

    subject: Node | None
    cases: list[tuple[Node | None, Node]]


@dataclass(slots=True)
class Lambda(Node):
    """`name -> body`; the name `_` captures nothing."""

    name: str
    body: Node


@dataclass(slots=True)
class Array(Node):
    """An array literal."""

    items: list[Node]


@dataclass(slots=True)
class Object(Node):
    """An object literal; keys are expressions."""

    pairs: list[tuple[Node, Node]]


@dataclass(slots=True)
class Variable(Node):
    """`$name`."""

    name: str


@dataclass(slots=True)
class Metadata(Node):
    """`@`, `@name` or `@"name"`."""

    key: str


@dataclass(slots=True)
class AggregateValue(Node):
    """The value of an aggregate over all messages of a `PreAggregatedBatch`.

    `origin` is for error texts; what is `special` may be no value at all.
    """

    number: int
    origin: str
    special: bool


@dataclass(slots=True)
class Statement:
    """Something that a mapping does; `place` is where it begins."""

    place: Place


@dataclass(slots=True)
class Assign(Statement):
    """`root.path = value`."""

    path: tuple[str, ...]
    value: Node


@dataclass(slots=True)
class AssignMeta(Statement):
    """`meta key = value`, or `meta = value` when the key is None.

    It is not `allowed` in an `if` within a named map, which fails when it comes to it.
    """

    key: str | None
    value: Node
    allowed: bool = True


@dataclass(slots=True)
class Let(Statement):
    """`let name = value`."""

    name: str
    value: Node


@dataclass(slots=True)
class IfStatement(Statement):
    """An `if` whose branches are statements; the condition of an `else` is None."""

    branches: list[tuple[Node | None, list[Statement]]]


@dataclass(slots=True)
class NamedMap(Statement):
    """`map name { … }`."""

    name: str
    body: list[Statement]


@dataclass(slots=True)
class Import(Statement):
    """`import "path"`."""

    path: str


@dataclass(slots=True)
class Program:
    """A whole mapping: its statements, and its named maps by name."""

    statements: list[Statement]
    maps: dict[str, NamedMap] = field(default_factory=dict)


def error_at(part: Node | Statement, message: str, suggestion: str = "") -> BloblangError:
    """Return an error about the place where a node or a statement begins."""
    return BloblangError(part.place.line, part.place.column, message, suggestion)


_PartT = TypeVar("_PartT", bound=Node | Statement | Argument | Program)
# Tuples, which isinstance takes much faster than unions.
_CHILD_TYPES: Final = (Node, Statement)
_PART_TYPES: Final = (Node, Statement, Argument, Program)
# Of the other fields, what is bound are the arguments once more, and a literal may be large.
_CHILD_FIELD_TYPE: Final = re.compile(r"\b(Node|Statement|Argument|NamedMap)\b")


def _list_fields(kind: type) -> list[tuple[str, bool]]:
    listed = [(one.name, bool(_CHILD_FIELD_TYPE.search(str(one.type)))) for one in fields(kind)]
    return listed if any(has_children for _, has_children in listed) else []


_FIELDS: Final = {
    kind: _list_fields(kind)
    for kind in (*Node.__subclasses__(), *Statement.__subclasses__(), Argument, Program)
}
"""The fields of each class, each with whether it has children; none where none has."""


def list_children(part: Any) -> list[Any]:
    """Return the nodes and statements that a part of a tree directly consists of, in text order.

    Args:
        part: a node, a statement, an argument, a program, or a list, tuple or dict of such.
    """
    if isinstance(part, _PART_TYPES):
        part = [getattr(part, name) for name, has_children in _FIELDS[type(part)] if has_children]
    elif isinstance(part, dict):
        part = part.values()
    elif not isinstance(part, (list, tuple)):
        return []
    children: list[Any] = []
    for value in part:
        if isinstance(value, _CHILD_TYPES):
            children.append(value)
        elif value is not None:
            children += list_children(value)
    return children


def walk(part: Any) -> Iterator[Node | Statement]:
    """Return all nodes and statements in a part of a tree, in text order, each before its children.

    Args:
        part: as `list_children` takes it; it is the first of them when it is one itself.
    """
    # Chains of methods may be long, so this does not recurse.
    waiting = list_children([part])[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(list_children(node))


def map_children(part: _PartT, change: Callable[[Any], Any]) -> _PartT:
    """Return a part of a tree with what a function returns for each child in the child's place.

    Args:
        part: a node, a statement, an argument or a program.
        change: takes a node or a statement.
    """
    kind = type(part)
    values = [
        _map_value(getattr(part, name), change) if has_children else getattr(part, name)
        for name, has_children in _FIELDS[kind]
    ]
    return kind(*values) if values else part


def _map_value(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, _CHILD_TYPES):
        return change(value)
    if isinstance(value, Argument):
        return map_children(value, change)
    if isinstance(value, (list, tuple)):
        return type(value)([_map_value(item, change) for item in value])
    if isinstance(value, dict):
        return {key: _map_value(item, change) for key, item in value.items()}
    return value


LEFT_OPERANDS: Final[dict[type, str]] = {
    **dict.fromkeys((Get, Method, MapInto), "target"),
    Binary: "left",
}
"""The fields with what a link of a chain stands on, by its class.

Chains may be long, so that what follows them had better not recurse.
"""


def left_operand(node: Node) -> Node | None:
    """Return what a link of a chain stands on; None for others."""
    return getattr(node, LEFT_OPERANDS.get(type(node), ""), None)


def find_leftmost(node: Node) -> Node:
    """Return what an expression begins with."""
    while True:
        left = node.operands[0] if isinstance(node, Chain) else left_operand(node)
        if left is None:
            return node
        node = left
