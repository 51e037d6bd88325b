"""Warnings of what can never work in a mapping that can be read: Benthos finds it at run time.

Each message would fail with it, or the part has no effect but to be caught.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from streamer.bloblang import tree
from streamer.bloblang.arguments import QueryArgument, StaticArgument
from streamer.bloblang.errors import QueryError
from streamer.bloblang.functions.general import counter
from streamer.bloblang.interpolation import Interpolation
from streamer.bloblang.mapping import Mapping
from streamer.core.execution import Execution
from streamer.core.value import INT64_MAX


@dataclass(frozen=True, slots=True)
class StaticWarning:
    """One part of a mapping that can never work.

    Attributes:
        line: 1-based line within the text.
        column: 1-based column within the line.
        message: what fails, and why.
        suggestion: what to do, or an empty string.
    """

    line: int
    column: int
    message: str
    suggestion: str = ""


def find_static_warnings(
    mapping: Mapping | Interpolation, variables: Iterable[str] = ()
) -> Iterator[StaticWarning]:
    """Return what can never work in a mapping or an interpolated string, in no certain order.

    Args:
        mapping: what is looked at.
        variables: those that are set before the mapping runs.
    """
    if isinstance(mapping, Interpolation):
        finder = _WarningFinder(
            frozenset(), "an interpolation has no variables; metadata goes with a message"
        )
        for query in mapping.queries:
            yield from finder.check_node(query)
        return
    if mapping.text.lstrip().startswith("from "):
        return  # What it says stands in another file.
    maps = mapping.program.maps
    main_finder = _WarningFinder(frozenset(maps))
    main_finder.known_variables.update(variables)
    yield from _find_foreign_constants(mapping)
    yield from main_finder.check_body(mapping.program.statements)
    if "import" in mapping.text:
        return  # Places in maps of other files are none of this text.
    for named in maps.values():
        yield from _WarningFinder(
            frozenset(maps), _VARIABLE_HINT_IN_MAP, main_finder.known_variables
        ).check_body(named.body)


_FOREIGN_CONSTANTS: Final = {
    **dict.fromkeys(("None", "nil", "NULL", "Null", "undefined"), "null"),
    **dict.fromkeys(("True", "TRUE"), "true"),
    **dict.fromkeys(("False", "FALSE"), "false"),
}
"""Constants of other languages, which are fields of the message here."""


def _find_foreign_constants(mapping: Mapping | Interpolation) -> Iterator[StaticWarning]:
    if not isinstance(mapping, Mapping):
        return
    lines = mapping.text.split("\n")
    for statement in mapping.program.statements:
        for part in tree.walk(statement):
            if not isinstance(part, tree.Path) or part.base != "this" or len(part.path) != 1:
                continue
            name, place = part.path[0], part.place
            # `this.None` is meant.
            if name in _FOREIGN_CONSTANTS and lines[place.line - 1].startswith(
                name, place.column - 1
            ):
                message = f"{name} is read as a field of the message"
                hint = f"write {_FOREIGN_CONSTANTS[name]}, or this.{name} for the field"
                yield StaticWarning(place.line, place.column, message, hint)


_VARIABLE_HINT_IN_MAP: Final = "a named map has no variables of the mapping that applies it"


class _WarningFinder:
    """A look at one body: the mapping's own, or that of one of its named maps.

    Attributes:
        known_variables: the variables that are set so far.
    """

    def __init__(
        self, maps: frozenset[str], hint: str = "", others: set[str] | None = None
    ) -> None:
        """Take the names of maps, and what to say of variables, or only of certain ones."""
        self._maps = maps
        self._hint = hint
        self._reported_names = others
        self.known_variables: set[str] = set()

    def check_body(self, statements: Iterable[tree.Statement]) -> Iterator[StaticWarning]:
        """Check statements, in order."""
        for statement in statements:
            match statement:
                case tree.Let(name=name, value=value):
                    yield from self.check_node(value)
                    self.known_variables.add(name)
                case tree.Assign(value=value) | tree.AssignMeta(value=value):
                    yield from self.check_node(value)
                case tree.IfStatement(branches=branches):
                    for test, body in branches:
                        if test is not None:
                            yield from self.check_node(test)
                        # A variable that a branch may have set counts: nobody knows better.
                        yield from self.check_body(body)

    def check_node(self, node: tree.Node) -> Iterator[StaticWarning]:
        """Check an expression, and all its parts."""
        for part in tree.walk(node):
            match part:
                case tree.Variable(place=place, name=name) if name not in self.known_variables:
                    about = self._reported_names is None or name in self._reported_names
                    hint = (
                        self._hint
                        if about and self._hint
                        else _suggest_name(name, self.known_variables)
                    )
                    message = f"the variable {name!r} is never set before this"
                    yield StaticWarning(place.line, place.column, message, hint)
                case tree.Method(
                    name="apply", arguments=[tree.Argument(value=tree.Literal() as to)]
                ):
                    if to.value not in self._maps:
                        message = f"there is no map {to.value!r} to apply"
                        hint = _suggest_name(str(to.value), self._maps)
                        yield StaticWarning(to.place.line, to.place.column, message, hint)
                case tree.Call(place=place, name=name) if name in _CALL_CHECKS:
                    problem = _CALL_CHECKS[name](_literal_arguments(part))
                    if problem:
                        yield StaticWarning(place.line, place.column, f"{name}: {problem}")


def _suggest_name(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), 1, 0.6)
    return f"did you mean {close[0]!r}?" if close else ""


def _literal_arguments(call: tree.Call) -> list[Any]:
    """Return the arguments of a call, None for those that only a message has."""
    values: list[Any] = []
    for argument in call.bound.arguments:
        known = argument.node if isinstance(argument, QueryArgument) else argument
        values.append(known.value if isinstance(known, StaticArgument | tree.Literal) else None)
    return values


def _check_counter(arguments: list[Any]) -> str:
    low, high, _ = arguments
    try:
        # Let it count once, from where it surely may begin when only a message knows.
        counter(
            Execution(lambda: 0),
            "",
            lambda _: 0 if low is None else low,
            lambda _: INT64_MAX if high is None else high,
            None,
        )
    except QueryError as e:
        return str(e)
    return ""


_CALL_CHECKS: Final[dict[str, Callable[[list[Any]], str]]] = {"counter": _check_counter}
