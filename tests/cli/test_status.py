"""The banner and the live status line: on a terminal only, one line, never in a log's way."""

from __future__ import annotations

import io
from typing import Any

import pytest

from streamer.cli.status import Running, StatusLine, banner

SECOND = 1_000_000_000


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Pipe(io.StringIO):
    """A stream that is none."""


@pytest.fixture(autouse=True)
def _a_terminal_that_can_be_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


class Clock:
    def __init__(self) -> None:
        self.now = 100 * SECOND

    def __call__(self) -> int:
        return self.now


def figures(**changed: Any) -> dict[str, Any]:
    return {
        "messages_in": 1_234_567,
        "rate": 12_300.4,
        "open_windows": 2,
        "next_close_ns": 107 * SECOND - 1,
        "dropped": 3,
        "state": "running",
        **changed,
    }


def drawn(stream: io.StringIO) -> str:
    return stream.getvalue().rsplit("\r\x1b[2K", 1)[-1]


def status(stream: io.StringIO, clock: Clock | None = None, width: int = 200) -> StatusLine:
    return StatusLine(stream, clock or Clock(), lambda: width, {"NO_COLOR": "1"})


def test_the_line_says_what_a_user_wants_to_know() -> None:
    stream = Terminal()
    status(stream).update(**figures())
    assert drawn(stream) == (
        "running  1,234,567 in · 12,300/s · 2 open windows · next closes in 7s · 3 dropped"
    )


def test_without_windows_and_drops_nothing_is_said_of_them() -> None:
    stream = Terminal()
    status(stream).update(**figures(open_windows=0, next_close_ns=None, dropped=0))
    assert drawn(stream) == "running  1,234,567 in · 12,300/s"


def test_a_long_wait_is_told_in_hours() -> None:
    stream = Terminal()
    status(stream).update(**figures(next_close_ns=100 * SECOND + 3_660 * SECOND))
    assert "next closes in 1h1m ·" in drawn(stream)


def test_a_close_that_is_overdue_is_in_no_time() -> None:
    stream = Terminal()
    status(stream).update(**figures(next_close_ns=0))
    assert "next closes in 0s" in drawn(stream)


def test_the_line_fits_the_terminal() -> None:
    stream = Terminal()
    status(stream, width=20).update(**figures())
    assert drawn(stream) == "running  1,234,567 "


def test_it_is_redrawn_five_times_a_second_at_most_unless_the_state_changes() -> None:
    stream, clock = Terminal(), Clock()
    line = status(stream, clock)
    line.update(**figures())
    clock.now += SECOND // 10
    line.update(**figures(messages_in=5))
    assert "1,234,567 in" in drawn(stream)
    line.update(**figures(messages_in=6, state="stopping"))
    assert drawn(stream).startswith("stopping  6 in")
    clock.now += SECOND
    line.update(**figures(messages_in=7, state="stopping"))
    assert drawn(stream).startswith("stopping  7 in")


def test_a_clock_that_was_set_back_does_not_freeze_it() -> None:
    stream, clock = Terminal(), Clock()
    line = status(stream, clock)
    line.update(**figures())
    clock.now = 0
    line.update(**figures(messages_in=5))
    assert "running  5 in" in drawn(stream)


def test_cleared_for_a_line_of_the_log_it_is_drawn_again_as_it_was() -> None:
    stream = Terminal()
    line = status(stream)
    line.update(**figures())
    before = drawn(stream)
    line.clear()
    assert drawn(stream) == ""
    line.clear()
    assert stream.getvalue().count("\r\x1b[2K") == 2
    line.redraw()
    assert drawn(stream) == before


def test_what_is_written_aside_stands_on_a_line_of_its_own() -> None:
    stream = Terminal()
    line = status(stream)
    line.update(**figures())
    before = drawn(stream)
    with line.aside():
        stream.write("a result\n")
    assert stream.getvalue().endswith(f"\r\x1b[2Ka result\n\r\x1b[2K{before}")


def test_a_write_that_fails_aside_leaves_the_line_on_the_terminal() -> None:
    stream = Terminal()
    line = status(stream)
    line.update(**figures())
    before = drawn(stream)
    with pytest.raises(BrokenPipeError), line.aside():
        raise BrokenPipeError
    assert drawn(stream) == before


def test_closed_it_leaves_the_terminal_clean_for_good() -> None:
    stream = Terminal()
    line = status(stream)
    line.update(**figures())
    line.close()
    line.redraw()
    assert drawn(stream) == ""


def test_colours_are_used_unless_no_color_is_set() -> None:
    stream = Terminal()
    StatusLine(stream, Clock(), lambda: 200, {}).update(**figures())
    assert drawn(stream).startswith("\x1b[1mrunning\x1b[0m\x1b[2m  1,234")


@pytest.mark.parametrize("dumb", [True, False])
def test_nothing_is_written_where_there_is_no_terminal(
    dumb: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Terminal() if dumb else Pipe()
    if dumb:
        monkeypatch.setenv("TERM", "dumb")
    line = status(stream)
    line.update(**figures())
    line.clear()
    line.redraw()
    banner(stream, RUNNING)
    assert stream.getvalue() == ""


RUNNING = Running(
    version="0.1.0",
    config="traffic_light.yaml",
    way=("generate", "system_window 10s", "stdout"),
    master="local[2]",
    shards=2,
    checkpoint=".streamer/traffic_light",
    resumed=False,
)


def test_the_banner_is_one_line() -> None:
    stream = Terminal()
    banner(stream, RUNNING, {"NO_COLOR": "1"})
    assert stream.getvalue() == (
        "streamer 0.1.0 traffic_light.yaml: generate → system_window 10s → stdout "
        "[local[2], 2 shards, checkpoint .streamer/traffic_light (new)]\n"
    )


def test_a_terminal_without_unicode_gets_ascii() -> None:
    stream = Terminal()
    stream.encoding = "ascii"
    banner(stream, RUNNING, {"NO_COLOR": "1"})
    assert stream.getvalue().isascii()
