"""Every kind of window is told in words, by its settings alone."""

from __future__ import annotations

import pytest

from streamer.core.durations import DAY, HOUR, MINUTE, SECOND
from streamer.window import SystemWindow
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window import Window
from streamer.window.settings.window_types import (
    Count,
    EventTimeSettings,
    Join,
    Session,
    Sliding,
    Tumbling,
)

TEN = 10 * SECOND
LATE = EventTimeSettings(allowed_lateness=2 * SECOND)


@pytest.mark.parametrize(
    ("window", "word", "text"),
    [
        (SystemWindow(TEN), "10s", "windows of 10s"),
        (
            SystemWindow(TEN, SECOND, -SECOND // 2, 2 * SECOND),
            "10s",
            "windows of 10s every 1s, moved by -500ms, 2s for late messages",
        ),
        (EventWindow(Tumbling(TEN, TEN), LATE), "10s", "windows of 10s, 2s for late messages"),
        (
            EventWindow(Tumbling(2 * DAY, DAY, HOUR, "Europe/Berlin"), keyed=True),
            "48h",
            "windows of 48h every 24h, moved by 1h, days of Europe/Berlin, for each key",
        ),
        (
            EventWindow(Session(MINUTE), EventTimeSettings(emit="changes"), keyed=True),
            "1m",
            "sessions, ended by 1m without a message, for each key, emitted whenever they change",
        ),
        (
            EventWindow(Session(MINUTE, HOUR)),
            "1m",
            "sessions, ended by 1m without a message or after 1h",
        ),
        (
            EventWindow(Session(MINUTE, None, by_message=True)),
            "1m",
            "sessions, ended by each message's own gap, or 1m, without a message",
        ),
        (
            EventWindow(Sliding(TEN, "event")),
            "10s",
            "for every message, those of the 10s before it",
        ),
        (EventWindow(Sliding(TEN, "kafka")), "10s", "windows of 10s that begin with a message"),
        (EventWindow(Count(1000, 1000)), "1000", "windows of 1,000 messages"),
        (
            EventWindow(Count(10, 2), keyed=True),
            "10",
            "windows of 10 messages every 2, for each key",
        ),
        (
            EventWindow(Join("a", "b", TEN, TEN), keyed=True),
            "10s",
            "pairs of a and b, at most 10s apart",
        ),
        (
            EventWindow(Join("a", "b", SECOND, TEN)),
            "10s",
            "pairs of a and b, b from 1s before a to 10s after it",
        ),
    ],
)
def test_a_line_says_what_the_windows_are(window: Window, word: str, text: str) -> None:
    assert (window.headline, window.describe()) == (word, text)


@pytest.mark.parametrize(
    ("window", "lines"),
    [
        (
            EventWindow(Tumbling(TEN, SECOND, SECOND // 2), LATE),
            [
                "size 10s, every 1s, offset 500ms, [start, start + size)",
                "closes by the largest event time at its end + 2s",
                "when the input ends: emits open windows at once",
            ],
        ),
        (
            EventWindow(
                Session(MINUTE, HOUR),
                EventTimeSettings(
                    "system", "key", idle_timeout=TEN, emit="each", end_of_input="keep"
                ),
            ),
            [
                "gap 1m, cut after 1h, [first, last]",
                "closes by the system clock of its key at its end + 1m + 0s",
                "closes when nothing came for 10s",
                "emitted at every message, not when they close",
                "when the input ends: keeps open windows in the checkpoint",
            ],
        ),
        (
            EventWindow(Sliding(TEN, "forward")),
            [
                "size 10s, forward: [t, t + size]",
                "closes by the largest event time at its end + 0s",
                "when the input ends: emits open windows at once",
            ],
        ),
        (
            EventWindow(Sliding(TEN, "event", TEN, waits=True, closed="neither")),
            [
                "size 10s, event: (t - size, t + delay)",
                "closes by the largest event time at its end + 0s",
                "when the input ends: emits open windows at once",
            ],
        ),
        (
            EventWindow(Count(10, 2)),
            [
                "count 10, every 2",
                "closes by its number of messages",
                "when the input ends: drops messages that do not fill a window (incomplete)",
            ],
        ),
        (
            EventWindow(Join("a", "b", TEN, TEN, "left")),
            [
                "left, pairs of a and b, at most 10s apart",
                "pairs are emitted with their second message",
                "messages wait until the largest event time has passed their last possible match",
                "when the input ends: emits open windows at once",
            ],
        ),
    ],
)
def test_a_plan_says_when_windows_close(window: Window, lines: list[str]) -> None:
    assert list(window.describe_rules()) == lines
