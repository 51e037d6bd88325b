"""The nodes of a parsed mapping. Every expression knows how deep it nests and where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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
    """What all messages of a `folding.PreAggregatedBatch` have come to.

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
