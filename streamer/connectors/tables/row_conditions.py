"""Conditions on rows, in the form in which PyArrow and delta-rs take filters: `[n, ">=", 3]`.

A value of a config is converted by the type of its column, as a value of a message would be. All
conditions must hold. A row whose column is null fits none of them but `=` with null, which is
`is null`, and `!=` with null.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyarrow import compute

from streamer.connectors.tables.column_types import TIMESTAMP
from streamer.connectors.tables.column_values import MisfitError, fit_value
from streamer.core.errors import StreamerError

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_IN: Final = "in"
_NOT_IN: Final = "not in"
OPERATORS: Final = (*_COMPARISONS, _IN, _NOT_IN)


class RowCondition(NamedTuple):
    """One condition.

    Attributes:
        column: the column that is compared.
        operator: one of `OPERATORS`.
        value: the value that it is compared with; a sequence for `in` and `not in`.
    """

    column: str
    operator: str
    value: Any


def parse_conditions(rows: Sequence[Sequence[Any]]) -> tuple[RowCondition, ...]:
    """Return the conditions of a config.

    Raises:
        ValueError: one is none; the text continues "the conditions …".

    Example:
        >>> parse_conditions([["n", ">=", 3]])
        (RowCondition(column='n', operator='>=', value=3),)
    """
    conditions = []
    for row in rows:
        if len(row) != 3 or not isinstance(row[0], str):
            raise ValueError(f"has {list(row)}; expected such as [light, =, north]")
        column, sign, value = row
        sign = "=" if sign == "==" else sign
        if sign not in OPERATORS:
            raise ValueError(f"has the operator {sign!r}; expected one of {', '.join(OPERATORS)}")
        is_many = sign in (_IN, _NOT_IN)
        if is_many != isinstance(value, list | tuple):
            expected = "a list of values" if is_many else "one value"
            raise ValueError(f"has {value!r} behind {sign}; expected {expected}")
        if value is None and sign not in ("=", "!="):
            raise ValueError(f"has null behind {sign}; expected a value")
        conditions.append(RowCondition(column, sign, value))
    return tuple(conditions)


def build_expression(
    conditions: Sequence[RowCondition], schema: pa.Schema
) -> compute.Expression | None:
    """Return the conditions as PyArrow takes them; None when there are none.

    Args:
        conditions: the conditions.
        schema: the columns of the table.

    Raises:
        StreamerError: the table has no such column, or a value does not fit its type.
    """
    whole: compute.Expression | None = None
    for condition in conditions:
        if condition.column not in schema.names:
            raise StreamerError(
                f"where has the column {condition.column!r}; the table has the columns "
                f"{', '.join(schema.names)}"
            )
        made = _build_one(condition, schema.field(condition.column).type)
        whole = made if whole is None else whole & made
    return whole


def _build_one(condition: RowCondition, kind: pa.DataType) -> compute.Expression:
    field = compute.field(condition.column)
    if condition.operator in _COMPARISONS:
        if condition.value is None:
            return field.is_null() if condition.operator == "=" else field.is_valid()
        return _COMPARISONS[condition.operator](field, _fit(condition, condition.value, kind))
    values = [_fit(condition, one, kind).as_py() for one in condition.value]
    listed = field.isin(pa.array(values, kind))
    return listed if condition.operator == _IN else ~listed & field.is_valid()


def _fit(condition: RowCondition, value: Any, kind: pa.DataType) -> pa.Scalar:
    plain = kind
    if pa.types.is_timestamp(kind):
        # A message's value fits microseconds, whatever the file has.
        plain = pa.timestamp("us") if kind.tz is None else TIMESTAMP
    try:
        return pa.scalar(fit_value(value, plain), plain).cast(kind)
    except MisfitError as error:
        raise StreamerError(f"the value of where for {condition.column} {error}") from None
