"""Methods on points in time and durations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamer.bloblang.declare import Example, Param, declare
from streamer.bloblang.golib import golayout, goparse, zones
from streamer.bloblang.golib.convert import text_of, to_timestamp
from streamer.bloblang.golib.goduration import parse_go_duration
from streamer.bloblang.golib.operations import wrap_int64
from streamer.bloblang.runtime import iso8601_periods, strftime, strptime
from streamer.core.timestamps import Timestamp
from streamer.core.value import INT64_MAX, INT64_MIN

_CATEGORY = "Timestamp Manipulation"
_RFC3339 = "2006-01-02T15:04:05.999999999Z07:00"
_FORMAT = Param("format", "string")
_ZONE = Param("tz", "string", default=None)
# Seconds from year 1, which Go rounds from, to the Unix epoch.
_YEAR_ONE_NS = 62135596800 * 1_000_000_000


@declare(
    "parse_duration",
    _CATEGORY,
    examples=(
        Example(
            "root.seconds = this.timeout.parse_duration() / 1000000000",
            '{"timeout":"1m30s"}',
            '{"seconds":90}',
        ),
    ),
    own_errors=True,
    foldable=True,
)
def parse_duration(value: Any) -> int:
    """A duration as Go writes it (`1h30m`), in nanoseconds."""
    return parse_go_duration(text_of(value))


@declare(
    "parse_duration_iso8601",
    _CATEGORY,
    examples=(
        Example(
            "root.seconds = this.timeout.parse_duration_iso8601() / 1000000000",
            '{"timeout":"PT1M30S"}',
            '{"seconds":90}',
        ),
    ),
    own_errors=True,
    foldable=True,
)
def parse_duration_iso8601(value: Any) -> int:
    """An ISO 8601 duration (`P1DT2H`) in nanoseconds; years and months are averages."""
    return iso8601_periods.parse_period(text_of(value)).to_nanoseconds()


@declare(
    "ts_round",
    _CATEGORY,
    Param("duration", "integer"),
    examples=(
        Example(
            'root.hour = this.at.ts_round("1h".parse_duration())',
            '{"at":"2026-11-21T10:31:07Z"}',
            '{"hour":"2026-11-21T11:00:00Z"}',
        ),
    ),
    own_errors=True,
    foldable=True,
)
def ts_round(value: Any, duration: int) -> Timestamp:
    """The timestamp rounded to a multiple of a duration in nanoseconds, halves up."""
    moment = to_timestamp(value)
    if duration <= 0:
        return moment
    rest = (moment.ns + _YEAR_ONE_NS) % duration
    ns = moment.ns - rest if rest * 2 < duration else moment.ns + duration - rest
    return _at_instant(moment, ns)


def _at_instant(moment: Timestamp, ns: int) -> Timestamp:
    if moment.location:
        return zones.at_zone(ns, moment.location)
    return Timestamp(ns, moment.offset, moment.zone, "")


@declare(
    "ts_tz",
    _CATEGORY,
    Param("tz", "string"),
    examples=(
        Example(
            'root.local = this.at.ts_tz("Europe/Berlin")',
            '{"at":"2026-11-21T10:00:00Z"}',
            '{"local":"2026-11-21T11:00:00+01:00"}',
        ),
    ),
    binds=True,
    own_errors=True,
    foldable=True,
)
def ts_tz(tz: str) -> Callable[[Any], Timestamp]:
    """The same instant in another time zone."""
    zones.load_zone(tz)
    return lambda value: zones.at_zone(to_timestamp(value).ns, tz)


def _declare_shift(name: str, summary: str, sign: int, result: str) -> Any:
    @declare(
        name,
        _CATEGORY,
        Param("duration", "string"),
        summary=summary,
        examples=(
            Example(
                f'root = this.at.{name}("P1M").string()', '{"at":"2026-08-14T05:54:23Z"}', result
            ),
        ),
        binds=True,
        own_errors=True,
        foldable=True,
    )
    def method(duration: str) -> Callable[[Any], Timestamp]:
        period = iso8601_periods.parse_period(duration)
        return lambda value: period.add_to(to_timestamp(value), sign)

    return method


ts_add_iso8601 = _declare_shift(
    "ts_add_iso8601", "The timestamp with an ISO 8601 duration added.", 1, "2026-09-14T05:54:23Z"
)
ts_sub_iso8601 = _declare_shift(
    "ts_sub_iso8601", "The timestamp without an ISO 8601 duration.", -1, "2026-07-14T05:54:23Z"
)


@declare(
    "ts_sub",
    _CATEGORY,
    Param("t2", "timestamp"),
    examples=(
        Example(
            "root.seconds = this.end.ts_sub(this.start) / 1000000000",
            '{"start":"2026-11-21T10:00:00Z","end":"2026-11-21T10:00:07Z"}',
            '{"seconds":7}',
        ),
    ),
    own_errors=True,
    foldable=True,
)
def ts_sub(value: Any, t2: Timestamp) -> int:
    """The nanoseconds from another timestamp to this one."""
    return max(min(to_timestamp(value).ns - t2.ns, INT64_MAX), INT64_MIN)


def _declare_parse(
    name: str, parse: Callable[[str, str], Timestamp], as_text: bool, example_layout: str
) -> Any:
    @declare(
        name,
        "Deprecated" if as_text else _CATEGORY,
        _FORMAT,
        summary="The timestamp in a text, read by a format.",
        examples=(
            Example(
                f'root.at = this.day.{name}("{example_layout}")',
                '{"day":"2026-Nov-21"}',
                '{"at":"2026-11-21T00:00:00Z"}',
            ),
        ),
        deprecated=as_text,
        own_errors=True,
        foldable=True,
    )
    def method(value: Any, layout: str) -> Any:
        moment = parse(text_of(value), layout)
        return str(moment) if as_text else moment

    return method


ts_parse = _declare_parse("ts_parse", goparse.parse_time, False, "2006-Jan-02")
parse_timestamp = _declare_parse("parse_timestamp", goparse.parse_time, True, "2006-Jan-02")
ts_strptime = _declare_parse("ts_strptime", strptime.parse_time, False, "%Y-%b-%d")
parse_timestamp_strptime = _declare_parse(
    "parse_timestamp_strptime", strptime.parse_time, True, "%Y-%b-%d"
)


def _declare_format(
    name: str,
    run: Callable[[Timestamp, str], str],
    layout: Param,
    example_layout: str,
    deprecated: bool,
) -> Any:
    @declare(
        name,
        "Deprecated" if deprecated else _CATEGORY,
        layout,
        _ZONE,
        summary="The timestamp as text in a format, and in a time zone when one is given.",
        examples=(
            Example(
                f'root.day = this.at.{name}("{example_layout}", "UTC")',
                '{"at":1795255207}',
                '{"day":"2026-Nov-21"}',
            ),
        ),
        deprecated=deprecated,
        binds=True,
        own_errors=True,
        foldable=True,
    )
    def method(pattern: str, tz: str | None) -> Callable[[Any], str]:
        if tz is None:
            return lambda value: run(to_timestamp(value), pattern)
        zones.load_zone(tz)
        return lambda value: run(zones.at_zone(to_timestamp(value).ns, tz), pattern)

    return method


_LAYOUT = Param("format", "string", default=_RFC3339)
ts_format = _declare_format("ts_format", golayout.format_time, _LAYOUT, "2006-Jan-02", False)
format_timestamp = _declare_format(
    "format_timestamp", golayout.format_time, _LAYOUT, "2006-Jan-02", True
)
ts_strftime = _declare_format("ts_strftime", strftime.format_time, _FORMAT, "%Y-%b-%d", False)
format_timestamp_strftime = _declare_format(
    "format_timestamp_strftime", strftime.format_time, _FORMAT, "%Y-%b-%d", True
)


def _declare_unix(name: str, unit: str, size: int, deprecated: bool) -> Any:
    @declare(
        name,
        "Deprecated" if deprecated else _CATEGORY,
        summary=f"The Unix time in {unit}.",
        examples=(
            Example(
                f"root = this.at.{name}()",
                '{"at":"2026-11-21T10:00:07Z"}',
                str(1795255207 * 10**9 // size),
            ),
        ),
        deprecated=deprecated,
        own_errors=True,
        foldable=True,
    )
    def method(value: Any) -> int:
        return wrap_int64(to_timestamp(value).ns // size)

    return method


ts_unix = _declare_unix("ts_unix", "seconds", 10**9, False)
ts_unix_milli = _declare_unix("ts_unix_milli", "milliseconds", 10**6, False)
ts_unix_micro = _declare_unix("ts_unix_micro", "microseconds", 10**3, False)
ts_unix_nano = _declare_unix("ts_unix_nano", "nanoseconds", 1, False)
format_timestamp_unix = _declare_unix("format_timestamp_unix", "seconds", 10**9, True)
format_timestamp_unix_milli = _declare_unix(
    "format_timestamp_unix_milli", "milliseconds", 10**6, True
)
format_timestamp_unix_micro = _declare_unix(
    "format_timestamp_unix_micro", "microseconds", 10**3, True
)
format_timestamp_unix_nano = _declare_unix("format_timestamp_unix_nano", "nanoseconds", 1, True)
