"""Whether an expression looks at nothing but the value, or the message, that it is given.

Then it gives the same wherever and whenever it is evaluated, so that a window may do it as messages
come. What folds is made of such expressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from streamer.bloblang import tree
from streamer.bloblang.arguments import Dynamic, Query, Static
from streamer.bloblang.declare import Declaration
from streamer.bloblang.parted import operands_of


@dataclass(frozen=True, slots=True)
class Dependence:
    """What an expression depends on.

    Attributes:
        place: of what it looks at.
        what: what that is, in words.
    """

    place: tree.Place
    what: str


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is bound around an expression.

    Attributes:
        document: whether it may look at the message's own document.
        this: whether `this` is a value that the expression was given.
        previous: whether the `this` around it, which a lambda goes back to, is one.
        names: the names that lambdas gave to such values.
    """

    document: bool
    this: bool = False
    previous: bool = False
    names: frozenset[str] = frozenset()

    def given(self) -> _Scope:
        """Return the scope of a query, which is given a value as `this`."""
        return replace(self, this=True, previous=self.this)


def of_message(node: tree.Node) -> Dependence | None:
    """Return what an expression depends on besides the document of one message, by `json()`."""
    return next(_found(node, _Scope(document=True)), None)


def of_query(node: tree.Node) -> Dependence | None:
    """Return what a method's query depends on besides the value that it is given."""
    return next(_found(node, _Scope(document=False).given()), None)


def _found(node: tree.Node, scope: _Scope) -> Iterator[Dependence]:
    match node:
        case tree.Literal():
            return
        case tree.Path(place=place, base=base):
            if base == "this" and not scope.this:
                yield Dependence(place, "`this`, the document of the first message")
            elif base != "this" and base not in scope.names:
                yield Dependence(place, f"`{base}`")
        case tree.Variable(place=place, name=name):
            yield Dependence(place, f"the variable `{name}`")
        case tree.Metadata(place=place):
            yield Dependence(place, "metadata")
        case tree.Call():
            yield from _call(node, scope)
        case tree.Method():
            yield from _method(node, scope)
        case tree.MapInto(target=target, query=query):
            yield from _found(target, scope)
            yield from _found(query, scope.given())
        case tree.Lambda(place=place, name=name, body=body):
            if not scope.this:
                yield Dependence(place, "the document of the first message")
            names = scope.names if name == "_" else scope.names | {name}
            inner = replace(scope, this=scope.previous, previous=False, names=names)
            yield from _found(body, inner)
        case tree.Match():
            yield from _match(node, scope)
        case tree.Get(target=target):
            yield from _found(target, scope)
        case tree.Not() | tree.Binary() | tree.Chain() | tree.If() | tree.Array() | tree.Object():
            for part in operands_of(node):
                yield from _found(part, scope)
        case _:
            raise AssertionError(node)


def _match(node: tree.Match, scope: _Scope) -> Iterator[Dependence]:
    if node.subject is not None:
        yield from _found(node.subject, scope)
    elif not scope.this:
        # Literals are compared with what `this` is; all other cases are conditions.
        literal = next((test for test, _ in node.cases if isinstance(test, tree.Literal)), None)
        if literal is not None:
            yield Dependence(literal.place, "the document of the first message")
    inner = scope.given() if node.subject is not None else replace(scope, previous=scope.this)
    for test, then in node.cases:
        if test is not None:
            yield from _found(test, inner)
        yield from _found(then, inner)


def _call(node: tree.Call, scope: _Scope) -> Iterator[Dependence]:
    declaration: Declaration = node.bound.declaration
    if node.name == "json" and scope.document:
        if isinstance(node.bound.arguments[0], Static):
            return
        yield Dependence(node.place, "a path that is worked out for the message")
    elif declaration.uses or declaration.needs:
        yield Dependence(node.place, f"the function {node.name}")
    yield from _arguments(node, scope)


def _method(node: tree.Method, scope: _Scope) -> Iterator[Dependence]:
    yield from _found(node.target, scope)
    declaration: Declaration = node.bound.declaration
    # Named maps are those of the mapping around the expression.
    outside = node.name in ("apply", "bloblang") or set(declaration.needs) - {"argument"}
    if declaration.uses or outside:
        yield Dependence(node.place, f"the method {node.name}")
    yield from _arguments(node, scope)


def _arguments(node: tree.Call | tree.Method, scope: _Scope) -> Iterator[Dependence]:
    for argument in node.bound.arguments:
        match argument:
            case Query(node=inner):
                yield from _found(inner, scope if node.name == "or" else scope.given())
            case Dynamic(node=inner):
                yield from _found(inner, scope)
