"""Mappings that only drop messages, by the values of a few fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from streamer.bloblang import tree
from streamer.bloblang.arguments import StaticArgument
from streamer.bloblang.mapping import Mapping
from streamer.bloblang.runtime.paths import split_path
from streamer.core.value import DELETED, NOTHING

Path = tuple[str, ...]


class LineFilter(NamedTuple):
    """A mapping that leaves a message as it is, or drops it.

    Attributes:
        paths: the fields that decide.
        is_kept: returns for a document whether it is kept; None if that cannot be said, because the
            mapping fails.
    """

    paths: tuple[Path, ...]
    is_kept: Callable[[Any], bool | None]


class _Unsuitable(Exception):
    """An expression depends on something else."""


def find_line_filter(mapping: Mapping) -> LineFilter | None:
    """Return a mapping as a filter by fields; None if it is more.

    `root = if this.level == "debug" { deleted() }` is one, with any conditions of fields, literals,
    operators, and methods with literal arguments.
    """
    decide = mapping.doc_fn
    if decide is None or mapping.only_index is not None or len(mapping.program.statements) != 1:
        return None
    statement = mapping.program.statements[0]
    if not isinstance(statement, tree.Assign) or statement.path:
        return None
    value = statement.value
    if not isinstance(value, tree.If):
        return None
    results = [then for _, then in value.branches]
    if value.otherwise is not None:
        results.append(value.otherwise)
    if not all(isinstance(one, tree.Literal) and one.value is DELETED for one in results):
        return None
    try:
        paths = tuple(dict.fromkeys(path for test, _ in value.branches for path in _paths(test)))
    except _Unsuitable:
        return None

    def is_kept(document: Any) -> bool | None:
        try:
            result = decide(document)
        except Exception:  # whatever it is: the message meets it again, and it is reported then
            return None
        return {id(DELETED): False, id(NOTHING): True}.get(id(result))

    return LineFilter(paths, is_kept) if paths else None


def _paths(node: tree.Node) -> Iterator[Path]:
    """Return the fields that an expression reads; raises `_Unsuitable`."""
    match node:
        case tree.Literal():
            return
        case tree.Path(base="this", path=path) if path and "*" not in path:
            yield path
        case tree.Call(name="json", bound=bound):
            argument = bound.arguments[0]
            if not isinstance(argument, StaticArgument) or not argument.value:
                raise _Unsuitable
            path = tuple(split_path(argument.value))
            if "*" in path:
                raise _Unsuitable
            yield path
        case tree.Method(target=target, bound=bound):
            declaration = bound.declaration
            arguments_are_literals = all(isinstance(a, StaticArgument) for a in bound.arguments)
            if declaration.uses or declaration.needs or not arguments_are_literals:
                raise _Unsuitable
            yield from _paths(target)
        case tree.Not() | tree.Binary() | tree.Chain() | tree.Brackets():
            for child in tree.list_children(node):
                yield from _paths(child)
        case _:
            raise _Unsuitable
