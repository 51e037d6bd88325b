"""Values of Avro's logical types, and of those that Kafka Connect's connectors have beside them.

Source: "Logical Types" of Avro's specification; Debezium's documentation of temporal types.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from streamer.connectors.formats.avro_json import LOGICAL, NOT_LOGICAL, LogicalReader
from streamer.core.timestamps import Timestamp, parse_event_time

_MILLI: Final = 1_000_000
_MICRO: Final = 1_000
_DAY: Final = 86_400_000_000_000
_EPOCH_YEAR: Final = 1970
_CONNECT_NAME: Final = "connect.name"

_UNITS: Final[Mapping[str, int]] = {
    "date": _DAY,
    "time-millis": _MILLI,
    "time-micros": _MICRO,
    "timestamp-millis": _MILLI,
    "timestamp-micros": _MICRO,
    "timestamp-nanos": 1,
    "local-timestamp-millis": _MILLI,
    "local-timestamp-micros": _MICRO,
    "local-timestamp-nanos": 1,
}
"""What a whole number of a logical type counts, ns."""

_DEBEZIUM: Final = "io.debezium.time."
_DEBEZIUM_UNITS: Final[Mapping[str, int]] = {
    "Date": _DAY,
    "Time": _MILLI,
    "MicroTime": _MICRO,
    "NanoTime": 1,
    "Timestamp": _MILLI,
    "MicroTimestamp": _MICRO,
    "NanoTimestamp": 1,
}


def make_logical_reader(translates_connect: bool) -> LogicalReader:
    """Return what makes times and numbers of stored values.

    Args:
        translates_connect: whether types of Kafka Connect are known too.
    """

    def read(schema: Mapping[str, Any], value: Any) -> Any:
        made = _read_logical(schema, value)
        if made is NOT_LOGICAL and translates_connect:
            return _read_connect(schema, value)
        return made

    return read


def _read_logical(schema: Mapping[str, Any], value: Any) -> Any:
    kind = schema.get(LOGICAL)
    if kind == "decimal" and isinstance(value, bytes):
        unscaled = int.from_bytes(value, "big", signed=True)
        return _to_number(Decimal(unscaled).scaleb(-int(schema.get("scale", 0))))
    if kind == "duration" and isinstance(value, bytes):
        months, days, millis = (
            int.from_bytes(value[start : start + 4], "little") for start in (0, 4, 8)
        )
        return f"P{months}M{days}DT{millis / 1000:g}S"
    unit = _UNITS.get(str(kind))
    if unit is None or not isinstance(value, int):
        return NOT_LOGICAL
    return Timestamp(value * unit)


def _read_connect(schema: Mapping[str, Any], value: Any) -> Any:
    name = str(schema.get(_CONNECT_NAME, ""))
    if not name.startswith(_DEBEZIUM):
        return NOT_LOGICAL
    kind = name.removeprefix(_DEBEZIUM)
    if kind == "ZonedTimestamp" and isinstance(value, str):
        return Timestamp(parse_event_time(value))
    if not isinstance(value, int):
        return NOT_LOGICAL
    if kind == "Year":
        return Timestamp(_start_of_year(value))
    unit = _DEBEZIUM_UNITS.get(kind)
    return NOT_LOGICAL if unit is None else Timestamp(value * unit)


def _start_of_year(year: int) -> int:
    """Return when a year begins, Unix ns, in the calendar that goes on in both directions."""
    before = year - 1
    leap_days = before // 4 - before // 100 + before // 400
    epoch = _EPOCH_YEAR - 1
    epoch_days = epoch // 4 - epoch // 100 + epoch // 400
    return ((year - _EPOCH_YEAR) * 365 + leap_days - epoch_days) * _DAY


def _to_number(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


def parse_logical(schema: Mapping[str, Any], document: Any) -> Any:
    """Return the stored value of a time that is a text, or of a decimal that is a number.

    Values in their stored form are left to the others.

    Raises:
        ValueError: the text is no time, or the number has more digits than its type.
    """
    kind = str(schema.get(LOGICAL))
    if kind == "decimal" and isinstance(document, int | float) and not isinstance(document, bool):
        return _to_decimal_bytes(schema, document)
    unit = _UNITS.get(kind)
    if unit is None or kind.startswith("time-") or not isinstance(document, str):
        return NOT_LOGICAL
    text = f"{document}T00:00:00Z" if kind == "date" and "T" not in document else document
    return parse_event_time(text) // unit


def _to_decimal_bytes(schema: Mapping[str, Any], number: int | float) -> bytes:
    scale = int(schema.get("scale", 0))
    try:
        scaled = Decimal(str(number)).scaleb(scale)
        unscaled = int(scaled.to_integral_exact())
    except InvalidOperation:
        raise ValueError(f"{number} is no decimal") from None
    if unscaled != scaled:
        raise ValueError(f"{number} has more than {scale} digits behind the point")
    size = schema.get("size") or (unscaled.bit_length() // 8 + 1)
    try:
        return unscaled.to_bytes(int(size), "big", signed=True)
    except OverflowError:
        raise ValueError(f"{number} has more digits than {size} bytes hold") from None
