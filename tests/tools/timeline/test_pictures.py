"""Timelines as text, JSON and SVG."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.engine.offline.arrival_clock import ArrivalTimes
from streamer.plan import make_plan
from streamer.tools.timeline.axis import Axis
from streamer.tools.timeline.json_document import to_json_document
from streamer.tools.timeline.model import Timeline, WindowSpan
from streamer.tools.timeline.simulate import simulate
from streamer.tools.timeline.svg import MAX_ROWS, assign_tracks, draw_timeline
from streamer.tools.timeline.text import format_timeline

SVG = "{http://www.w3.org/2000/svg}"
LINES = (
    '{"at":"2026-11-21T10:00:01Z"}',
    '{"at":"2026-11-21T10:00:11.500Z"}',
    '{"at":"2026-11-21T10:00:09Z"}',
    '{"at":"2026-11-21T10:00:14Z"}',
    '{"at":"2026-11-21T10:00:02Z"}',
    '{"<none>":"&"}',
    '{"at":"2026-11-21T12:00:02Z"}',
)
TEXT = """\
cars: windows of 10s, 2s for late messages
2026-11-21, UTC

10:00:01.000  #1 {"at":"2026-11-21T10:00:01Z"}      at 10:00:01 → window ending 10:00:10
10:00:11.500  #2 {"at":"2026-11-21T10:00:11.500Z"}  at 10:00:11.5 → window ending 10:00:20
10:00:11.500  #3 {"at":"2026-11-21T10:00:09Z"}      at 10:00:09 → window ending 10:00:10
10:00:12.000  ▣ (10:00:00, 10:00:10] closes, 2 messages: #1, #3
10:00:14.000  #4 {"at":"2026-11-21T10:00:14Z"}      at 10:00:14 → window ending 10:00:20
10:00:14.000  #5 {"at":"2026-11-21T10:00:02Z"}      at 10:00:02 ✗ late: its last window closed at \
10:00:12
10:00:14.000  #6 {"<none>":"&"}                     ✗ timestamp: its timestamp_mapping gave no \
time: expected Unix seconds or a date-time with a zone as event time, got null
10:00:22.000  ▣ (10:00:10, 10:00:20] closes, 2 messages: #2, #4
12:00:02.000  #7 {"at":"2026-11-21T12:00:02Z"}      at 12:00:02 → window ending 12:00:10
12:00:12.000  ▣ (12:00:00, 12:00:10] closes, 1 message: #7

