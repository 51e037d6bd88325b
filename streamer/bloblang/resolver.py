"""The second look at a tree: names get their meaning, calls their function, constants their value.

It also finds out what a mapping leans on (`Uses`), so that the engine may route by it.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import Any, Final

from streamer.bloblang import operators, tree
from streamer.bloblang.arguments import Binding, Static, bind
from streamer.bloblang.catalogue import FUNCTIONS, METHODS
from streamer.bloblang.declare import Declaration
from streamer.bloblang.errors import ArgumentError, BloblangError, QueryError
from streamer.bloblang.outside import Outside
from streamer.bloblang.runtime.paths import split_path
from streamer.bloblang.runtime.text import go_type
from streamer.value import DELETED, NOTHING


@dataclass(frozen=True, slots=True)
class Uses:
    """What a mapping's result depends on besides the message's own parsed document.

    Attributes:
        batch: the other messages or the place among them (`batch_index`, `from_all`, `count`, …).
        meta: metadata, read or written.
        content: the message's bytes.
        now: the clock.
        random: chance (`random_int`, `uuid_v4`, …).
        error: the error that marks the message.
        impure: the world outside (`env`, `file`, `hostname`).
        document: the parsed document.
    """

    batch: bool = False
    meta: bool = False
    content: bool = False
    now: bool = False
    random: bool = False
    error: bool = False
    impure: bool = False
    document: bool = False

    @property
    def only_document(self) -> bool:
        """Whether the result depends on nothing but the message's own parsed document."""
        beside_message = self.batch or self.now or self.random or self.impure
        return not (beside_message or self.meta or self.content or self.error)


# Methods that are built around their target, so that a chain of them nests like brackets.
AROUND: Final = frozenset(("bool", "catch", "from", "from_all", "not", "number", "or", "timestamp"))


