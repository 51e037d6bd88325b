"""Values of messages as columns of a table: exactly, or not at all.

A value fits a column when nothing of it is lost: 3.0 fits `bigint` and 3.5 does not, an integer
fits `double`, a text fits `timestamp` when it is RFC 3339. Only digits below a microsecond are cut
off, as all table formats do. A text is never taken for a number, nor a number for a text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from streamer.connectors.tables.column_types import TIMESTAMP, is_list_type, name_column_type
from streamer.core.json.dump import dump_json
from streamer.core.timestamps import Timestamp, parse_rfc3339
from streamer.core.value import Number, UInt

_NONE: Final = type(None)
_MAX_SHOWN_CHARACTERS: Final = 60
_INT_BITS: Final = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_NS_PER_US: Final = 1_000
_ALL_DIGITS: Final = Context(prec=76)  # those of a column, where Python takes 28
_EPOCH: Final = datetime(1970, 1, 1)
_PLAIN_TIME_LENGTH: Final = len("2026-01-01T00:00:00Z")

_DIRECT_KINDS: Final[tuple[tuple[Callable[[pa.DataType], bool], frozenset[type]], ...]] = (
    (pa.types.is_signed_integer, frozenset({int, UInt, _NONE})),
    (pa.types.is_floating, frozenset({float, _NONE})),
    (pa.types.is_string, frozenset({str, _NONE})),
    (pa.types.is_large_string, frozenset({str, _NONE})),
    (pa.types.is_boolean, frozenset({bool, _NONE})),
)
"""Types of Python that Arrow takes for a column as they are."""


class MisfitError(ValueError):
    """A value that a column cannot have; the text continues the name of the field."""


def build_column(
    values: Sequence[Any], kind: pa.DataType
) -> tuple[pa.Array, Mapping[int, MisfitError]]:
    """Return a column, and why some values do not fit, by their places; these are null in it.

    Args:
        values: a value of each message, as Bloblang has it; None for null, and for no value.
        kind: the type of the column.
    """
    direct = next((kinds for is_kind, kinds in _DIRECT_KINDS if is_kind(kind)), None)
    if direct is not None and direct.issuperset(map(type, values)):
        try:
            return pa.array(values, kind), {}
        except (pa.ArrowException, OverflowError, UnicodeEncodeError):
            pass  # One of them does not fit; which one is found below.
    elif kind == TIMESTAMP and all(map(_is_plain_time, values)):
        try:
            return pa.array(values, pa.string()).cast(kind), {}
        except (pa.ArrowException, UnicodeEncodeError):
            pass
    fitted: list[Any] = []
    errors: dict[int, MisfitError] = {}
    for index, value in enumerate(values):
        try:
            fitted.append(fit_value(value, kind))
        except MisfitError as error:
            errors[index] = error
            fitted.append(None)
    return pa.array(fitted, kind), errors


def has_direct_type(kind: pa.DataType) -> bool:
    """Return whether Arrow takes values of Python for a column of a type as they are."""
    return any(is_kind(kind) for is_kind, _ in _DIRECT_KINDS)


def build_direct_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    """Return a column whose values have its very type; None where one of them has another.

    Other than `build_column`, it takes no value of another type that would fit, such as 3.0 for
    `bigint`.
    """
    kinds = next((kinds for is_kind, kinds in _DIRECT_KINDS if is_kind(kind)), None)
    if kinds is None or not kinds.issuperset(map(type, values)):
        return None
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return None


def _is_plain_time(value: Any) -> bool:
    """Return whether a value is null, or looks like a time in whole seconds of UTC."""
    return value is None or (
        type(value) is str and len(value) == _PLAIN_TIME_LENGTH and value[10] + value[-1] == "TZ"
    )


def fit_value(value: Any, kind: pa.DataType) -> Any:
    """Return a value as Arrow takes it for a column.

    Raises:
        MisfitError: it does not fit.
    """
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return _fit_struct(value, kind)
    if pa.types.is_map(kind):
        if not isinstance(value, dict):
            raise _misfit(value, kind)
        return [(key, _fit_inside(one, kind.item_type, key)) for key, one in value.items()]
    if is_list_type(kind):
        if not isinstance(value, list):
            raise _misfit(value, kind)
        return [_fit_inside(one, kind.value_type, str(at)) for at, one in enumerate(value)]
    for is_kind, fit in _FITS:
        if is_kind(kind):
            return fit(value, kind)
    raise MisfitError(f"has a column of the type {name_column_type(kind)}, which nothing fits")


def _misfit(value: Any, kind: pa.DataType) -> MisfitError:
    if isinstance(value, date):
        shown = value.isoformat()
    elif isinstance(value, Decimal):
        shown = str(value)
    else:
        try:
            shown = dump_json(value).decode("utf-8", "replace")
        except RecursionError:
            shown = "a value that is nested very deeply"
    if len(shown) > _MAX_SHOWN_CHARACTERS:
        shown = f"{shown[:_MAX_SHOWN_CHARACTERS]}…"
    return MisfitError(f"is {shown}, which does not fit its column, {name_column_type(kind)}")


def _fit_inside(value: Any, kind: pa.DataType, name: str) -> Any:
    try:
        return fit_value(value, kind)
    except MisfitError as error:
        text = str(error)
        joint = "" if text.startswith(".") else " "
        raise MisfitError(f".{name}{joint}{text}") from None


def _fit_struct(value: Any, kind: pa.DataType) -> Any:
    if not isinstance(value, dict):
        raise _misfit(value, kind)
    fields = {field.name: field.type for field in kind}
    if unknown := [name for name, one in value.items() if name not in fields and one is not None]:
        raise MisfitError(f".{unknown[0]} is no field of its column, {name_column_type(kind)}")
    return {
        name: _fit_inside(one, fields[name], name) for name, one in value.items() if name in fields
    }


def _fit_int(value: Any, kind: pa.DataType) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _misfit(value, kind)
    number = value if not isinstance(value, Number) else _read_integer(value)
    if isinstance(number, float):
        if not number.is_integer():
            raise _misfit(value, kind)
        number = int(number)
    if not -(1 << (_INT_BITS[kind] - 1)) <= number < 1 << (_INT_BITS[kind] - 1):
        raise _misfit(value, kind)
    return number


def _read_integer(number: Number) -> int | float:
    """Return a number with all digits that it is written with, where it is an integer."""
    return int(number.text) if number.text.lstrip("-").isdecimal() else float(number)


def _fit_float(value: Any, kind: pa.DataType) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _misfit(value, kind)
    try:
        return float(value)
    except OverflowError:
        raise _misfit(value, kind) from None


def _fit_bool(value: Any, kind: pa.DataType) -> bool:
    if not isinstance(value, bool):
        raise _misfit(value, kind)
    return value


def _fit_string(value: Any, kind: pa.DataType) -> str:
    if isinstance(value, Timestamp):
        return str(value)
    if not isinstance(value, str):
        raise _misfit(value, kind)
    return _encode(value, kind).decode()


def _fit_binary(value: Any, kind: pa.DataType) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise _misfit(value, kind)
    return _encode(value, kind)


def _encode(value: str, kind: pa.DataType) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise _misfit(value, kind) from None


def _fit_timestamp(value: Any, kind: pa.DataType) -> int:
    if isinstance(value, Timestamp):
        return value.ns // _NS_PER_US
    if isinstance(value, datetime):
        # Of another column of Arrow, whose type was inferred.
        return (value.replace(tzinfo=None) - _EPOCH) // timedelta(microseconds=1)
    if not isinstance(value, str):
        raise _misfit(value, kind)
    try:
        # One without a zone is local, so the column gets the time on the clock.
        stamp = parse_rfc3339(value if kind == TIMESTAMP else f"{value.rstrip('Z')}Z")
    except ValueError:
        raise _misfit(value, kind) from None
    return stamp.ns // _NS_PER_US


def _fit_date(value: Any, kind: pa.DataType) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if not isinstance(value, str) or len(value) != len("2026-01-01"):
        raise _misfit(value, kind)
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise _misfit(value, kind) from None


def _fit_decimal(value: Any, kind: pa.DataType) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise _misfit(value, kind)
    try:
        number = Decimal(value.text if isinstance(value, Number) else str(value))
        quantised = number.quantize(Decimal(1).scaleb(-kind.scale), context=_ALL_DIGITS)
    except InvalidOperation:
        raise _misfit(value, kind) from None
    if quantised != number or len(quantised.as_tuple().digits) > kind.precision:
        raise _misfit(value, kind)
    return quantised


_FITS: Final[Sequence[tuple[Callable[[pa.DataType], bool], Callable[[Any, pa.DataType], Any]]]] = (
    (pa.types.is_signed_integer, _fit_int),
    (pa.types.is_floating, _fit_float),
    (pa.types.is_boolean, _fit_bool),
    (pa.types.is_string, _fit_string),
    (pa.types.is_large_string, _fit_string),
    (pa.types.is_binary, _fit_binary),
    (pa.types.is_large_binary, _fit_binary),
    (pa.types.is_timestamp, _fit_timestamp),
    (pa.types.is_date32, _fit_date),
    (pa.types.is_decimal, _fit_decimal),
)
