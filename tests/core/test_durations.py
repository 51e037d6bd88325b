from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.core.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0),
        ("-0", 0),
        ("+5s", 5_000_000_000),
        ("1h30m", 5_400_000_000_000),
        ("250ms", 250_000_000),
        ("-6h", -21_600_000_000_000),
        ("1.5h", 5_400_000_000_000),
        ("-.5s", -500_000_000),
        ("5.s", 5_000_000_000),
        ("3000d12h", 259_243_200_000_000_000),
        ("1d", 86_400_000_000_000),
        ("168h", 604_800_000_000_000),
        ("3us", 3_000),
        ("3\u00b5s", 3_000),
        ("3\u03bcs", 3_000),
        ("12ns", 12),
        ("1s1s", 2_000_000_000),
        ("0.000000001s", 1),
        ("0.0000000019s", 1),
        ("-0.0000000019s", -1),
        ("0.9007199254740993s", 900_719_925),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("2562047h47m16.854775807s", 2**63 - 1),
    ],
)
def test_a_duration_is_read_to_the_nanosecond(text: str, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("-", "is empty"),
        ("3", "lacks a unit"),
        ("1h30", "lacks a unit"),
        ("1 h", "unknown unit ' h'"),
        ("1hour", "unknown unit 'hour'"),
        ("1H", "unknown unit 'H'"),
        ("1w", "use d, h, m, s"),
        ("yesterday", "is not a duration"),
        ("s", "is not a duration"),
        (".s", "is not a duration"),
        ("--1s", "is not a duration"),
        ("1.2.3s", "lacks a unit"),
        ("\u0663s", "is not a duration"),
        ("9223372036854775808ns", "too long"),
        ("200000d", "the longest is 106751d"),
        ("9" * 100 + "h", "too many digits"),
    ],
)
def test_what_is_no_duration_is_refused_with_a_reason(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"duration") as caught:
        parse_duration(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0s"),
        (3_600_000_000_000, "1h"),
        (5_400_000_000_000, "1h30m"),
        (-21_600_000_000_000, "-6h"),
        (60_500_000_000, "1m0.5s"),
        (3_601_000_000_000, "1h1s"),
        (250_000_000, "250ms"),
        (1_500_000, "1.5ms"),
        (1_001, "1.001us"),
        (7, "7ns"),
        (86_400_000_000_000, "24h"),
    ],
)
def test_a_duration_is_written_short(ns: int, text: str) -> None:
    assert format_duration(ns) == text


@settings(max_examples=200, deadline=None)
@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_reads_back(ns: int) -> None:
    assert parse_duration(format_duration(ns)) == ns
