"""Event times to the nanosecond, and how times are written."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.core import timestamps
from streamer.core.json.parse import parse_json
from streamer.core.timestamps import Timestamp, format_rfc3339, parse_event_time, parse_rfc3339
from streamer.core.value import Number

SECOND = 1_000_000_000
MAX = 2**63 - 1


@pytest.mark.parametrize(
    ("value", "ns"),
    [
        ("2021-08-07T09:49:35Z", 1628329775 * SECOND),
        ("2021-08-07T09:49:35.5Z", 1628329775 * SECOND + SECOND // 2),
        ("2021-08-07T11:49:35.123456789+02:00", 1628329775 * SECOND + 123456789),
        ("2021-08-07 11:49:35+0200", 1628329775 * SECOND),
        ("20210807T094935Z", 1628329775 * SECOND),
        ("1969-12-31T23:59:59.5Z", -SECOND // 2),
        (b"1970-01-01T00:00:01Z", SECOND),
        (1628329775, 1628329775 * SECOND),
        (-1, -SECOND),
        (1.5, SECOND * 3 // 2),
        (Number("1628329775.123456789"), 1628329775 * SECOND + 123456789),
        (Number("1628329775.1234567899"), 1628329775 * SECOND + 123456789),
        (Number("1.6e9"), 1_600_000_000 * SECOND),
        (Timestamp(7), 7),
    ],
)
def test_an_event_time_is_read_to_the_nanosecond(value, ns):
    assert parse_event_time(value) == ns


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        "",
        "yesterday",
        "2021-08-07",
        "2021-08-07T09:49:35",
        "2021-02-30T00:00:00Z",
        "2021-01-01T25:00:00Z",
        "3000-01-01T00:00:00Z",
        [],
        {},
        float("nan"),
        float("inf"),
        Number("1e400"),
        10**10,
        -(10**10),
        b"\xff",
    ],
)
def test_what_is_no_event_time_is_refused_with_a_reason(value):
    with pytest.raises(ValueError) as caught:
        parse_event_time(value)
    assert str(caught.value)


def test_a_number_in_a_document_keeps_nine_decimals():
    assert parse_event_time(parse_json(b'{"t":1628329775.987654321}')["t"]) == 1628329775987654321


@settings(max_examples=200, deadline=None)
@given(st.integers(-MAX, MAX), st.integers(-14 * 60, 14 * 60))
def test_what_is_written_is_read_again(ns, minutes):
    assert parse_event_time(format_rfc3339(ns)) == ns
    moment = parse_rfc3339(format_rfc3339(ns, minutes * 60))
    assert (moment.ns, moment.offset) == (ns, minutes * 60)


@pytest.mark.parametrize(
    ("ns", "offset", "text"),
    [
        (0, 0, "1970-01-01T00:00:00Z"),
        (1, 0, "1970-01-01T00:00:00.000000001Z"),
        (500_000_000, 0, "1970-01-01T00:00:00.5Z"),
        (0, 3600, "1970-01-01T01:00:00+01:00"),
        (0, -5400, "1969-12-31T22:30:00-01:30"),
        (-1, 0, "1969-12-31T23:59:59.999999999Z"),
    ],
)
def test_a_time_has_as_many_digits_as_it_needs(ns, offset, text):
    assert format_rfc3339(ns, offset) == text


def test_timestamps_are_equal_when_the_instants_are():
    moment = Timestamp(5, 3600, "CET", "Europe/Berlin")
    assert moment == Timestamp(5)
    assert hash(moment) == hash(Timestamp(5))
    assert pickle.loads(pickle.dumps(moment)).location == "Europe/Berlin"
    assert moment != 5


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1763719200000, "1763719200000 is no time in seconds; it may be in milliseconds: divide"),
        (1763719200000.5, "may be in milliseconds: divide it by 1000"),
        (1763719200000000, "may be in microseconds: divide it by 1000000"),
        (1763719200000000000, "may be in nanoseconds: divide it by 1000000000"),
        (10**12 * 9, r"no time in seconds \(years 1678 to 2261\)"),
        pytest.param(
            10**5000, "the number of more than thirty digits is no time in seconds", id="large"
        ),
        (1e300, "the number of more than thirty digits is no time in seconds"),
    ],
)
def test_a_number_in_another_unit_is_named(value: float, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse_event_time(value)


def test_times_of_one_second_share_its_text() -> None:
    """A micro-batch writes thousands of them; what is behind the point differs alone."""
    first = timestamps._format_seconds(1_700_000_000, 0)
    assert timestamps._format_seconds(1_700_000_000, 0) is first
    texts = {timestamps.format_rfc3339(1_700_000_000 * 10**9 + ns) for ns in (0, 5, 10**8)}
    assert texts == {first + "Z", first + ".000000005Z", first + ".1Z"}
