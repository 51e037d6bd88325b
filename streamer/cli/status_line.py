"""Status on a terminal while a stream starts and runs: a banner, and a line below it.

The line keeps changing, so that one sees that something happens. Both are silent when the stream is
not a terminal: what a machine reads is the log.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, TextIO

from streamer.cli.log_output import is_terminal
from streamer.core.durations import SECOND, format_duration
from streamer.core.log_format import LogLine
from streamer.engine.report.batch_progress import BatchProgress, ProgressLog
from streamer.engine.report.start_progress import PhaseState, StartPhase, StartProgress

_REDRAW_INTERVAL_NS: Final = SECOND // 5
_LONG_BATCH_S: Final = 2.0
"""Seconds after which a micro-batch shows how far it has got."""

_SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_SPINNER: Final = "|/-\\"
_CLEAR: Final = "\r\x1b[2K"
_DIM: Final = "\x1b[2m"
_BOLD: Final = "\x1b[1m"
_RESET: Final = "\x1b[0m"


@dataclass(frozen=True, slots=True)
class BannerInfo:
    """Content of the banner.

    Attributes:
        version: the program's.
        config: the config's file name.
        components: the components that a message passes, in order: `generate`, `system_window 10s`,
            ….
        master: where Spark runs: `local[2]`.
        shards: parts of the window's state, 0 without a window.
        checkpoint: the directory.
        resumed: whether the checkpoint holds an earlier run.
    """

    version: str
    config: str
    components: tuple[str, ...]
    master: str
    shards: int
    checkpoint: str
    resumed: bool


def print_banner(
    stream: TextIO, info: BannerInfo, environ: Mapping[str, str] | None = None
) -> None:
    """Print one line: what runs where, and where its checkpoint is."""
    if not is_terminal(stream):
        return
    arrow = " → " if _can_encode(stream, "→") else " > "
    facts = [info.master]
    if info.shards:
        facts.append(f"{info.shards} shard{'s' if info.shards > 1 else ''}")
    facts.append(f"checkpoint {info.checkpoint} ({'resumed' if info.resumed else 'new'})")
    dim, bold, reset = _choose_styles(environ)
    stream.write(
        f"{bold}streamer {info.version}{reset} {info.config}: "
        f"{arrow.join(info.components)} {dim}[{', '.join(facts)}]{reset}\n"
    )
    stream.flush()


class StatusLine:
    """One line at the bottom of the terminal, redrawn in place, at most five times a second.

    It can be used from several threads: whoever writes to the terminal does so `aside`.
    """

    def __init__(
        self,
        stream: TextIO,
        clock: Callable[[], int],
        width: Callable[[], int] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Take the place to draw.

        Args:
            stream: the standard error stream; nothing is drawn when it is no terminal.
            clock: nanoseconds since the Unix epoch.
            width: the terminal's width in columns, asked at every drawing, as it may change; the
                stream's own when None.
            environ: where `NO_COLOR` is looked up.
        """
        self._stream = stream
        self._clock = clock
        self._width = width or (lambda: _measure_width(stream))
        self._environ = environ
        self._active = is_terminal(stream)
        self._text = ""
        self._state = ""
        self._file_text = ""
        self._is_drawn = False
        self._drawn_at: int | None = None
        self._lock = threading.RLock()

    def update(
        self,
        messages_in: int,
        rate: float | None,
        open_windows: int,
        next_close_ns: int | None,
        dropped: int,
        state: str,
        batch: BatchProgress | None = None,
    ) -> None:
        """Show new figures.

        Args:
            messages_in: taken in since the start.
            rate: messages a second, lately; None when nobody knows.
            open_windows: windows that hold messages.
            next_close_ns: when the next window closes, by the clock; None when none is open.
            dropped: messages dropped since the start, for whatever reason.
            state: `running`, `catching up`, `stopping`, ….
            batch: how far the micro-batch in hand has got; shown when it takes long.
        """
        if not self._active:
            return
        now = self._clock()
        if batch is not None and batch.share is not None:
            # Between two micro-batches nothing is known, and the line must not flicker.
            self._file_text = batch.file_text if batch.share < 1 else ""
        parts = self._format_figures(messages_in, rate, open_windows, next_close_ns, dropped, now)
        if batch is not None and batch.seconds >= _LONG_BATCH_S:
            parts.append(f"micro-batch {batch.seconds:.0f} s: {batch.text}")
        elif self._file_text:
            parts.append(self._file_text)
        self._update_text(state, parts, now)

    def update_start(
        self, phase: PhaseState, batch: BatchProgress | None = None, trouble: str = ""
    ) -> None:
        """Show what a start waits for, and for how long it does.

        Args:
            phase: what.
            batch: how far the first micro-batch has got.
            trouble: what it fails at, or is blocked by, in words; empty when it gets on.
        """
        if not self._active:
            return
        now = self._clock()
        frames = _SPINNER if _can_encode(self._stream, _SPINNER) else _ASCII_SPINNER
        frame = frames[now // _REDRAW_INTERVAL_NS % len(frames)]
        parts = [f"{phase.seconds:.1f} s"]
        if phase.phase == StartPhase.FIRST_BATCH and batch is not None and batch.messages:
            parts.append(batch.text)
        self._update_text(f"{frame} {phase.text}", [trouble, *parts] if trouble else parts, now)

    def _update_text(self, state: str, parts: list[str], now: int) -> None:
        text = (" · " if _can_encode(self._stream, "·") else " | ").join(parts)
        with self._lock:
            changed = state != self._state
            self._state, self._text = state, text
            due = self._drawn_at is None or now - self._drawn_at >= _REDRAW_INTERVAL_NS
            # A clock that was set back must not freeze the line.
            if due or changed or (self._drawn_at or 0) > now:
                self._drawn_at = now
                self.redraw()

    def _format_figures(
        self,
        messages_in: int,
        rate: float | None,
        open_windows: int,
        next_close_ns: int | None,
        dropped: int,
        now: int,
    ) -> list[str]:
        parts = [f"{messages_in:,} in", "-/s" if rate is None else f"{rate:,.0f}/s"]
        if open_windows or next_close_ns is not None:
            parts.append(f"{open_windows:,} open window{'' if open_windows == 1 else 's'}")
        if next_close_ns is not None:
            # Rounded up: at "1s" there is still something to wait for.
            seconds = max(0, -(-(next_close_ns - now) // SECOND))
            parts.append(f"next closes in {format_duration(seconds * SECOND)}")
        if dropped:
            parts.append(f"{dropped:,} dropped")
        return parts

    @property
    def is_active(self) -> bool:
        """Whether the line is drawn: there is a terminal."""
        return self._active

    @contextmanager
    def hide(self) -> Iterator[None]:
        """Take the line off while the block writes to the terminal, and put it back."""
        with self._lock:
            self.clear()
            try:
                yield
            finally:
                self.redraw()

    def clear(self) -> None:
        """Take the line off the terminal, to print something else."""
        with self._lock:
            if self._is_drawn:
                self._is_drawn = False
                self._write(_CLEAR)

    def redraw(self) -> None:
        """Draw the line, as it was at the last update."""
        with self._lock:
            if self._active and self._text:
                self._draw()

    def _draw(self) -> None:
        width = max(0, self._width() - 1)
        state = self._state[:width]
        text = f"  {self._text}"[: width - len(state)]
        dim, bold, reset = _choose_styles(self._environ)
        self._is_drawn = True
        self._write(f"{_CLEAR}{bold}{state}{reset}{dim}{text}{reset}")

    def close(self) -> None:
        """Take the line off for good."""
        with self._lock:
            self.clear()
            self._active = False

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._active = False
        except RuntimeError:
            return  # a signal's handler wrote in the middle of another write; the next one shows


class StartStatus:
    """Draws what a start does, from a thread of its own, until its first micro-batch is delivered.

    Where the status line is not drawn, the log has a line for each phase instead.
    """

    def __init__(
        self,
        status: StatusLine,
        progress: StartProgress,
        batch: Callable[[], BatchProgress | None],
        log: LogLine,
        trouble: Callable[[], str] = lambda: "",
    ) -> None:
        """Begin to draw.

        Args:
            status: the line.
            progress: what the start does.
            batch: returns how far the micro-batch in hand has got.
            log: takes log lines.
            trouble: returns what the first micro-batch fails at, in words; empty for nothing.
        """
        self._trouble = trouble
        self._status = status
        self._progress = progress
        self._batch = batch
        self._log = log
        self._progress_log = ProgressLog()
        self._closed = threading.Event()
        if not status.is_active:
            progress.log_to(log)
        threading.Thread(target=self._run, daemon=True, name="start-status").start()

    def close(self) -> None:
        """Draw no more: the start has failed, or what runs draws for itself."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.is_set() and not self._progress.is_finished:
            self.refresh()
            self._closed.wait(_REDRAW_INTERVAL_NS / SECOND)

    def refresh(self) -> None:
        """Draw, or log, what there is now."""
        phase = self._progress.current
        if phase is None:
            return
        first = phase.phase == StartPhase.FIRST_BATCH
        batch = self._batch() if first else None
        if self._status.is_active:
            self._status.update_start(phase, batch, self._trouble() if first else "")
            return
        self._progress.check_connection()
        if batch is not None and self._progress_log.is_due(batch):
            self._log("INFO", "The first micro-batch is being read", batch.fields)


def _measure_width(stream: TextIO) -> int:
    """Return the width of a stream's terminal. The standard output may be something else."""
    with suppress(OSError, ValueError):
        # A terminal that nobody has told its size says 0.
        if columns := os.get_terminal_size(stream.fileno()).columns:
            return columns
    return shutil.get_terminal_size().columns


def _choose_styles(environ: Mapping[str, str] | None) -> tuple[str, str, str]:
    if (os.environ if environ is None else environ).get("NO_COLOR"):
        return "", "", ""
    return _DIM, _BOLD, _RESET


def _can_encode(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True
