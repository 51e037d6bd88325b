"""Runs both sides of a comparison: feeds them, waits for their end, and bounds time and disk."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from streamer.core.errors import StreamerError
from streamer.tools.comparison.programs import Program
from streamer.tools.comparison.recording import RecordedMessage, write_envelopes
from streamer.tools.comparison.side_config import DELAY, SideConfig

MAX_ROWS_BYTES: Final = 4 << 30
"""Bytes of rows of a side."""

_POLL_S: Final = 0.1
_QUIET_S: Final = 2.0
"""Seconds without a new row after which a side that has closed its last window is done."""

_STOP_S: Final = 30
_MAX_LOG_CHARS: Final = 1500
_WAKE_UP: Final = b"{}\n"
"""A line that is no envelope: it is dropped, and its micro-batch shows that a side runs."""


@dataclass(frozen=True, slots=True)
class WindowTimes:
    """The event times of a recording, for windows that close by the system clock.

    Attributes:
        first: the start of the first window, ns.
        last: the end of the last window to close, with its lateness, ns.
        step: the distance of windows' starts, ns; a whole number of seconds.
    """

    first: int
    last: int
    step: int


@dataclass(slots=True)
class Side:
    """A program with its config.

    Attributes:
        title: for errors.
        program: the program.
        config: the config.
        directory: its own directory.
        command: the command line.
        http_port: where it serves its state; 0 if it does not.
        process: the process, once it runs.
    """

    title: str
    program: Program
    config: SideConfig
    directory: Path
    command: tuple[str, ...]
    http_port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self, has_pipe: bool) -> None:
        """Start the process.

        Raises:
            StreamerError: it cannot be started.
        """
        with (self.directory / "log.txt").open("wb") as log:
            try:
                self.process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.PIPE if has_pipe else subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=self.program.make_environment(os.environ),
                    start_new_session=True,
                )
            except OSError as e:
                text = (e.strerror or str(e)).lower()
                raise StreamerError(f"{self.title} cannot be started: {text}") from None

    def stop(self) -> None:
        """End the process and all that it has started; nothing if it has ended."""
        process = self.process
        if process is None:
            return
        if process.stdin is not None:
            _close(process.stdin)
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                _signal_group(process.pid, number)
                try:
                    process.wait(_STOP_S)
                except subprocess.TimeoutExpired:
                    continue
        # A child of it that is left would go on writing.
        _signal_group(process.pid, signal.SIGKILL)

    def rows_bytes(self) -> int:
        """Return the size of its rows."""
        paths = self.config.rows.values()
        return sum(path.stat().st_size for path in paths if path.exists())

    def check(self) -> bool:
        """Return whether the process has ended well.

        Raises:
            StreamerError: it has ended with an error, or writes too much.
        """
        if self.rows_bytes() > MAX_ROWS_BYTES:
            raise StreamerError(
                f"{self.title} makes more than {MAX_ROWS_BYTES >> 30} GiB of rows; give fewer "
                "messages with --limit"
            )
        code = None if self.process is None else self.process.poll()
        if code:
            raise StreamerError(f"{self.title} has ended with exit code {code}{self.log_end()}")
        return code == 0

    def log_end(self) -> str:
        """Return the end of its log, on lines of its own."""
        log = (self.directory / "log.txt").read_bytes()[-4 * _MAX_LOG_CHARS :]
        text = log.decode(errors="replace").strip()[-_MAX_LOG_CHARS:]
        return f":\n{text}" if text else ""

    def is_ready(self) -> bool:
        """Return whether it has a first micro-batch behind it; True if it serves no state."""
        if not self.http_port:
            return True
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=2)
        try:
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def find_free_port() -> int:
    """Return a port of the loopback interface that is free now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def run_files(sides: Sequence[Side], seconds: float) -> None:
    """Run sides that read their messages from a file, until all have read it.

    Raises:
        StreamerError: a side fails, or takes too long.
    """
    deadline = time.monotonic() + seconds
    with _Running(sides, has_pipe=False):
        while not all([side.check() for side in sides]):
            _check_deadline(sides, deadline, seconds)
            time.sleep(_POLL_S)


