"""The open windows of a stream, as the service lists them."""

from __future__ import annotations

import pytest

from streamer.core.durations import SECOND
from streamer.service.monitoring.window_listing import list_open_windows
from streamer.window import SystemWindow
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window import Window
from streamer.window.settings.window_types import EventTimeSettings, Tumbling

TEN = 10 * SECOND


@pytest.mark.parametrize(
    ("window", "clock"),
    [
        (SystemWindow(TEN), "system"),
        (EventWindow(Tumbling(TEN, TEN)), "event"),
        (EventWindow(Tumbling(TEN, TEN), EventTimeSettings(clock="system")), "system"),
    ],
)
def test_a_listing_says_which_clock_closes_the_windows(window: Window, clock: str) -> None:
    assert list_open_windows(window, [])["clock"] == clock
