"""The parts of a message that a mapping reads and writes: for the order of a workflow.

What Benthos tells of its mappings is told here, no more and no less: of the arguments of methods it
looks at those of `map`, `apply`, `catch`, `or`, `sort` and `sort_by`, and of those that are worked
out for every call; of `map_each`, `filter` and the like only at what they are applied to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from streamer.bloblang import tree
from streamer.bloblang.arguments import (
    BoundArgument,
    DynamicArgument,
    QueryArgument,
    StaticArgument,
)
from streamer.bloblang.mapping import Mapping as Compiled
from streamer.bloblang.runtime.paths import split_path


class Target(NamedTuple):
    """A part of a message.

    Attributes:
        metadata: whether it is one of the metadata; else one of the document.
        path: where in it; empty for all of it.
    """

    metadata: bool
    path: tuple[str, ...]


_METADATA_FUNCTIONS: Final = frozenset({"meta", "metadata", "root_meta"})
_SAME_CONTEXT_METHODS: Final = frozenset({"catch", "or", "sort", "sort_by"})
_MAX_TARGETS: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Scope:
    """Names with the parts of the message that each may stand for at a place.

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

    def with_this(self, value: tuple[Target, ...]) -> _Scope:
        return replace(self, this=value or None, before=(self.this, *self.before))


class _ReadSet(NamedTuple):
    """The reads of an expression, and the parts that its value may be in."""

    read: tuple[Target, ...] = ()
    value: tuple[Target, ...] = ()


def find_reads(mapping: Compiled) -> list[Target]:
    """Return the parts that a mapping reads, each once, in order."""
    scope = _Scope(mapping.program.maps)
    targets = _iterate_reads(mapping.program.statements, scope)
    return list(dict.fromkeys(targets))


def find_writes(mapping: Compiled) -> list[Target]:
    """Return the parts that a mapping writes, or may write, each once, in order."""
    return list(dict.fromkeys(_iterate_writes(mapping.program.statements)))


def _iterate_writes(statements: Iterable[tree.Statement]) -> Iterator[Target]:
    for part in tree.walk(statements):
        match part:
            case tree.Assign(path=path):
                yield Target(False, tuple(path))
            case tree.AssignMeta(key=key):
                yield Target(True, () if key is None else (key,))


def _iterate_reads(statements: Iterable[tree.Statement], scope: _Scope) -> Iterator[Target]:
    for statement in statements:
        match statement:
            case tree.Assign(value=value) | tree.AssignMeta(value=value) | tree.Let(value=value):
                yield from _find_reads(value, scope).read
            case tree.IfStatement(branches=branches):
                for test, body in branches:
                    if test is not None:
                        yield from _find_reads(test, scope).read
                    yield from _iterate_reads(body, scope)


def _find_reads(node: tree.Node, scope: _Scope) -> _ReadSet:
    match node:
        case tree.Path(base=base, path=path):
            targets = _extend_paths(_resolve_base(base, scope), path)
            return _ReadSet(targets, targets)
        case tree.Metadata(key=key):
            targets = (Target(True, (key,) if key else ()),)
            return _ReadSet(targets, targets)
        case tree.Get(target=target, path=path):
            inner = _find_reads(target, scope)
            targets = _extend_paths(inner.value, path)
            return _ReadSet((*inner.read, *targets), targets)
        case tree.Call():
            return _find_call_reads(node, scope)
        case tree.Method():
            return _find_method_reads(node, scope)
        case tree.MapInto(target=target, query=query):
            return _enter_query(_find_reads(target, scope), query, scope)
        case tree.Lambda(name=name, body=body):
            return _find_reads(body, _bind_name(name, scope))
        case tree.Match(subject=subject, cases=cases):
            return _find_match_reads(subject, cases, scope)
        case _:
            return _ReadSet(_find_all_reads(tree.list_children(node), scope))


