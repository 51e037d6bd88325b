"""Whether an expression looks at nothing but the value, or the message, that it is given.

Then it gives the same wherever and whenever it is evaluated, so that a window may do it as messages
come. What folds is made of such expressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from streamer.bloblang import tree
from streamer.bloblang.arguments import DynamicArgument, QueryArgument, StaticArgument
from streamer.bloblang.declare import Declaration


@dataclass(frozen=True, slots=True)
class Dependence:
    """Something that an expression depends on.

    Attributes:
        place: of what it looks at.
        description: what that is, in words.
    """

    place: tree.Place
    description: str


@dataclass(frozen=True, slots=True)
class _Scope:
    """The variables that are bound around an expression.

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

    def with_this(self) -> _Scope:
        """Return the scope of a query, which is given a value as `this`."""
        return replace(self, this=True, previous=self.this)


def find_message_dependence(node: tree.Node) -> Dependence | None:
    """Return what an expression depends on besides the document of one message, by `json()`."""
    return next(_find_dependences(node, _Scope(document=True)), None)


def find_query_dependence(node: tree.Node) -> Dependence | None:
    """Return what a method's query depends on besides the value that it is given."""
    return next(_find_dependences(node, _Scope(document=False).with_this()), None)


def _find_dependences(node: tree.Node, scope: _Scope) -> Iterator[Dependence]:
    match node:
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
            yield from _find_in_call(node, scope)
        case tree.Method():
            yield from _find_in_method(node, scope)
        case tree.MapInto(target=target, query=query):
            yield from _find_dependences(target, scope)
            yield from _find_dependences(query, scope.with_this())
        case tree.Lambda(place=place, name=name, body=body):
            if not scope.this:
                yield Dependence(place, "the document of the first message")
            names = scope.names if name == "_" else scope.names | {name}
            inner = replace(scope, this=scope.previous, previous=False, names=names)
            yield from _find_dependences(body, inner)
        case tree.Match():
            yield from _find_in_match(node, scope)
        case _:
            for part in tree.list_children(node):
                yield from _find_dependences(part, scope)


def _find_in_match(node: tree.Match, scope: _Scope) -> Iterator[Dependence]:
    if node.subject is not None:
        yield from _find_dependences(node.subject, scope)
    elif not scope.this:
        # Literals are compared with what `this` is; all other cases are conditions.
        literal = next((test for test, _ in node.cases if isinstance(test, tree.Literal)), None)
        if literal is not None:
            yield Dependence(literal.place, "the document of the first message")
    inner = scope.with_this() if node.subject is not None else replace(scope, previous=scope.this)
    for test, then in node.cases:
        if test is not None:
            yield from _find_dependences(test, inner)
        yield from _find_dependences(then, inner)


def _find_in_call(node: tree.Call, scope: _Scope) -> Iterator[Dependence]:
    declaration: Declaration = node.bound.declaration
    if node.name == "json" and scope.document:
        if isinstance(node.bound.arguments[0], StaticArgument):
            return
        yield Dependence(node.place, "a path that is worked out for the message")
    elif declaration.uses or declaration.needs:
        yield Dependence(node.place, f"the function {node.name}")
    yield from _find_in_arguments(node, scope)


def _find_in_method(node: tree.Method, scope: _Scope) -> Iterator[Dependence]:
    yield from _find_dependences(node.target, scope)
    declaration: Declaration = node.bound.declaration
    # Named maps are those of the mapping around the expression.
    reaches_mapping = node.name in ("apply", "bloblang") or set(declaration.needs) - {"argument"}
    if declaration.uses or reaches_mapping:
        yield Dependence(node.place, f"the method {node.name}")
    yield from _find_in_arguments(node, scope)


def _find_in_arguments(node: tree.Call | tree.Method, scope: _Scope) -> Iterator[Dependence]:
    for argument in node.bound.arguments:
        match argument:
            case QueryArgument(node=inner):
                yield from _find_dependences(
                    inner, scope if node.name == "or" else scope.with_this()
                )
            case DynamicArgument(node=inner):
                yield from _find_dependences(inner, scope)
