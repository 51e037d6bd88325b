"""Tables and times for people."""

from __future__ import annotations

import pytest

from streamer.cli.text_table import shorten_times


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-11-25T17:03:05.000000001Z", "2026-11-25T17:03:05Z"),
        ("2026-11-25T17:03:05.120999999Z", "2026-11-25T17:03:05.12Z"),
        ("since 2026-11-25T17:03:00.5+01:00 on", "since 2026-11-25T17:03:00.5+01:00 on"),
        ("2026-11-25T17:03:10Z, 1.000000001", "2026-11-25T17:03:10Z, 1.000000001"),
    ],
)
def test_times_have_milliseconds_at_most(text: str, shown: str) -> None:
    assert shorten_times(text) == shown
