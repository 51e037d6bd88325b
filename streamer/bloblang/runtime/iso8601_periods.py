"""ISO 8601 durations (`P1Y2M3DT4H5M6S`): added to a date, or as nanoseconds.

Source: github.com/rickb777/period, the library that Benthos uses; its words for what is wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Final

from streamer.bloblang.errors import ArgumentError
from streamer.bloblang.golib.operations import wrap_int64
from streamer.bloblang.golib.zones import at_zone, from_local, get_year_shift, load_zone, to_local
from streamer.core.timestamps import SECOND, Timestamp

_FIELD: Final = re.compile(r"(-?[0-9.,]*)(.?)", re.DOTALL)
# Billionths of a day: the library counts years and months by the calendar's average.
_BILLIONTHS_OF_DAY: Final = {"Y": 365_242_500_000, "M": 30_436_875_000, "W": 7 * 10**9, "D": 10**9}
_UNIT_NS: Final = {"H": 3600 * SECOND, "m": 60 * SECOND, "S": SECOND}
_CYCLE_DAYS: Final = 146_097  # days in 400 years
_LAST_DAY: Final = date(9999, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Period:
    """A duration: numbers by their designator, `m` standing for minutes."""

    fields: dict[str, Decimal]
    negative: bool

    def _clock_ns(self) -> int:
        return wrap_int64(
            sum(int(self.fields.get(unit, 0) * size) for unit, size in _UNIT_NS.items())
        )

    def to_nanoseconds(self) -> int:
        """Return the period as nanoseconds, years and months by their average."""
        days = sum(
            int(self.fields.get(unit, 0) * size) for unit, size in _BILLIONTHS_OF_DAY.items()
        )
        total = days * 86_400 + self._clock_ns()
        return wrap_int64(-total if self.negative else total)

    def add_to(self, moment: Timestamp, sign: int) -> Timestamp:
        """Return a timestamp moved by the period in its own zone; a day too far flows over."""
        calendar = [self.fields.get(unit, Decimal()) for unit in "YMWD"]
        if not any(calendar) or any(number % 1 for number in calendar):
            return _at_instant(moment, moment.ns + sign * self.to_nanoseconds())
        sign = -sign if self.negative else sign
        years, months, weeks, days = (int(number) * sign for number in calendar)
        when = to_local(moment)
        month = when.month - 1 + months
        year = when.year + get_year_shift(moment) + years + month // 12
        low = 2 if year < 2 else 2000
        base = year if 1 < year < 9999 else (year - low) % 400 + low
        ordinal = date(base, month % 12 + 1, 1).toordinal() + when.day - 1 + weeks * 7 + days
        cycles = 0 if 365 < ordinal < _LAST_DAY else (ordinal - 366) // _CYCLE_DAYS
        day = date.fromordinal(ordinal - cycles * _CYCLE_DAYS)
        named = moment.location not in ("", "UTC")
        moved = datetime.combine(day, when.time(), load_zone(moment.location) if named else UTC)
        result = from_local(moved, moment.ns % SECOND, year - base + cycles * 400)
        ns = result.ns if named else result.ns - moment.offset * SECOND
        return _at_instant(moment, ns + sign * self._clock_ns())


def _at_instant(moment: Timestamp, ns: int) -> Timestamp:
    if moment.location:
        return at_zone(ns, moment.location)
    return Timestamp(ns, moment.offset, moment.zone, "")


def parse_period(text: str) -> Period:
    """Return the period that a text stands for.

    Raises:
        ArgumentError: the text is no ISO 8601 duration.
    """
    rest = text[1:] if text[:1] in ("-", "+") else text
    if not rest:
        raise ArgumentError("cannot parse a blank string as a period")
    if rest[0] != "P":
        raise ArgumentError(f"{text}: expected 'P' period mark at the start")
    fields: dict[str, Decimal] = {}
    rest, clock, fraction = rest[1:], False, ""
    while rest:
        if rest[0] == "T":
            if clock:
                raise ArgumentError(f"{text}: 'T' designator cannot occur more than once")
            clock, rest = True, rest[1:]
            continue
        number, unit, rest = _read_field(text, rest, clock)
        letter = unit.upper()
        if fraction and number:
            both = f"'{fraction}' & '{letter}'"
            raise ArgumentError(f"{text}: {both} only the last field can have a fraction")
        if (unit in _UNIT_NS) is not clock:
            raise ArgumentError(f"{text}: '{letter}' designator cannot occur here")
        if unit in fields:
            raise ArgumentError(f"{text}: '{letter}' designator cannot occur more than once")
        fields[unit] = number
        exponent = number.as_tuple().exponent
        fraction = letter if isinstance(exponent, int) and exponent < 0 else fraction
    if not fields:
        expected = "expected 'Y', 'M', 'W', 'D', 'H', 'M', or 'S' designator"
        raise ArgumentError(f"{text}: {expected}")
    return Period(fields, text.startswith("-"))


def _read_field(text: str, rest: str, clock: bool) -> tuple[Decimal, str, str]:
    """Read one number with its designator; return them and what comes behind."""
    match = _FIELD.match(rest)
    digits, unit = (match[1], match[2]) if match else ("", "")
    if not digits:
        raise ArgumentError(f"{text}: expected a number but found '{rest[0]}'")
    if not unit:
        raise ArgumentError(f"{text}: missing designator at the end")
    try:
        number = Decimal(digits.replace(",", "."))
    except InvalidOperation:
        number = Decimal("Infinity")
    if number.is_infinite() or abs(number) >= 10**19:
        raise ArgumentError(f"{text}: number invalid or out of range")
    if unit not in "YMWDHS":
        expected = f"expected a designator Y, M, W, D, H, or S not '{unit}'"
        raise ArgumentError(f"{text}: {expected}")
    assert match is not None
    return number, "m" if clock and unit == "M" else unit, rest[match.end() :]
