"""Timelines of windows with other bounds, of keys, without bounds, and that come more than once."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from streamer.config import parse_config
from streamer.core.durations import MINUTE, SECOND
from streamer.core.message import Message
from streamer.core.timestamps import parse_event_time
from streamer.engine.offline.arrival_clock import ArrivalTimes
from streamer.plan import make_plan
from streamer.tools.timeline.json_document import to_json_document
from streamer.tools.timeline.model import Event, Timeline
from streamer.tools.timeline.simulate import simulate
from streamer.tools.timeline.svg import draw_timeline
from streamer.tools.timeline.text import format_timeline
from streamer.tools.timeline.windows import WindowIndex
from streamer.window.contract import WindowReason
from streamer.window.pack.window_metadata import WindowMetadata, make_count_metadata
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import (
    Count,
    EventTimeSettings,
    Session,
    Tumbling,
    WindowType,
)

START = parse_event_time("2026-11-21T10:00:00Z")
FINAL = EventTimeSettings()
SVG = "{http://www.w3.org/2000/svg}"


def bounds(
    start: int, end: int, reason: WindowReason = "final", key: bytes | None = None
) -> dict[str, Any]:
    """Return metadata as the kernel gives it; seconds after the start."""
    labels = WindowMetadata(START + start * SECOND, START + end * SECOND, reason)
    return labels.for_key(START, key)


def timeline(
    kind: WindowType,
    batches: list[tuple[int, Any, list[int]]],
    time: EventTimeSettings = FINAL,
    keyed: bool = False,
) -> Timeline:
    """Make a timeline of messages, one a second; batches are (second, metadata, messages)."""
    window = EventWindow(kind, time, keyed=keyed)
    timed = not isinstance(kind, Count)
    events = []
    for n in range(6):
        at = START + n * SECOND
        events.append(Event(n + 1, f"m{n + 1}", at, at if timed else None))
    spans = WindowIndex(window)
    emissions = []
    for second, meta, numbers in batches:
        emission = spans.record_emission(meta, numbers, START + second * SECOND)
        assert emission is not None
        emissions.append(emission)
        for number in numbers:
            found = events[number - 1].windows
            if emission.span not in found:
                found.append(emission.span)
    return Timeline("x", window, events, spans.list_windows(), emissions, START + MINUTE)


TUMBLING = timeline(
    Tumbling(3 * SECOND, 3 * SECOND),
    [
        (4, bounds(0, 3, key=b'"a"'), [1, 3]),
        (4, bounds(0, 3, key=b'{"b":1}'), [2]),
        (9, bounds(3, 6, "flush", b'"a"'), [4, 5]),
    ],
    EventTimeSettings(allowed_lateness=SECOND),
    keyed=True,
)
SESSIONS = timeline(
    Session(2 * SECOND),
    [
        (0, bounds(0, 0, "changes"), [1]),
        (1, bounds(0, 1, "changes"), [1, 2]),
        (1, bounds(0, 1, "changes"), [1, 2, 3]),
        (8, bounds(4, 5, "idle"), [5, 6]),
    ],
    EventTimeSettings(emit="changes"),
)
RETRACTED = timeline(
    Session(2 * SECOND),
    [
        (0, bounds(0, 0, "each"), [1]),
        (4, bounds(4, 4, "each"), [5]),
        (5, bounds(0, 0, "retracted"), []),
        (5, bounds(4, 4, "retracted"), []),
        (5, bounds(0, 4, "each"), [1, 3, 5]),
    ],
    EventTimeSettings(emit="each", emit_also=frozenset(["retractions"])),
)
HIDDEN = timeline(
    Tumbling(3 * SECOND, 3 * SECOND),
    [
        (1, bounds(0, 3, "each"), [1]),
        (2, bounds(0, 3, "retracted"), []),
        (3, bounds(0, 3, "each"), [1, 2, 3]),
        (4, bounds(3, 6, "each"), [4]),
        (5, bounds(3, 6, "retracted"), []),
    ],
    EventTimeSettings(emit="each", emit_also=frozenset(["retractions"])),
)
COUNTED = timeline(
    Count(2, 2),
    [
        (1, make_count_metadata("count", 2, (0, 2)), [1, 2]),
        (3, make_count_metadata("count", 2, (2, 4)), [3, 4]),
    ],
)

TEXTS = [
    (
        RETRACTED,
        """\
