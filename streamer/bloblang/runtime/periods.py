"""ISO 8601 durations (`P1Y2M3DT4H5M6S`): added to a date, or as nanoseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from streamer.bloblang.errors import ArgumentError
from streamer.bloblang.runtime.zones import from_local, load, local
from streamer.timestamps import SECOND, Timestamp

_NUMBER: Final = r"[+-]?\d+(?:[.,]\d+)?"
_PERIOD: Final = re.compile(
    rf"([+-]?)P(?:({_NUMBER})Y)?(?:({_NUMBER})M)?(?:({_NUMBER})W)?(?:({_NUMBER})D)?"
    rf"(?:T(?:({_NUMBER})H)?(?:({_NUMBER})M)?(?:({_NUMBER})S)?)?"
)
# A year of the Gregorian calendar on average, as Benthos's library counts it.
_YEAR: Final = Decimal(31556952)


@dataclass(frozen=True, slots=True)
class Period:
    """A duration in calendar units; `seconds` is all that a day has."""

    years: Decimal
    months: Decimal
    days: Decimal
    seconds: Decimal

    def nanoseconds(self) -> int:
        """Return the period as nanoseconds, years and months by their average."""
        total = self.years * _YEAR + self.months * _YEAR / 12 + self.days * 86400 + self.seconds
        return int(total * SECOND)

    def added_to(self, moment: Timestamp, sign: int) -> Timestamp:
        """Return a timestamp moved by the period in its own zone; a day too far flows over.

        Raises:
            QueryError: never; dates outside of what the program holds are left to formatting.
        """
        when = local(moment)
        zone = load(moment.location) if moment.location not in ("", "UTC") else when.tzinfo
        months = when.month - 1 + sign * (int(self.months) + 12 * int(self.years))
        first = datetime(when.year + months // 12, months % 12 + 1, 1, tzinfo=zone)
        moved = first + timedelta(
            days=when.day - 1 + sign * int(self.days),
            hours=when.hour,
            minutes=when.minute,
            seconds=when.second,
        )
        result = from_local(moved, moment.ns % SECOND)
        rest = self.days % 1 * 86400 + self.seconds
        rest += (self.years % 1 * 12 + self.months % 1) * _YEAR / 12
        ns = result.ns + sign * int(rest * SECOND)
        if not moment.location:
            return Timestamp(ns, moment.offset, moment.zone, "")
        from streamer.bloblang.runtime.zones import at_zone

        return at_zone(ns, moment.location)


def parse(text: str) -> Period:
    """Return the period that a text stands for.

    Raises:
        ArgumentError: the text is no ISO 8601 duration.
    """
    match = _PERIOD.fullmatch(text)
    if match is None or text[-1:] in "PT":
        raise ArgumentError(f"{text}: expected an ISO 8601 duration such as P1DT2H")
    numbers = [Decimal((part or "0").replace(",", ".")) for part in match.groups()[1:]]
    if match[1] == "-":
        numbers = [-number for number in numbers]
    years, months, weeks, days, hours, minutes, seconds = numbers
    return Period(years, months, weeks * 7 + days, hours * 3600 + minutes * 60 + seconds)
