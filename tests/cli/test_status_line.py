"""The banner and the live status line: on a terminal only, one line, never in a log's way."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios
import time
from dataclasses import replace
from typing import Any

import pytest

from streamer.cli.status_line import BannerInfo, StartStatus, StatusLine, print_banner
from streamer.engine.report.batch_progress import BatchProgress
from streamer.engine.report.start_progress import PhaseState, StartPhase, StartProgress

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


@pytest.mark.parametrize(("columns", "drawn_columns"), [(20, 19), (120, 81), (0, 29)])
def test_the_width_is_that_of_the_terminal_that_it_is_drawn_on(
    columns: int, drawn_columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    with os.fdopen(ours, "rb", buffering=0) as read, os.fdopen(theirs, "w") as written:
        StatusLine(written, Clock(), environ={"NO_COLOR": "1"}).update(**figures())
        text = read.read(1_000).decode()
    assert len(text.removeprefix("\r\x1b[2K")) == drawn_columns


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
    with line.hide():
        stream.write("a result\n")
    assert stream.getvalue().endswith(f"\r\x1b[2Ka result\n\r\x1b[2K{before}")


def test_a_write_that_fails_aside_leaves_the_line_on_the_terminal() -> None:
    stream = Terminal()
    line = status(stream)
    line.update(**figures())
    before = drawn(stream)
    with pytest.raises(BrokenPipeError), line.hide():
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


READING = BatchProgress(4.2, 1_240_000, "cars.jsonl", 0.41, 12.0)


def test_a_micro_batch_that_takes_long_says_how_far_it_is() -> None:
    stream, clock = Terminal(), Clock()
    line = status(stream, clock)
    line.update(**figures(open_windows=0, next_close_ns=None, dropped=0, batch=READING))
    assert drawn(stream) == (
        "running  1,234,567 in · 12,300/s · "
        "micro-batch 4 s: 41 % of cars.jsonl, about 12 s left, 1,240,000 messages read"
    )
    clock.now += SECOND
    line.update(**figures(next_close_ns=None, batch=BatchProgress(1.9, 1_240_000)))
    assert "micro-batch" not in drawn(stream)


def test_a_start_says_what_is_waited_for_beside_its_seconds() -> None:
    stream, clock = Terminal(), Clock()
    line = status(stream, clock)
    line.update_start(PhaseState(StartPhase.CONNECT, "orders", 3.21))
    assert drawn(stream) == "⠋ connecting to orders  3.2 s"
    clock.now += SECOND // 5
    line.update_start(PhaseState(StartPhase.FIRST_BATCH, "", 0.2), BatchProgress(0.2, 0))
    assert drawn(stream) == "⠙ first micro-batch  0.2 s"
    clock.now += SECOND // 5
    line.update_start(PhaseState(StartPhase.FIRST_BATCH, "", 4.2), READING)
    assert drawn(stream) == (
        "⠹ first micro-batch  4.2 s · 41 % of cars.jsonl, about 12 s left, 1,240,000 messages read"
    )


def test_a_terminal_without_unicode_has_another_spinner() -> None:
    stream, clock = Terminal(), Clock()
    stream.encoding = "ascii"
    line = status(stream, clock)
    turns = []
    for _ in range(5):
        line.update_start(PhaseState(StartPhase.JAVA, "", 1.0))
        turns.append(drawn(stream))
        clock.now += SECOND // 5
    assert turns == [f"{turn} starting Java  1.0 s" for turn in "|/-\\|"]


class Lines:
    """Takes the lines of a log."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, level: str, text: str, fields: Any) -> None:
        assert level == "INFO"
        self.lines.append((text, dict(fields)))


def seen_until(stream: io.StringIO, what: str, times: int = 1) -> None:
    until = time.monotonic() + 60
    while stream.getvalue().count(what) < times:
        assert time.monotonic() < until, stream.getvalue()
        time.sleep(0.01)


def test_a_start_is_drawn_by_itself_until_it_is_over() -> None:
    stream, log, progress = Terminal(), Lines(), StartProgress()
    line = StatusLine(stream, time.time_ns, lambda: 200, {"NO_COLOR": "1"})
    start = StartStatus(line, progress, lambda: READING, log)
    try:
        # Nobody draws but its thread: the seconds go on while the start waits for something.
        progress.begin(StartPhase.JAVA)
        seen_until(stream, " starting Java  ", times=3)
        progress.begin(StartPhase.FIRST_BATCH)
        seen_until(stream, "41 % of cars.jsonl")
        progress.finish()
        line.update(**figures())
        time.sleep(0.5)
        assert drawn(stream).startswith("running ")
        assert log.lines == [], "what is drawn is not logged besides"
    finally:
        start.close()


def test_without_a_terminal_a_start_is_logged() -> None:
    log, progress = Lines(), StartProgress()
    reading: list[BatchProgress | None] = [None]
    line = StatusLine(Pipe(), time.time_ns)
    start = StartStatus(line, progress, lambda: reading[0], log)
    start.close()
    progress.begin(StartPhase.SPARK)
    progress.begin(StartPhase.FIRST_BATCH)
    for seconds in (0, 9, 10.2, 11, 19, 25):
        reading[0] = BatchProgress(seconds, 500, "cars.jsonl", 0.41, 12.0)
        start.refresh()
    progress.finish()
    share = {"messages": 500, "share": "41 % of cars.jsonl", "seconds_left": 12}
    assert log.lines == [
        ("Starting Spark", {"seconds": 0.0}),
        ("The first micro-batch is being read", {"seconds": 10.2, **share}),
        ("The first micro-batch is being read", {"seconds": 25, **share}),
        ("The first micro-batch is delivered", {"seconds": 0.0}),
    ]


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
    print_banner(stream, RUNNING)
    assert stream.getvalue() == ""


RUNNING = BannerInfo(
    version="0.1.0",
    config="traffic_light.yaml",
    components=("generate", "system_window 10s", "stdout"),
    master="local[2]",
    shards=2,
    checkpoint=".streamer/traffic_light",
    resumed=False,
)


def test_the_banner_is_one_line() -> None:
    stream = Terminal()
    print_banner(stream, RUNNING, {"NO_COLOR": "1"})
    assert stream.getvalue() == (
        "streamer 0.1.0 traffic_light.yaml: generate → system_window 10s → stdout "
        "[local[2], 2 shards, checkpoint .streamer/traffic_light (new)]\n"
    )


def test_a_terminal_without_unicode_gets_ascii() -> None:
    stream = Terminal()
    stream.encoding = "ascii"
    print_banner(stream, RUNNING, {"NO_COLOR": "1"})
    assert stream.getvalue().isascii()


def test_the_share_of_files_stays_between_micro_batches_that_take_little_time() -> None:
    stream, clock = Terminal(), Clock()
    line = status(stream, clock)
    line.update(**figures(next_close_ns=None, batch=replace(READING, seconds=0.4)))
    for batch, is_shown in ((None, True), (replace(READING, seconds=0.1, share=1.0), False)):
        clock.now += SECOND
        line.update(**figures(next_close_ns=None, batch=batch))
        assert drawn(stream).endswith(" · 41 % of cars.jsonl, about 12 s left") == is_shown
