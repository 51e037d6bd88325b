"""Functions and methods of mappings that other packages provide, by their entry points.

A package names each in the group of components:

    [project.entry-points."streamer.components"]
    "bloblang_method.shout" = "streamer_shout.mappings:shout"

Nothing of a package is imported before a mapping calls what it has, or something lists all.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from streamer.bloblang.catalog import FUNCTIONS, METHODS
from streamer.bloblang.declare import Declaration
from streamer.bloblang.errors import QueryError
from streamer.bloblang.extension import CallKind
from streamer.bloblang.python_functions import FunctionError, declare_python, read_marks
from streamer.core.entry_points import GROUP, find_plugin_distributions

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PREFIX: Final = "bloblang_"
"""What the name of an entry point of a function or method begins with."""

_MAX_REASON_CHARACTERS: Final = 300
_KINDS: Final[tuple[CallKind, ...]] = ("function", "method")


class FunctionEntry(NamedTuple):
    """An entry point that names a function or method.

    Attributes:
        kind: which of both.
        name: as mappings write it.
        distribution: the package that has it, and its version.
        point: the entry point.
    """

    kind: CallKind
    name: str
    distribution: str
    point: EntryPoint


class PluginFunction(NamedTuple):
    """A function or method of another package.

    Attributes:
        kind: which of both.
        declaration: what the compiler knows about it.
        distribution: the package that has it, and its version.
    """

    kind: CallKind
    declaration: Declaration
    distribution: str


class FunctionIndex(NamedTuple):
    """The functions and methods of other packages.

    Attributes:
        entries: those that may be loaded, by kind and name.
        problems: the reasons why others are left out, by kind and name.
    """

    entries: Mapping[tuple[CallKind, str], FunctionEntry]
    problems: Mapping[tuple[CallKind, str], str]


@cache
def read_function_index() -> FunctionIndex:
    """Return what installed packages provide; read once in a process, nothing is imported."""
    by_name: dict[tuple[CallKind, str], list[FunctionEntry]] = {}
    for distribution in find_plugin_distributions():
        source = f"{distribution.metadata['Name']} {distribution.version}"
        for point in distribution.entry_points:
            word, _, name = point.name.partition(".")
            kind = cast(CallKind, word.removeprefix(PREFIX))
            if point.group == GROUP and word.startswith(PREFIX) and kind in _KINDS:
                entry = FunctionEntry(kind, name, source, point)
                by_name.setdefault((kind, name), []).append(entry)
    problems: dict[tuple[CallKind, str], str] = {}
    for key, entries in list(by_name.items()):
        if reason := _find_name_problem(entries):
            problems[key] = reason
            del by_name[key]
    return FunctionIndex({key: one[0] for key, one in by_name.items()}, problems)


def _find_name_problem(entries: list[FunctionEntry]) -> str:
    kind, name = entries[0].kind, entries[0].name
    sources = " and ".join(sorted(entry.distribution for entry in entries))
    if name in (FUNCTIONS if kind == "function" else METHODS):
        return (
            f"bloblang {kind} {name!r} of {sources} is left out: Bloblang has one of that name "
            "itself, which stays"
        )
    if len(entries) > 1:
        return (
            f"bloblang {kind} {name!r} is left out: {sources} both provide it, and neither has "
            "precedence; uninstall all but one"
        )
    return ""


def find_plugin_function(kind: CallKind, name: str) -> PluginFunction | None:
    """Return a function or method of an installed package, imported; None when there is none.

    Raises:
        QueryError: it is there, and is left out; the text has the reason.
    """
    index = read_function_index()
    if (kind, name) in index.problems and name not in (*FUNCTIONS, *METHODS):
        raise QueryError(index.problems[kind, name])
    entry = index.entries.get((kind, name))
    if entry is None:
        return None
    loaded = _load_entry(entry)
    if isinstance(loaded, str):
        raise QueryError(loaded)
    return loaded


def list_plugin_functions() -> tuple[list[PluginFunction], list[str]]:
    """Return all that can be loaded, by kind and name, and the reasons why others cannot."""
    index = read_function_index()
    loaded = [_load_entry(index.entries[key]) for key in sorted(index.entries)]
    bad = [one for one in loaded if isinstance(one, str)]
    return [one for one in loaded if not isinstance(one, str)], [*index.problems.values(), *bad]


def forget_plugin_functions() -> None:
    """Forget what is known, for a process in which packages come and go."""
    read_function_index.cache_clear()
    _load_entry.cache_clear()


_lock: Final = threading.Lock()


@cache
def _load_entry(entry: FunctionEntry) -> PluginFunction | str:
    """Return what an entry point refers to, or the reason why it is left out."""
    of = f"bloblang {entry.kind} {entry.name!r} of the package {entry.distribution}"
    with _lock:
        try:
            target = entry.point.load()
        except (Exception, SystemExit) as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())[:_MAX_REASON_CHARACTERS]
            return f"{of} is left out: it cannot be imported: {text}"
    for mark in read_marks(target):
        if (mark.kind, mark.name) == (entry.kind, entry.name):
            try:
                declaration = declare_python(mark, target, _describe_error)
            except FunctionError as error:
                return f"{of} is left out: {error}"
            return PluginFunction(entry.kind, declaration, entry.distribution)
    return (
        f"{of} is left out: its entry point refers to no function with the decorator "
        f"bloblang_{entry.kind} of streamer.sdk and this name"
    )


def _describe_error(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
