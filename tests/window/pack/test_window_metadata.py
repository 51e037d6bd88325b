"""The metadata that the messages of a window get."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.core.durations import SECOND
from streamer.window.fire.group_labels import make_label_columns
from streamer.window.pack.window_metadata import (
    WindowMetadata,
    format_key,
    make_count_metadata,
    make_window_metadata,
)

T = 1628330400 * SECOND  # 2021-08-07T10:00:00Z


def test_a_window_tells_its_bounds_its_newest_time_its_key_and_why_it_comes() -> None:
    labels = WindowMetadata(T, T + 2_500_000_000, "final")
    assert labels.for_key(T + 1, b'"x"') == {
        "window_start_timestamp": "2021-08-07T10:00:00Z",
        "window_end_timestamp": "2021-08-07T10:00:02.5Z",
        "window_max_timestamp": "2021-08-07T10:00:00.000000001Z",
        "window_start_unix_ms": 1628330400000,
        "window_end_unix_ms": 1628330402500,
        "window_key": "x",
        "window_emit": "final",
    }


def test_without_keys_no_key_is_told_of() -> None:
    assert "window_key" not in WindowMetadata(T, T + SECOND, "flush").for_key(T)


def test_milliseconds_are_rounded_down_before_1970_too() -> None:
    found = WindowMetadata(-1, 1, "final").for_key(0)
    assert (found["window_start_unix_ms"], found["window_end_unix_ms"]) == (-1, 0)


def test_bounds_beyond_int64_are_told_of() -> None:
    found = WindowMetadata(-(2**63) - SECOND, 2**63 + SECOND, "final").for_key(2**63 - 1)
    assert found["window_start_timestamp"] == "1677-09-21T00:12:42.145224192Z"
    assert found["window_end_timestamp"] == "2262-04-11T23:47:17.854775808Z"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (b'"x"', "x"),
        (b'"\xc3\xb6\\n"', "ö\n"),
        (b"1.50", "1.50"),
        (b"null", "null"),
        (b'{"a":[1,2],"b":true}', '{"a":[1,2],"b":true}'),
    ],
)
def test_a_key_that_is_a_string_is_told_as_it_is_and_any_other_as_json(
    key: bytes, text: str
) -> None:
    assert format_key(key) == text


TIMES = st.integers(-(2**61), 2**61) | st.sampled_from([0, T, -1, 1_500_000, T + 250_000])
KEYS = st.sampled_from([b'"a"', b'"\\n"', b'"\xc3\xb6"', b"1.50", b"null", b'["a",1]'])
REASONS = st.sampled_from(["final", "flush"])


@given(
    some=st.lists(st.tuples(TIMES, TIMES, REASONS, TIMES, KEYS), max_size=6),
    unit=st.sampled_from([1, 1000, 10**6, 10**9]),
    keyed=st.booleans(),
)
def test_many_windows_are_told_what_each_is(some: list[Any], unit: int, keyed: bool) -> None:
    some = [(s // unit * unit, e // unit * unit, why, n, key) for s, e, why, n, key in some]
    columns = list(zip(*some, strict=True)) or [()] * 5
    starts, ends, newest = (np.array(columns[place], np.int64) for place in (0, 1, 3))
    found = make_label_columns(starts, ends, columns[2], newest, columns[4] if keyed else ()).rows
    want = [
        make_window_metadata(s, e, why, n, key if keyed else None) for s, e, why, n, key in some
    ]
    assert found == want
    assert list(map(list, found)) == list(map(list, want))


def test_a_count_window_tells_how_many_messages_it_holds() -> None:
    assert make_count_metadata("count", 5, (4, 9), b"1") == {
        "window_emit": "count",
        "window_count": 5,
        "window_start_offset": 4,
        "window_end_offset": 9,
        "window_key": "1",
    }
    assert make_count_metadata("flush", 1, (2, 4)) == {
        "window_emit": "flush",
        "window_count": 1,
        "window_start_offset": 2,
        "window_end_offset": 4,
    }
