"""Values of columns: made of what a mapping gives, and written as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final
from uuid import UUID

from streamer.core.durations import SECOND
from streamer.core.errors import MessageError
from streamer.core.json.dump import dump_json
from streamer.core.timestamps import format_rfc3339, parse_event_time

_NS_PER_MS: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FLOAT_TYPES: Final = frozenset({"float", "double"})
_INT_TYPES: Final = frozenset({"tinyint", "smallint", "int", "bigint", "varint", "counter"})
_TEXT_TYPES: Final = frozenset({"text", "varchar", "ascii"})
_UUID_TYPES: Final = frozenset({"uuid", "timeuuid"})
_LIST_TYPES: Final = frozenset({"list", "set", "vector"})


def bind_values(statement: Any, values: list[Any]) -> Any:
    """Return a prepared statement with its arguments.

    Args:
        statement: the driver's prepared statement.
        values: those of a mapping, one for each placeholder.

    Raises:
        MessageError: their number is wrong, or one does not fit its column.
    """
    columns = statement.column_metadata or ()
    if len(values) != len(columns):
        raise MessageError(
            f"the mapping gives {len(values)} arguments, and the query has {len(columns)}"
        )
    bound = []
    for column, value in zip(columns, values, strict=True):
        try:
            bound.append(convert_value(column.type, value))
        except (ValueError, TypeError, OverflowError, InvalidOperation) as error:
            raise MessageError(
                f"column {column.name} is {column.type.typename}, which {value!r:.50} is not: "
                f"{error}"
            ) from None
    try:
        return statement.bind(bound)
    except Exception as error:
        # The driver raises what packing raises: struct.error, TypeError, its own.
        raise MessageError(f"the arguments fit no row: {error}") from None


def convert_value(column_type: Any, value: Any) -> Any:
    """Return a value of a mapping as the driver takes it for a type.

    Raises:
        ValueError: it does not fit, as TypeError and OverflowError say too.
    """
    name = column_type.typename
    if value is None:
        return None
    if name in ("frozen", "reversed"):
        return convert_value(column_type.subtypes[0], value)
    if name == "timestamp":
        return _to_milliseconds(value)
    if name in _TEXT_TYPES:
        return value if isinstance(value, str) else _to_text(value)
    if name in _FLOAT_TYPES:
        return float(value)
    if name in _INT_TYPES:
        return _to_int(value)
    if name in _UUID_TYPES:
        return UUID(value) if isinstance(value, str) else value
    if name == "decimal":
        return Decimal(str(value))
    if name == "blob":
        return value if isinstance(value, bytes) else str(value).encode()
    if name in _LIST_TYPES:
        if not isinstance(value, list | tuple):
            raise ValueError("expected an array")
        items = [convert_value(column_type.subtypes[0], one) for one in value]
        return set(items) if name == "set" else items
    if name == "map":
        if not isinstance(value, Mapping):
            raise ValueError("expected an object")
        of_key, of_value = column_type.subtypes
        return {
            convert_value(of_key, key): convert_value(of_value, one) for key, one in value.items()
        }
    if name == "tuple":
        pairs = zip(column_type.subtypes, value, strict=True)
        return tuple(convert_value(one, inner) for one, inner in pairs)
    return value


def _to_milliseconds(value: Any) -> int:
    """Return the milliseconds of a text of RFC 3339, of a time, or of seconds."""
    return parse_event_time(value) // _NS_PER_MS


def _to_text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else dump_json(value).decode()


def _to_int(value: Any) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("expected a whole number")
    return int(value)


def dump_row(row: Mapping[str, Any]) -> bytes:
    """Return a row as a document of JSON."""
    return dump_json({name: _to_plain(value) for name, value in row.items()})


def _to_plain(value: Any) -> Any:
    """Return a value of the driver as one of JSON."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, datetime):
        return _format_time(value)
    if isinstance(value, Mapping) or hasattr(value, "items"):
        return {_to_key(key): _to_plain(one) for key, one in value.items()}
    if hasattr(value, "_asdict"):
        return {name: _to_plain(one) for name, one in value._asdict().items()}
    if isinstance(value, Decimal | UUID | IPv4Address | IPv6Address | date | timedelta):
        return str(value)
    if hasattr(value, "nanosecond_time"):
        return value.nanosecond_time
    try:
        return [_to_plain(one) for one in value]
    except TypeError:
        return str(value)


def _format_time(value: datetime) -> str:
    since = value.replace(tzinfo=UTC) - _EPOCH
    return format_rfc3339(
        (since.days * 86_400 + since.seconds) * SECOND + since.microseconds * 1_000
    )


def _to_key(key: Any) -> str:
    plain = _to_plain(key)
    return plain if isinstance(plain, str) else dump_json(plain).decode()