def run_by_clock(
    sides: Sequence[Side],
    messages: Sequence[RecordedMessage],
    windows: WindowTimes,
    moved: int,
    seconds: float,
    report: Callable[[str], None],
) -> None:
    """Run sides whose windows close by the system clock: event times are moved to now.

    Args:
        sides: read their messages from a pipe, which stays open until all windows have closed.
        messages: the messages.
        windows: their times.
        moved: by how many seconds the configs move times by themselves.
        seconds: how long it may take.
        report: gets a line on how long it takes.

    Raises:
        StreamerError: a side fails, or it takes too long.
    """
    deadline = time.monotonic() + seconds
    with _Running(sides, has_pipe=True):
        for side in sides:
            _write(side, _WAKE_UP)
        while not all(side.is_ready() for side in sides):
            for side in sides:
                side.check()
            _check_deadline(sides, deadline, seconds)
            time.sleep(_POLL_S)
        delay, shift = _choose_delay(windows, moved, len(messages))
        left = (windows.last + shift) / 1e9 - time.time()
        if time.monotonic() + left > deadline:
            raise StreamerError(
                f"the windows close by the system clock, which takes {left:,.0f} s more than "
                f"--within {seconds:,.0f}s allows; give fewer messages, or more time"
                if left > seconds
                else f"the windows close in {left:,.0f} s, and --within has less left"
            )
        report(f"windows close by the system clock: this takes {max(left, 0):,.0f} s")
        _feed(sides, messages, delay)
        _wait_closed(sides, windows.last + shift, deadline, seconds)
        for side in sides:
            assert side.process is not None and side.process.stdin is not None
            _close(side.process.stdin)
        while not all([side.check() for side in sides]):
            _check_deadline(sides, deadline, seconds)
            time.sleep(_POLL_S)


class _Running:
    """Starts sides, and ends whatever of them is left."""

    def __init__(self, sides: Sequence[Side], has_pipe: bool) -> None:
        self._sides = sides
        self._has_pipe = has_pipe

    def __enter__(self) -> None:
        try:
            for side in self._sides:
                side.start(self._has_pipe)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        for side in self._sides:
            side.stop()


def _choose_delay(windows: WindowTimes, moved: int, messages: int) -> tuple[str, int]:
    """Return what times are moved by besides, as a duration, and by how much in all, in ns.

    The first window begins a moment from now, so that all messages are there before it closes.
    """
    begin = time.time_ns() + 1_500_000_000 + messages * 100_000
    shift = -(-(begin - windows.first) // windows.step) * windows.step
    rest = shift // 1_000_000_000 - moved
    days, rest = divmod(rest, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    return f"P{days}DT{hours}H{minutes}M{left}S", shift


def _feed(sides: Sequence[Side], messages: Sequence[RecordedMessage], delay: str) -> None:
    """Write the messages to all sides at once; one that ends meanwhile is noticed later."""

    def feed(side: Side) -> None:
        assert side.process is not None and side.process.stdin is not None
        with suppress(OSError):  # as in `_write`
            write_envelopes(messages, side.process.stdin, {DELAY: delay})
            side.process.stdin.flush()

    threads = [threading.Thread(target=feed, args=(side,), daemon=True) for side in sides]
    for thread in threads:
        thread.start()


def _wait_closed(sides: Sequence[Side], last: int, deadline: float, seconds: float) -> None:
    """Wait until the last window has closed, and no side has given a row for a moment."""
    before, quiet_since = -1, time.monotonic()
    while True:
        for side in sides:
            side.check()
        size = sum(side.rows_bytes() for side in sides)
        if size != before:
            before, quiet_since = size, time.monotonic()
        is_quiet = time.monotonic() - quiet_since > _QUIET_S
        if is_quiet and time.time_ns() > last + int(_QUIET_S * 1e9):
            return
        _check_deadline(sides, deadline, seconds)
        time.sleep(_POLL_S)


def _check_deadline(sides: Sequence[Side], deadline: float, seconds: float) -> None:
    if time.monotonic() < deadline:
        return
    late = [side for side in sides if side.process is not None and side.process.poll() is None]
    names = " and ".join(side.title for side in late)
    ends = "".join(side.log_end() for side in late)
    raise StreamerError(
        f"{names or 'the comparison'} took more than {seconds:,.0f} s; allow more with "
        f"--within{ends}"
    )


def _write(side: Side, line: bytes) -> None:
    assert side.process is not None and side.process.stdin is not None
    with suppress(OSError):  # one that has ended is noticed by its exit code
        side.process.stdin.write(line)
        side.process.stdin.flush()


def _close(pipe: IO[bytes]) -> None:
    with suppress(OSError):
        pipe.close()
