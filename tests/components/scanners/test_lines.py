"""The `lines` scanner: Go's rules for lines, and what becomes of lines that are too long."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.components.scanners.lines import LineScanner, build
from streamer.core.execution import Execution
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields


def lines(data: bytes, **settings: Any) -> list[bytes]:
    return LineScanner(**settings).split(data).lines


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\nb", [b"a", b"b"]),
        (b"\n", [b""]),
        (b"a\n\nb\n", [b"a", b"", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\r\nb\nc", [b"a", b"b", b"c"]),
        (b"a\r\r\n", [b"a\r"]),
        (b"a\rb\n", [b"a\rb"]),
        (b"a\r", [b"a"]),
        (b"\r", [b""]),
        (b"a\n\r", [b"a", b""]),
        (b"\xff\xfe\n", [b"\xff\xfe"]),
    ],
)
def test_lines_are_those_of_gos_scanner(data: bytes, expected: list[bytes]) -> None:
    assert lines(data) == expected


def test_a_custom_delimiter_keeps_carriage_returns() -> None:
    assert lines(b"a\r||b\n||", delimiter=b"||", strip_return=False) == [b"a\r", b"b\n"]


def test_omit_empty_leaves_out_lines_that_are_empty_without_their_return() -> None:
    assert lines(b"a\n\r\n\nb\n", omit_empty=True) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("data", "fits"),
    [
        (b"1234567\n", True),
        (b"12345678\n", False),
        (b"123456\r\n", True),
        (b"1234567\r\n", False),
        (b"1234567", True),
        (b"12345678", False),
    ],
)
def test_a_line_must_fit_into_the_buffer_with_its_end(data: bytes, fits: bool) -> None:
    found = LineScanner(max_buffer_size=8).split(data)
    assert (len(found.lines), len(found.too_long)) == ((1, 0) if fits else (0, 1))


def test_a_line_that_is_too_long_harms_no_other() -> None:
    data = b"first\n" + b"x" * 100_000 + b"\r\nsecond\r\nthird"
    assert LineScanner().split(data) == ([b"first", b"second", b"third"], [100_001])


def test_a_last_line_that_is_too_long_leaves_no_empty_line() -> None:
    assert LineScanner(max_buffer_size=8).split(b"a\n" + b"x" * 9) == ([b"a"], [9])


def test_overlapping_custom_delimiters_are_found_from_the_left() -> None:
    found = LineScanner(b"aa", strip_return=False, max_buffer_size=4).split(b"aaabaaa")
    assert found.lines == [b"", b"ab", b"a"]


def test_lines_left_out_are_counted_and_logged_with_their_source() -> None:
    counted: list[Any] = []
    logged: list[Any] = []
    ex = Execution(
        now=lambda: 0,
        log=lambda level, text, fields: logged.append((level, fields)),
        count=lambda name, by=1, **labels: counted.append((name, by, labels)),
    )
    assert LineScanner(max_buffer_size=4).scan_range(b"a\n123456\n12345\n", ex, "in.txt") == [b"a"]
    assert counted == [("input_dropped", 2, {"reason": "too_long"})]
    assert logged == [
        ("WARN", {"source": "in.txt", "bytes": 6, "limit": 4}),
        ("WARN", {"source": "in.txt", "bytes": 5, "limit": 4}),
    ]


class _NoContext:
    component = ParsedComponent(Kind.SCANNER, "lines")


@pytest.mark.parametrize("custom", [None, ""])
def test_without_a_custom_delimiter_lines_end_at_line_breaks(custom: str | None) -> None:
    fields = {"custom_delimiter": custom, "max_buffer_size": 65_536, "omit_empty": False}
    assert build(ParsedFields(fields), _NoContext()) == LineScanner()  # type: ignore[arg-type]