7 messages · 3 windows · dropped: late 1, timestamp 1
"""


def timeline(lines: tuple[str, ...] = LINES, more: str = "") -> Timeline:
    settings = f"timestamp_mapping: root = this.at, size: 10s, allowed_lateness: 2s{more}"
    plan = make_plan(parse_config(f"buffer: {{system_window: {{{settings}}}}}", "cars.yaml"))
    sample = [[Message(line.encode())] for line in lines]
    return simulate(plan, sample, ArrivalTimes(), lambda: 0)


def test_the_text_tells_what_happened_in_the_order_of_the_clock() -> None:
    assert format_timeline(timeline()) == TEXT


def test_sliding_windows_are_named_or_counted() -> None:
    assert "→ windows ending 10:00:05 and 10:00:10" in format_timeline(
        timeline(LINES[:1], ", slide: 5s")
    )
    text = format_timeline(timeline(LINES[:1], ", slide: 2s"))
    assert "→ 5 windows, ending 10:00:02 to 10:00:10" in text


def test_a_message_that_makes_windows_expire_is_named() -> None:
    lines = (LINES[0], LINES[6], '{"at":"2026-11-21T10:01:02Z"}')
    hint = "windows expired as message #2 moved the clock to 12:00:02; to say when messages arrive"
    assert format_timeline(timeline(lines)).endswith(f"{hint}, use --step or --arrival\n")


def test_lines_of_messages_in_windows_fit_the_width() -> None:
    for width in (70, 80):
        lines = [
            line for line in format_timeline(timeline(), width=width).splitlines() if "→" in line
        ]
        assert max(map(len, lines)) == width
    narrow = [line for line in format_timeline(timeline(), width=20).splitlines() if "→" in line]
    assert '#1 {"at":"…  at 10:00:01 →' in narrow[0]


def test_several_days_show_their_dates() -> None:
    lines = ('{"at":"2026-11-21T23:59:59Z"}', '{"at":"2026-11-22T00:00:01Z"}')
    assert "2026-11-22 00:00:01  #2" in format_timeline(timeline(lines))


def test_an_open_window_is_said_to_stay_open() -> None:
    assert "(10:00:00, 10:00:10] stays open" in format_timeline(
        timeline(LINES[:1], ", end_of_input: keep")
    )


def test_json_has_messages_and_windows() -> None:
    found = to_json_document(timeline())
    assert found["stream"] == "cars"
    assert found["messages"][4] == {
        "number": 5,
        "content": LINES[4],
        "arrived": "2026-11-21T10:00:14Z",
        "time": "2026-11-21T10:00:02Z",
        "windows": [],
        "dropped": "late",
        "why": "its last window closed at 2026-11-21T10:00:12Z",
    }
    assert found["windows"][0] == {
        "start": "2026-11-21T10:00:00Z",
        "end": "2026-11-21T10:00:10Z",
        "closed": "2026-11-21T10:00:12Z",
        "messages": [1, 3],
    }


def test_the_drawing_has_a_mark_for_each_message_and_a_bar_for_each_window() -> None:
    root = ElementTree.fromstring(draw_timeline(timeline()))
    titles = [title.text or "" for title in root.iter(f"{SVG}title")][1:]
    assert titles[:3] == [
        "(10:00:00, 10:00:10], closed at 10:00:12: #1, #3",
        "(10:00:10, 10:00:20], closed at 10:00:22: #2, #4",
        "(12:00:00, 12:00:10], closed at 12:00:12: #7",
    ]
    assert [title.partition(" ")[0] for title in titles[3:]] == [f"#{n}" for n in range(1, 8)]
    bars = [one for one in root.iter(f"{SVG}rect") if one.attrib.get("class") == "edge-blue"]
    assert len(bars) == 3
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "late: its last window closed at 10:00:12" in texts
    assert texts.count("2 messages") == 2


@pytest.mark.parametrize("lines", [(), LINES[:1], LINES[5:6], LINES * 60])
def test_any_drawing_stays_within_its_frame(lines: tuple[str, ...]) -> None:
    svg = draw_timeline(timeline(lines))
    root = ElementTree.fromstring(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for name in ("x", "x1", "x2", "cx"):
        assert all(0 <= float(x) <= width for x in re.findall(rf' {name}="([^"]+)"', svg))
    for name in ("y", "y1", "y2", "cy"):
        assert all(0 <= float(y) <= height for y in re.findall(rf' {name}="([^"]+)"', svg))


def test_messages_that_are_too_many_to_draw_are_counted() -> None:
    svg = draw_timeline(timeline(LINES * 60))
    assert f"and {len(LINES) * 60 - MAX_ROWS} more messages" in svg


def test_windows_that_overlap_are_in_lanes_of_their_own() -> None:
    spans = [
        WindowSpan(0, 10, 12, 12),
        WindowSpan(5, 15, 17, 17),
        WindowSpan(12, 22, 24, 24),
        WindowSpan(13, 23, 25, 25),
    ]
    bounds = [(span.start or 0, span.end or 0) for span in spans]
    assert assign_tracks(spans, bounds) == [0, 1, 0, 2]


def test_time_in_which_nothing_happens_is_folded() -> None:
    hour = 3600 * SECOND
    axis = Axis.build([(0, SECOND), (hour, hour + SECOND), (0, 0)], SECOND, 100, 500)
    assert [(one.begin, one.end) for one in axis.stretches] == [(0, SECOND), (hour, hour + SECOND)]
    assert axis.x(0) == 100
    assert axis.x(hour + SECOND) == pytest.approx(600) == axis.right
    places = [axis.x(at) for at in (-1, 0, SECOND // 2, SECOND, hour // 2, hour, hour + 1)]
    assert places == sorted(places)