@dataclass(slots=True)
class Resolver:
    """Resolves one mapping.

    Attributes:
        outside: what it may take from outside of messages.
        used: collects what it leans on.
    """

    outside: Outside
    used: set[str] = field(default_factory=set)

    def uses(self) -> Uses:
        """Return what the mapping resolved so far leans on."""
        return Uses(**dict.fromkeys(self.used, True))

    def node(self, node: tree.Node, scope: tuple[str, ...], depth: int = 0) -> tree.Node:
        """Return an expression with everything in it resolved.

        Args:
            node: the expression.
            scope: the named contexts around it.
            depth: how deep it is nested.

        Raises:
            BloblangError: an unknown name, a wrong argument, or too deep a nesting.
        """
        spine: list[tree.Node] = []
        around = depth
        while (below := _left(node)) is not None:
            around += isinstance(node, tree.Method) and node.name in AROUND
            if around > tree.MAX_DEPTH:
                raise _refuse(node, tree.TOO_DEEP)
            spine.append(node)
            node = below
        if depth > tree.MAX_DEPTH:
            raise _refuse(node, tree.TOO_DEEP)
        node = self._leaf(node, scope, depth + 1)
        for upper in reversed(spine):
            node = self._upper(upper, node, scope, depth + 1)
        return node

    def _upper(
        self, node: tree.Node, left: tree.Node, scope: tuple[str, ...], depth: int
    ) -> tree.Node:
        """Resolve a node of the left spine, whose left part is resolved already."""
        match node:
            case tree.Get(path=path):
                return _get(left, path)
            case tree.Method():
                return self._method(node, left, scope, depth)
            case tree.MapInto(query=query):
                return tree.MapInto(node.place, left, self.node(query, scope, depth))
            case tree.Binary(right=right):
                return operators.binary(node, left, self.node(right, scope, depth))
            case tree.Brackets():
                return left
        raise AssertionError(node)

    def _leaf(self, node: tree.Node, scope: tuple[str, ...], depth: int) -> tree.Node:
        def inner(part: tree.Node) -> tree.Node:
            return self.node(part, scope, depth)

        match node:
            case tree.Name(name=name):
                return self._name(node, name, scope)
            case tree.Call():
                return self._call(node, scope, depth)
            case tree.Not(operand=operand):
                return tree.Not(node.place, inner(operand))
            case tree.Chain(operators=signs, operands=operands):
                return tree.Chain(node.place, signs, [inner(part) for part in operands])
            case tree.If(branches=branches, otherwise=otherwise):
                resolved = [(inner(test), inner(value)) for test, value in branches]
                return tree.If(node.place, resolved, otherwise and inner(otherwise))
            case tree.Match(subject=subject, cases=cases):
                self.used.add("document")
                return tree.Match(
                    node.place,
                    subject and inner(subject),
                    [(test and inner(test), inner(value)) for test, value in cases],
                )
            case tree.Lambda(name=name, body=body):
                return self._lambda(node, name, body, scope, depth)
            case tree.Array(items=items):
                return _array(tree.Array(node.place, [inner(item) for item in items]))
            case tree.Object(pairs=pairs):
                found = [(inner(key), inner(value)) for key, value in pairs]
                return _object(tree.Object(node.place, found))
            case tree.Metadata():
                self.used.add("meta")
        return node

    def _name(self, node: tree.Node, name: str, scope: tuple[str, ...]) -> tree.Node:
        if name == "root" or name in scope:
            return tree.Path(node.place, name, ())
        self.used.add("document")
        return tree.Path(node.place, "this", () if name == "this" else (name,))

    def _lambda(
        self, node: tree.Node, name: str, body: tree.Node, scope: tuple[str, ...], depth: int
    ) -> tree.Node:
        if name in scope:
            raise _refuse(node, f"context label `{name}` would shadow a parent context")
        if name in ("root", "this"):
            raise _refuse(node, f"context label `{name}` is not allowed")
        inner = scope if name == "_" else (*scope, name)
        resolved = self.node(body, inner, depth)
        if isinstance(resolved, tree.Lambda):
            raise _refuse(
                node,
                "it would be in poor taste to capture the same context under both "
                f"'{name}' and '{resolved.name}'",
            )
        return tree.Lambda(node.place, name, resolved)

    def _call(self, node: tree.Call, scope: tuple[str, ...], depth: int) -> tree.Node:
        if node.name in ("deleted", "nothing") and not node.arguments:
            if node.name == "deleted":
                return tree.Literal(node.place, DELETED, "delete")
            return tree.Literal(node.place, NOTHING, "nothing")
        declaration = FUNCTIONS.get(node.name)
        arguments = self._arguments(node.arguments, scope, depth)
        if declaration is None:
            raise _unknown(node, "function", node.name, list(FUNCTIONS))
        bound = self._bind(node, declaration, arguments)
        if node.name == "json":
            self.used.add("document")
            if arguments and not isinstance(arguments[0].value, tree.Literal):
                self.used.add("content")  # the function looks at the message then
        if node.name == "var" and isinstance(arguments[0].value, tree.Literal):
            return tree.Variable(node.place, str(arguments[0].value.value))
        return tree.Call(node.place, node.name, arguments, bound)

    def _method(
        self, node: tree.Method, target: tree.Node, scope: tuple[str, ...], depth: int
    ) -> tree.Node:
        declaration = METHODS.get(node.name)
        arguments = self._arguments(node.arguments, scope, depth)
        if declaration is None:
            raise _unknown(node, "method", node.name, list(METHODS))
        bound = self._bind(node, declaration, arguments)
        if node.name == "get" and isinstance(path := arguments[0].value, tree.Literal):
            return _get(target, split_path(str(path.value)))
        if node.name == "not":
            return tree.Not(node.place, target)
        if node.name == "map":
            return tree.MapInto(node.place, target, arguments[0].value)
        if declaration.folds and isinstance(target, tree.Literal) and bound.all_static():
            return _folded(node, target, bound)
        return tree.Method(node.place, target, node.name, arguments, bound)

    def _arguments(
        self, arguments: list[tree.Argument], scope: tuple[str, ...], depth: int
    ) -> list[tree.Argument]:
        return [tree.Argument(a.name, self.node(a.value, scope, depth)) for a in arguments]

    def _bind(
        self, node: tree.Node, declaration: Declaration, arguments: list[tree.Argument]
    ) -> Binding:
        if declaration.impure and not self.outside.impure:
            raise _refuse(node, f"function '{declaration.name}' is switched off here", _IMPURE)
        self.used.update(declaration.uses)
        try:
            binding = bind(declaration, arguments, self.outside.json_numbers)
            if declaration.reaches:
                binding.arguments.insert(0, Static(self.outside))
            if declaration.check:
                declaration.check(*_values(binding))
            late = {"site", "state"} & set(declaration.needs)
            if declaration.binds and binding.all_static() and not late:
                declaration.run(*_values(binding))
        except (ArgumentError, QueryError) as e:
            raise _refuse(node, str(e)) from None
        return binding


