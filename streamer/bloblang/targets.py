"""Which parts of a message a mapping reads, and which it writes: for the order of a workflow.

What Benthos tells of its mappings is told here, no more and no less: of the arguments of methods it
looks at those of `map`, `apply`, `catch`, `or`, `sort` and `sort_by`, and of those that are worked
out for every call; of `map_each`, `filter` and the like only at what they are applied to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from streamer.bloblang import tree
from streamer.bloblang.arguments import Bound, Dynamic, Query, Static
from streamer.bloblang.mapping import Mapping as Compiled
from streamer.bloblang.parted import operands_of
from streamer.bloblang.runtime.paths import split_path


class Target(NamedTuple):
    """A part of a message.

    Attributes:
        metadata: whether it is one of the metadata; else one of the document.
        path: where in it; empty for all of it.
    """

    metadata: bool
    path: tuple[str, ...]


_METADATA: Final = frozenset({"meta", "metadata", "root_meta"})
_IN_CONTEXT: Final = frozenset({"catch", "or", "sort", "sort_by"})
_MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Scope:
    """What names stand for at a place; each may stand for one of several parts.

    Attributes:
        maps: the mapping's named maps.
        this: `this`; None where it is the document.
        before: the `this` of the queries around, the nearest first.
        names: what lambdas have named.
        within: the named maps that are being looked at.
    """

    maps: Mapping[str, tree.NamedMap]
    this: tuple[Target, ...] | None = None
    before: tuple[tuple[Target, ...] | None, ...] = ()
    names: Mapping[str, tuple[Target, ...]] = field(default_factory=dict)
    within: frozenset[str] = frozenset()

    def given(self, value: tuple[Target, ...]) -> _Scope:
        return replace(self, this=value or None, before=(self.this, *self.before))


class _Found(NamedTuple):
    """What an expression reads, and what its value may be a part of."""

    read: tuple[Target, ...] = ()
    value: tuple[Target, ...] = ()


def read_by(mapping: Compiled) -> list[Target]:
    """Return the parts that a mapping reads, each once, in order."""
    scope = _Scope(mapping.program.maps)
    found = _statements(mapping.program.statements, scope)
    return list(dict.fromkeys(found))


def written_by(mapping: Compiled) -> list[Target]:
    """Return the parts that a mapping writes, or may write, each once, in order."""
    return list(dict.fromkeys(_written(mapping.program.statements)))


def _written(statements: Iterable[tree.Statement]) -> Iterator[Target]:
    for statement in statements:
        match statement:
            case tree.Assign(path=path):
                yield Target(False, tuple(path))
            case tree.AssignMeta(key=key):
                yield Target(True, () if key is None else (key,))
            case tree.IfStatement(branches=branches):
                for _, body in branches:
                    yield from _written(body)


def _statements(statements: Iterable[tree.Statement], scope: _Scope) -> Iterator[Target]:
    for statement in statements:
        match statement:
            case tree.Assign(value=value) | tree.AssignMeta(value=value) | tree.Let(value=value):
                yield from _look(value, scope).read
            case tree.IfStatement(branches=branches):
                for test, body in branches:
                    if test is not None:
                        yield from _look(test, scope).read
                    yield from _statements(body, scope)


def _look(node: tree.Node, scope: _Scope) -> _Found:
    match node:
        case tree.Path(base=base, path=path):
            found = _below(_base(base, scope), path)
            return _Found(found, found)
        case tree.Metadata(key=key):
            found = (Target(True, (key,) if key else ()),)
            return _Found(found, found)
        case tree.Get(target=target, path=path):
            inner = _look(target, scope)
            found = _below(inner.value, path)
            return _Found((*inner.read, *found), found)
        case tree.Call():
            return _call(node, scope)
        case tree.Method():
            return _method(node, scope)
        case tree.MapInto(target=target, query=query):
            return _into(_look(target, scope), query, scope)
        case tree.Lambda(name=name, body=body):
            return _look(body, _named(name, scope))
        case tree.Match(subject=subject, cases=cases):
            return _match(subject, cases, scope)
        case _:
            return _Found(_all(operands_of(node), scope))


def _base(name: str, scope: _Scope) -> tuple[Target, ...]:
    if name == "this":
        return (Target(False, ()),) if scope.this is None else scope.this
    return scope.names.get(name, ())  # `root` is what the mapping makes: nothing that is read


def _below(targets: tuple[Target, ...], path: tuple[str, ...]) -> tuple[Target, ...]:
    found = dict.fromkeys(target._replace(path=(*target.path, *path)) for target in targets)
    return tuple(found)[:_MOST]


def _all(nodes: Iterable[tree.Node], scope: _Scope) -> tuple[Target, ...]:
    read = dict.fromkeys(target for node in nodes for target in _look(node, scope).read)
    return tuple(read)[:_MOST]


def _into(target: _Found, query: tree.Node, scope: _Scope) -> _Found:
    inner = _look(query, scope.given(target.read))
    return _Found((*target.read, *inner.read), inner.value)


def _named(name: str, scope: _Scope) -> _Scope:
    """Give `this` a name, and let `this` be what it was around."""
    named = (Target(False, ()),) if scope.this is None else scope.this
    names = scope.names if name == "_" else {**scope.names, name: named}
    if not scope.before:
        return replace(scope, names=names)
    return replace(scope, names=names, this=scope.before[0], before=scope.before[1:])


def _match(
    subject: tree.Node | None, cases: list[tuple[tree.Node | None, tree.Node]], scope: _Scope
) -> _Found:
    found = () if subject is None else _look(subject, scope).read
    inner = scope if subject is None else scope.given(found)
    nodes = [part for case in cases for part in case if part is not None]
    return _Found((*_all(nodes, inner), *found))


def _call(node: tree.Call, scope: _Scope) -> _Found:
    arguments: list[Bound] = node.bound.arguments
    first = arguments[0] if arguments else None
    if node.name == "json" or node.name in _METADATA:
        if isinstance(first, Dynamic):
            return _Found(_worked_out(arguments, scope))
        text = first.value if isinstance(first, Static) and first.value else ""
        path = split_path(text) if node.name == "json" and text else (text,) if text else ()
        found = (Target(node.name != "json", path),)
        return _Found(found, found)
    return _Found(_worked_out(arguments, scope))


def _method(node: tree.Method, scope: _Scope) -> _Found:
    target = _look(node.target, scope)
    arguments: list[Bound] = node.bound.arguments
    first = arguments[0] if arguments else None
    if node.name == "map" and isinstance(first, Query):
        return _into(target, first.node, scope)
    if node.name == "apply" and isinstance(first, Static) and first.value in scope.maps:
        return _applied(target, first.value, scope)
    read = (*target.read, *_worked_out(arguments, scope))
    if node.name in _IN_CONTEXT:
        nodes = [argument.node for argument in arguments if isinstance(argument, Query)]
        read = (*read, *_all(nodes, scope))
    return _Found(tuple(dict.fromkeys(read)), target.value)


def _applied(target: _Found, name: str, scope: _Scope) -> _Found:
    if name in scope.within:
        return target
    inner = replace(_Scope(scope.maps).given(target.read), within=scope.within | {name})
    read = tuple(_statements(scope.maps[name].body, inner))
    return _Found(tuple(dict.fromkeys((*target.read, *read))))


def _worked_out(arguments: Iterable[Bound], scope: _Scope) -> tuple[Target, ...]:
    return _all([one.node for one in arguments if isinstance(one, Dynamic)], scope)