x: sessions, ended by 2s without a message, emitted at every message, and retracted when they no \
longer hold
2026-11-21, UTC

10:00:00  #1 m1        at 10:00:00 → window [10:00:00, 10:00:04]
10:00:00  ▣ [10:00:00, 10:00:00] grows, 1 message: #1
10:00:01  #2 m2        at 10:00:01 → no window that was emitted
10:00:02  #3 m3        at 10:00:02 → window [10:00:00, 10:00:04]
10:00:03  #4 m4        at 10:00:03 → no window that was emitted
10:00:04  #5 m5        at 10:00:04 → window [10:00:00, 10:00:04]
10:00:04  ▣ [10:00:04, 10:00:04] grows, 1 message: #5
10:00:05  #6 m6        at 10:00:05 → no window that was emitted
10:00:05  ☒ [10:00:00, 10:00:00] is taken back
10:00:05  ☒ [10:00:04, 10:00:04] is taken back
10:00:05  ▣ [10:00:00, 10:00:04] grows, 3 messages: #1, #3, #5

6 messages · 3 windows, 2 taken back · none dropped
""",
    ),
    (
        TUMBLING,
        """\
x: windows of 3s, for each key, 1s for late messages
2026-11-21, UTC

10:00:00  #1 m1        at 10:00:00 → window [10:00:00, 10:00:03) of a
10:00:01  #2 m2        at 10:00:01 → window [10:00:00, 10:00:03) of {"b":1}
10:00:02  #3 m3        at 10:00:02 → window [10:00:00, 10:00:03) of a
10:00:03  #4 m4        at 10:00:03 → window [10:00:03, 10:00:06) of a
10:00:04  #5 m5        at 10:00:04 → window [10:00:03, 10:00:06) of a
10:00:04  ▣ [10:00:00, 10:00:03) of a closes, 2 messages: #1, #3
10:00:04  ▣ [10:00:00, 10:00:03) of {"b":1} closes, 1 message: #2
10:00:05  #6 m6        at 10:00:05 → no window that was emitted
10:00:09  ▣ [10:00:03, 10:00:06) of a closes as the input ends, 2 messages: #4-#5

6 messages · 3 windows · none dropped
""",
    ),
    (
        SESSIONS,
        """\
x: sessions, ended by 2s without a message, emitted whenever they change
2026-11-21, UTC

10:00:00  #1 m1        at 10:00:00 → windows [10:00:00, 10:00:00] and [10:00:00, 10:00:01]
10:00:00  ▣ [10:00:00, 10:00:00] has changed, 1 message: #1
10:00:01  #2 m2        at 10:00:01 → window [10:00:00, 10:00:01]
10:00:01  ▣ [10:00:00, 10:00:01] has changed, 2 messages: #1-#2
10:00:01  ▣ [10:00:00, 10:00:01] has changed, 3 messages: #1-#3
10:00:02  #3 m3        at 10:00:02 → window [10:00:00, 10:00:01]
10:00:03  #4 m4        at 10:00:03 → no window that was emitted
10:00:04  #5 m5        at 10:00:04 → window [10:00:04, 10:00:05]
10:00:05  #6 m6        at 10:00:05 → window [10:00:04, 10:00:05]
10:00:08  ▣ [10:00:04, 10:00:05] closes as nothing comes any more, 2 messages: #5-#6

6 messages · 3 windows · none dropped
""",
    ),
    (
        COUNTED,
        """\
x: windows of 2 messages
2026-11-21, UTC

10:00:00  #1 m1        → 1 window
10:00:01  #2 m2        → 1 window
10:00:01  ▣ window is full, 2 messages: #1-#2
10:00:02  #3 m3        → 1 window
10:00:03  #4 m4        → 1 window
10:00:03  ▣ window is full, 2 messages: #3-#4
10:00:04  #5 m5        → no window that was emitted
10:00:05  #6 m6        → no window that was emitted

