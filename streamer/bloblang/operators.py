"""Precedence of operators, as Benthos has it, and literals combined when they are read.

`*`, `/`, `%` and the coalescing `|` bind strongest and are on one level; then `+` and `-`; then the
comparisons; then `&&` and `||`, again on one level. Everything is evaluated from left to right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from streamer.bloblang import tree
from streamer.bloblang.annotations import describe_expression
from streamer.bloblang.errors import BloblangError, DivideByZeroError, OperandMismatch, QueryError
from streamer.bloblang.golib import operations

BINARY_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operations.add,
    "-": operations.subtract,
    "*": operations.multiply,
    "/": operations.divide,
    "%": operations.modulo,
    "==": operations.is_equal,
    "!=": operations.is_not_equal,
    "<": operations.is_less,
    "<=": operations.is_less_or_equal,
    ">": operations.is_greater,
    ">=": operations.is_greater_or_equal,
}

_PRECEDENCE_LEVELS: Final = (("*", "/", "%", "|"), ("+", "-"), ("==", "!=", "<", "<=", ">", ">="))


def arrange_operands(operands: list[tree.Node], signs: list[str], place: tree.Place) -> tree.Node:
    """Turn a flat list of operands and operators, which begins at a place, into a tree."""
    for level in _PRECEDENCE_LEVELS:
        left, remaining = [operands[0]], []
        for sign, operand in zip(signs, operands[1:], strict=True):
            if sign in level:
                left[-1] = _join_operands(sign, left[-1], operand, place)
            else:
                left.append(operand)
                remaining.append(sign)
        operands, signs = left, remaining
    if len(operands) == 1:
        return operands[0]
    return tree.Chain(place, signs, operands)


def _join_operands(sign: str, left: tree.Node, right: tree.Node, place: tree.Place) -> tree.Node:
    if sign != "|":
        return tree.Binary(place, sign, left, right)
    if isinstance(left, tree.Chain) and left.operators[0] == "|":
        return tree.Chain(place, [*left.operators, "|"], [*left.operands, right])
    return tree.Chain(place, ["|"], [left, right])


def resolve_binary(node: tree.Binary, left: tree.Node, right: tree.Node) -> tree.Node:
    """Combine two resolved operands; two literals are computed at once, as Benthos does.

    Raises:
        BloblangError: the operator cannot combine the literals.
    """
    place, sign = node.place, node.operator
    if not (isinstance(left, tree.Literal) and isinstance(right, tree.Literal)):
        return tree.Binary(place, sign, left, right)
    try:
        return tree.Literal(
            place, BINARY_OPERATORS[sign](left.value, right.value), describe_expression(right)
        )
    except OperandMismatch as e:
        message = e.describe(describe_expression(left), describe_expression(right))
    except DivideByZeroError as e:
        message = f"{describe_expression(right)}: {e}"
    except QueryError as e:
        message = str(e)
    raise BloblangError(place.line, place.column, message)
