"""Arguments of a call matched with the parameters, as Benthos does it and says it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from streamer.bloblang import tree
from streamer.bloblang.declare import REQUIRED, Declaration, Param
from streamer.bloblang.errors import ArgumentError
from streamer.bloblang.runtime.arguments import CONVERTERS


@dataclass(slots=True)
class StaticArgument:
    """An argument whose value is known when the mapping is read."""

    value: Any


@dataclass(slots=True)
class DynamicArgument:
    """An argument that is evaluated for every call."""

    node: tree.Node
    param: Param


@dataclass(slots=True)
class QueryArgument:
    """An argument that the function evaluates itself, once it has a value for `this`."""

    node: tree.Node


BoundArgument = StaticArgument | DynamicArgument | QueryArgument


@dataclass(slots=True)
class CallBinding:
    """A call's declaration with an argument for every parameter."""

    declaration: Declaration
    arguments: list[BoundArgument]

    def is_static(self) -> bool:
        """Whether every argument is known when the mapping is read."""
        return all(isinstance(argument, StaticArgument) for argument in self.arguments)

    def map_nodes(self, change: Callable[[tree.Node], tree.Node]) -> CallBinding:
        """Return a copy with what a function returns for each node in the node's place."""
        arguments = [
            a if isinstance(a, StaticArgument) else replace(a, node=change(a.node))
            for a in self.arguments
        ]
        return CallBinding(self.declaration, arguments)


def bind_arguments(
    declaration: Declaration, arguments: list[tree.Argument], json_numbers: bool = True
) -> CallBinding:
    """Match the arguments of one call with its parameters, and convert those that are known.

    Args:
        declaration: what is called.
        arguments: the arguments.
        json_numbers: whether the numbers of a message are text to Go, as those of JSON are.

    Raises:
        ArgumentError: too many, missing, unknown or mistyped arguments, in Benthos's words.
    """
    by_name = match_parameters(declaration, arguments)
    if declaration.variadic:
        keeps_number_text = json_numbers and declaration.name == "format"
        return CallBinding(
            declaration,
            [_bind_variadic(i, a.value, keeps_number_text) for i, a in enumerate(arguments)],
        )
    return CallBinding(
        declaration, [_bind_parameter(p, by_name.get(p.name)) for p in declaration.params]
    )


def match_parameters(
    declaration: Declaration, arguments: list[tree.Argument]
) -> dict[str, tree.Node]:
    """Return the arguments of one call by their parameter's name; none for a variadic one.

    Raises:
        ArgumentError: too many, missing or unknown arguments.
    """
    named = [argument for argument in arguments if argument.name is not None]
    by_name = _index_by_name(named)
    if named and len(named) < len(arguments):
        raise ArgumentError("cannot mix named and nameless arguments")
    if declaration.variadic:
        if named:
            raise ArgumentError("named arguments are not supported")
        return {}
    by_name = by_name if named else _index_by_position(declaration, arguments)
    for param in declaration.params:  # one of the wrong type is told of before one that lacks
        if param.name in by_name:
            _bind_parameter(param, by_name[param.name])
    missing = [p.name for p in declaration.params if p.name not in by_name and _is_required(p)]
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


def _is_required(param: Param) -> bool:
    return param.default is REQUIRED


def _index_by_name(arguments: list[tree.Argument]) -> dict[str, tree.Node]:
    nodes: dict[str, tree.Node] = {}
    for argument in arguments:
        name = argument.name or ""
        if name in nodes:
            raise ArgumentError(f"duplicate named arg: {name}")
        nodes[name] = argument.value
    return nodes


def _index_by_position(
    declaration: Declaration, arguments: list[tree.Argument]
) -> dict[str, tree.Node]:
    params = declaration.params
    if len(arguments) > len(params):
        raise ArgumentError(
            f"wrong number of arguments, expected {len(params)}, got {len(arguments)}"
        )
    return {param.name: arguments[i].value for i, param in enumerate(params[: len(arguments)])}


def _bind_variadic(place: int, node: tree.Node, keeps_number_text: bool) -> BoundArgument:
    if isinstance(node, tree.Literal):
        return StaticArgument(node.value)
    # `format` tells a number of the document, which is still text to Go, from a computed one.
    spelled = keeps_number_text and isinstance(node, tree.Path) and node.base != "root"
    return DynamicArgument(node, Param(str(place), "spelled" if spelled else "any"))


def _bind_parameter(param: Param, node: tree.Node | None) -> BoundArgument:
    if node is None:
        return StaticArgument(param.default)
    if param.type == "query":
        if isinstance(node, tree.Literal) and not param.scalars:
            # A literal stands for itself, as a query that ignores its context.
            return QueryArgument(node)
        return QueryArgument(node)
    if isinstance(node, tree.Literal):
        try:
            return StaticArgument(CONVERTERS[param.type](node.value))
        except ArgumentError as e:
            raise ArgumentError(f"field {param.name}: {e}") from None
    # A bare node is any expression: who words syntax errors makes no tree.
    if param.literal and type(node) is not tree.Node:
        raise ArgumentError(f"param {param.name} must not be dynamic")
    return DynamicArgument(node, param)
