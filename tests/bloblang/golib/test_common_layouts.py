"""The quick way with usual layouts gives what the way for all layouts gives, errors included."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.bloblang.errors import QueryError
from streamer.bloblang.golib import common_layouts, golayout, goparse
from streamer.bloblang.runtime import strftime, strptime
from streamer.core.timestamps import SECOND, Timestamp
from tests.examples import examples

LAYOUTS = [
    "2006-01-02T15:04:05Z07:00",
    "2006-01-02 15:04:05",
    "02/Jan/2006:15:04:05 -0700",
    "20060102150405",
    "2006-Jan-02",
    "01/02/2006 15:04 -07:00",
    "15:04:05",
    "100% 2006-01-02",
]
PATTERNS = [
    "%Y-%m-%dT%H:%M:%S%z",
    "%d/%b/%Y:%H:%M:%S %z",
    "%Y-%m-%d",
    "%F %T",
    "%H:%M",
    "%Y%m%d%H%M%S",
    "%d.%m.%Y %H:%M %:z",
    "%Y-%m-%d 100%%",
]
moments = st.builds(
    Timestamp,
    st.integers(-(10**20), 10**20) | st.integers(0, 2 * 10**9).map(lambda s: s * SECOND),
    st.sampled_from([0, 0, 3600, -19800]),
    st.sampled_from(["UTC", ""]),
    st.sampled_from(["UTC", ""]),
)


def said(read, text):
    try:
        moment = read(text)
    except QueryError as e:
        return str(e)
    return moment.ns, moment.offset, moment.zone, moment.location


@settings(max_examples=examples(80, 300), deadline=None)
@given(st.sampled_from(LAYOUTS), moments, st.randoms(use_true_random=False))
def test_go_layouts(layout, moment, chance):
    text = golayout._write_time(moment, layout)
    assert golayout.format_time(moment, layout) == text
    for given_text in (text, spoilt(text, chance)):
        slow = said(partial(goparse._read_time, layout=layout), given_text)
        assert said(partial(goparse.parse_time, layout=layout), given_text) == slow


@settings(max_examples=examples(80, 300), deadline=None)
@given(st.sampled_from(PATTERNS), moments, st.randoms(use_true_random=False))
def test_c_directives(pattern, moment, chance):
    text = strftime._write_time(moment, pattern)
    assert strftime.format_time(moment, pattern) == text
    for given_text in (text, spoilt(text, chance)):
        slow = said(partial(strptime._read_time, pattern=pattern), given_text)
        assert said(partial(strptime.parse_time, pattern=pattern), given_text) == slow


def spoilt(text, chance):
    """Return the text with one letter another, or none."""
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(["", "0", "9", "-", " ", "Z", "T", "٣"]) + text[at + 1 :]


@pytest.mark.parametrize("layout", LAYOUTS[:6])
def test_usual_layouts_are_read_and_written_quickly(layout):
    parts = golayout.to_common_parts(layout)
    assert common_layouts.make_reader(parts, str).__name__ == "quick"
    assert common_layouts.make_writer(parts, str).__name__ == "quick"


@pytest.mark.parametrize("layout", ["2006-1-2", "Mon Jan 2 2006", "2006-01-02 2006", "3:04PM"])
def test_others_are_not(layout):
    assert common_layouts.make_reader(golayout.to_common_parts(layout), str) is str