6 messages · 2 windows · none dropped
""",
    ),
]


@pytest.mark.parametrize(("made", "text"), TEXTS, ids=["retracted", "tumbling", "session", "count"])
def test_the_text_tells_bounds_keys_and_why_batches_come(made: Timeline, text: str) -> None:
    assert format_timeline(made) == text


@pytest.mark.parametrize(
    "made", [TUMBLING, SESSIONS, COUNTED], ids=["tumbling", "session", "count"]
)
def test_the_drawing_has_a_bar_for_each_window(made: Timeline) -> None:
    root = ElementTree.fromstring(draw_timeline(made))
    bars = [one for one in root.iter(f"{SVG}rect") if one.attrib.get("class") == "edge-blue"]
    assert len(bars) == len(made.spans)


def test_results_that_were_taken_back_are_struck_out() -> None:
    for made, gone in ((RETRACTED, 2), (HIDDEN, 1)):
        root = ElementTree.fromstring(draw_timeline(made))
        for element, style in (("rect", "dashed"), ("line", "edge-red")):
            drawn = [one for one in root.iter(SVG + element) if one.get("class") == style]
            assert len(drawn) == gone
        windows = to_json_document(made)["windows"]
        assert sum("retracted" in one for one in windows) == gone
    # A result that comes again holds.
    assert [span.retracted for span in HIDDEN.spans] == [None, START + 5 * SECOND]


def test_windows_that_last_no_time_have_lanes_too() -> None:
    bars = [one for one in ElementTree.fromstring(draw_timeline(SESSIONS)).iter(f"{SVG}rect")]
    places = {(one.attrib["x"], one.attrib["y"]) for one in bars if one.get("class") == "edge-blue"}
    assert len(places) == len(SESSIONS.spans)


def test_json_has_keys_and_no_bounds_where_there_are_none() -> None:
    assert to_json_document(TUMBLING)["windows"][1] == {
        "key": '{"b":1}',
        "start": "2026-11-21T10:00:00Z",
        "end": "2026-11-21T10:00:03Z",
        "closed": "2026-11-21T10:00:04Z",
        "messages": [2],
    }
    assert to_json_document(COUNTED)["windows"][0] == {
        "start": None,
        "end": None,
        "closed": "2026-11-21T10:00:01Z",
        "messages": [1, 2],
    }


def test_what_is_of_no_window_is_no_emission() -> None:
    assert WindowIndex(EventWindow(Count(2, 2))).record_emission({"a": 1}, [1], START) is None


def test_windows_of_keys_are_apart_in_what_the_kernel_does() -> None:
    settings = "timestamp_mapping: root = this.at, key_mapping: root = this.k, size: 10s"
    config = parse_config(f"buffer: {{ tumbling_window: {{ {settings} }} }}", "x.yaml")
    sample = [
        [Message(f'{{"at":"2026-11-21T10:00:{second:02d}Z","k":"{key}"}}'.encode())]
        for second, key in ((1, "a"), (2, "b"), (3, "a"), (12, "b"), (9, "a"))
    ]
    made = simulate(make_plan(config, "OFF"), sample, ArrivalTimes(), lambda: START)
    shown = [(span.key, span.numbers, (span.end or 0) - START) for span in made.spans]
    assert shown == [
        ("a", [1, 3], 10 * SECOND),
        ("b", [2], 10 * SECOND),
        ("b", [4], 20 * SECOND),
    ]
    assert (made.events[4].dropped, made.events[4].why) == ("late", "its last window had closed")


def test_without_windows_messages_go_on_one_by_one() -> None:
    config = (
        "buffer: { keyed_state: { key_mapping: root = this.k, timestamp_mapping: root = this.t } }"
    )
    plan = make_plan(parse_config(config))
    batches = [[Message.from_value({"k": 1, "t": START // SECOND + at})] for at in range(2)]
    shown = simulate(plan, batches, ArrivalTimes(), lambda: START)
    text = format_timeline(shown)
    assert "no windows, messages pass one by one, for each key" in text
    assert text.count("→ goes on") == 2 and "failed" not in text
    assert "goes on" in draw_timeline(shown)