_IMPURE = "it is impure: it reaches outside of the message, which --no-impure forbids"


def _values(binding: Binding) -> list[Any]:
    return [getattr(argument, "value", None) for argument in binding.arguments]


def _left(node: tree.Node) -> tree.Node | None:
    """Return what a node of a chain stands on; chains may be long, so nobody recurses on them."""
    if isinstance(node, tree.Get | tree.Method | tree.MapInto):
        return node.target
    if isinstance(node, tree.Brackets):
        return node.query
    return node.left if isinstance(node, tree.Binary) else None


def _get(target: tree.Node, path: tuple[str, ...]) -> tree.Node:
    if isinstance(target, tree.Path):
        return tree.Path(target.place, target.base, (*target.path, *path))
    if isinstance(target, tree.Get):
        return tree.Get(target.place, target.target, (*target.path, *path))
    return tree.Get(target.place, target, path)


def _array(node: tree.Array) -> tree.Node:
    values = [item.value for item in node.items if isinstance(item, tree.Literal)]
    if len(values) < len(node.items):
        return node
    kept = [value for value in values if value is not DELETED and value is not NOTHING]
    return tree.Literal(node.place, kept)


def _object(node: tree.Object) -> tree.Node:
    result: dict[str, Any] = {}
    static = True
    for key, value in node.pairs:
        if isinstance(key, tree.Literal) and not isinstance(key.value, str):
            message = f"object keys must be strings, received: {go_type(key.value)}"
            raise _refuse(node, message)
        if not (isinstance(key, tree.Literal) and isinstance(value, tree.Literal)):
            static = False
        elif value.value is not DELETED and value.value is not NOTHING:
            result[key.value] = value.value
    return tree.Literal(node.place, result) if static else node


def _folded(node: tree.Method, target: tree.Literal, bound: Binding) -> tree.Node:
    """Return what a method gives for a literal, worked out when the mapping is read."""
    run, values = bound.declaration.run, _values(bound)
    try:
        if bound.declaration.binds:
            result = run(*values)(target.value)
        else:
            result = run(target.value, *values)
    except QueryError as e:
        raise _refuse(node, str(e)) from None
    return tree.Literal(node.place, result, f"method {node.name}")


def _refuse(node: tree.Node, message: str, suggestion: str = "") -> BloblangError:
    # Benthos looks at a call once it has read it, and tells of the place behind it.
    place = (isinstance(node, tree.Call | tree.Method) and node.end) or node.place
    return BloblangError(place.line, place.column, message, suggestion)


def _unknown(node: tree.Node, kind: str, name: str, known: list[str]) -> BloblangError:
    close = difflib.get_close_matches(name, known, 1, 0.6)
    suggestion = f"did you mean '{close[0]}'?" if close else ""
    return _refuse(node, f"unrecognised {kind} '{name}'", suggestion)
