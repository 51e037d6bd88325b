"""Arguments of a call matched with the parameters, as Benthos does it and says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamer.bloblang import tree
from streamer.bloblang.declare import REQUIRED, Declaration, Param
from streamer.bloblang.errors import ArgumentError
from streamer.bloblang.runtime.arguments import CONVERTERS


@dataclass(slots=True)
class Static:
    """An argument whose value is known when the mapping is read."""

    value: Any


@dataclass(slots=True)
class Dynamic:
    """An argument that is evaluated for every call."""

    node: tree.Node
    param: Param


@dataclass(slots=True)
class Query:
    """An argument that the function evaluates itself, once it has a value for `this`."""

    node: tree.Node


Bound = Static | Dynamic | Query


@dataclass(slots=True)
class Binding:
    """A call's declaration with an argument for every parameter."""

    declaration: Declaration
    arguments: list[Bound]

    def all_static(self) -> bool:
        """Whether every argument is known when the mapping is read."""
        return all(isinstance(argument, Static) for argument in self.arguments)


def bind(
    declaration: Declaration, given: list[tree.Argument], json_numbers: bool = True
) -> Binding:
    """Match the arguments of one call with its parameters, and convert those that are known.

    Args:
        declaration: what is called.
        given: the arguments.
        json_numbers: whether the numbers of a message are text to Go, as those of JSON are.

    Raises:
        ArgumentError: too many, missing, unknown or mistyped arguments, in Benthos's words.
    """
    by_name = match_parameters(declaration, given)
    if declaration.variadic:
        spells = json_numbers and declaration.name == "format"
        return Binding(declaration, [_any(i, a.value, spells) for i, a in enumerate(given)])
    return Binding(declaration, [_one(p, by_name.get(p.name)) for p in declaration.params])


def match_parameters(declaration: Declaration, given: list[tree.Argument]) -> dict[str, tree.Node]:
    """Return the arguments of one call by their parameter's name; none for a variadic one.

    Raises:
        ArgumentError: too many, missing or unknown arguments.
    """
    named = [argument for argument in given if argument.name is not None]
    by_name = _by_name(named)
    if named and len(named) < len(given):
        raise ArgumentError("cannot mix named and nameless arguments")
    if declaration.variadic:
        if named:
            raise ArgumentError("named arguments are not supported")
        return {}
    by_name = by_name if named else _by_place(declaration, given)
    for param in declaration.params:  # one of the wrong type is told of before one that lacks
        if param.name in by_name:
            _one(param, by_name[param.name])
    missing = [p.name for p in declaration.params if p.name not in by_name and _required(p)]
    unknown = sorted(by_name.keys() - {p.name for p in declaration.params})
    if unknown:
        hint = f", did you mean {missing[0]}?" if len(missing) == 1 else ""
        hint = f", expected {', '.join(missing)}" if len(missing) > 1 else hint
        plural = "s" if len(unknown) > 1 else ""
        raise ArgumentError(f"unknown parameter{plural} {', '.join(unknown)}{hint}")
    if missing:
        plural = "s" if len(missing) > 1 else ""
        raise ArgumentError(f"missing parameter{plural}: {', '.join(missing)}")
    return by_name


def _required(param: Param) -> bool:
    return param.default is REQUIRED


def _by_name(given: list[tree.Argument]) -> dict[str, tree.Node]:
    found: dict[str, tree.Node] = {}
    for argument in given:
        name = argument.name or ""
        if name in found:
            raise ArgumentError(f"duplicate named arg: {name}")
        found[name] = argument.value
    return found


def _by_place(declaration: Declaration, given: list[tree.Argument]) -> dict[str, tree.Node]:
    params = declaration.params
    if len(given) > len(params):
        raise ArgumentError(f"wrong number of arguments, expected {len(params)}, got {len(given)}")
    return {param.name: given[i].value for i, param in enumerate(params[: len(given)])}


def _any(place: int, node: tree.Node, spells: bool) -> Bound:
    if isinstance(node, tree.Literal):
        return Static(node.value)
    # `format` tells a number of the document, which is still text to Go, from a computed one.
    spelled = spells and isinstance(node, tree.Path) and node.base != "root"
    return Dynamic(node, Param(str(place), "spelled" if spelled else "any"))


def _one(param: Param, node: tree.Node | None) -> Bound:
    if node is None:
        return Static(param.default)
    if param.type == "query":
        if isinstance(node, tree.Literal) and not param.scalars:
            # A literal stands for itself, as a query that ignores its context.
            return Query(node)
        return Query(node)
    if isinstance(node, tree.Literal):
        try:
            return Static(CONVERTERS[param.type](node.value))
        except ArgumentError as e:
            raise ArgumentError(f"field {param.name}: {e}") from None
    if param.literal:
        raise ArgumentError(f"param {param.name} must not be dynamic")
    return Dynamic(node, param)