def _resolve_base(name: str, scope: _Scope) -> tuple[Target, ...]:
    if name == "this":
        return (Target(False, ()),) if scope.this is None else scope.this
    return scope.names.get(name, ())  # `root` is what the mapping makes: nothing that is read


def _extend_paths(targets: tuple[Target, ...], path: tuple[str, ...]) -> tuple[Target, ...]:
    extended = dict.fromkeys(target._replace(path=(*target.path, *path)) for target in targets)
    return tuple(extended)[:_MAX_TARGETS]


def _find_all_reads(nodes: Iterable[tree.Node], scope: _Scope) -> tuple[Target, ...]:
    read = dict.fromkeys(target for node in nodes for target in _find_reads(node, scope).read)
    return tuple(read)[:_MAX_TARGETS]


def _enter_query(target: _ReadSet, query: tree.Node, scope: _Scope) -> _ReadSet:
    inner = _find_reads(query, scope.with_this(target.read))
    return _ReadSet((*target.read, *inner.read), inner.value)


def _bind_name(name: str, scope: _Scope) -> _Scope:
    """Give `this` a name, and let `this` be what it was around."""
    named = (Target(False, ()),) if scope.this is None else scope.this
    names = scope.names if name == "_" else {**scope.names, name: named}
    if not scope.before:
        return replace(scope, names=names)
    return replace(scope, names=names, this=scope.before[0], before=scope.before[1:])


def _find_match_reads(
    subject: tree.Node | None, cases: list[tuple[tree.Node | None, tree.Node]], scope: _Scope
) -> _ReadSet:
    subject_reads = () if subject is None else _find_reads(subject, scope).read
    inner = scope if subject is None else scope.with_this(subject_reads)
    nodes = [part for case in cases for part in case if part is not None]
    return _ReadSet((*_find_all_reads(nodes, inner), *subject_reads))


def _find_call_reads(node: tree.Call, scope: _Scope) -> _ReadSet:
    arguments: list[BoundArgument] = node.bound.arguments
    first = arguments[0] if arguments else None
    if node.name == "json" or node.name in _METADATA_FUNCTIONS:
        if isinstance(first, DynamicArgument):
            return _ReadSet(_find_dynamic_reads(arguments, scope))
        text = first.value if isinstance(first, StaticArgument) and first.value else ""
        path = split_path(text) if node.name == "json" and text else (text,) if text else ()
        targets = (Target(node.name != "json", path),)
        return _ReadSet(targets, targets)
    return _ReadSet(_find_dynamic_reads(arguments, scope))


def _find_method_reads(node: tree.Method, scope: _Scope) -> _ReadSet:
    target = _find_reads(node.target, scope)
    arguments: list[BoundArgument] = node.bound.arguments
    first = arguments[0] if arguments else None
    if node.name == "map" and isinstance(first, QueryArgument):
        return _enter_query(target, first.node, scope)
    if node.name == "apply" and isinstance(first, StaticArgument) and first.value in scope.maps:
        return _find_map_reads(target, first.value, scope)
    read = (*target.read, *_find_dynamic_reads(arguments, scope))
    if node.name in _SAME_CONTEXT_METHODS:
        nodes = [argument.node for argument in arguments if isinstance(argument, QueryArgument)]
        read = (*read, *_find_all_reads(nodes, scope))
    return _ReadSet(tuple(dict.fromkeys(read)), target.value)


def _find_map_reads(target: _ReadSet, name: str, scope: _Scope) -> _ReadSet:
    if name in scope.within:
        return target
    inner = replace(_Scope(scope.maps).with_this(target.read), within=scope.within | {name})
    read = tuple(_iterate_reads(scope.maps[name].body, inner))
    return _ReadSet(tuple(dict.fromkeys((*target.read, *read))))


def _find_dynamic_reads(arguments: Iterable[BoundArgument], scope: _Scope) -> tuple[Target, ...]:
    return _find_all_reads(
        [one.node for one in arguments if isinstance(one, DynamicArgument)], scope
    )
