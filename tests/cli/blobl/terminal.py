"""A terminal with a program on it: keys go in, and what a person would see can be looked at."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyte

ROOT = Path(__file__).parents[3]
CTRL_C, CTRL_D, CTRL_S, TAB, DOWN, END = "\x03", "\x04", "\x13", "\t", "\x1b[B", "\x1b[F"
_SECONDS = 60.0


class Terminal:
    """Runs `streamer` with arguments on a pseudo terminal.

    Attributes:
        process: the program.
        screen: what is on the screen.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        cwd: Path,
        columns: int = 100,
        rows: int = 24,
        stdin: bytes | None = None,
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._before = termios.tcgetattr(theirs)
        self._theirs = theirs
        self.process = subprocess.Popen(
            [sys.executable, "-m", "streamer.cli.main", *arguments],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"},
            stdin=theirs if stdin is None else subprocess.PIPE,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        if stdin is not None:
            assert self.process.stdin is not None
            self.process.stdin.write(stdin)
            self.process.stdin.close()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    @property
    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def underlined(self) -> str:
        """Return what is underlined on the screen."""
        rows = self.screen.buffer
        return "".join(
            rows[y][x].data
            for y in range(self.screen.lines)
            for x in range(self.screen.columns)
            if rows[y][x].underscore
        )

    def wait(self, seen: str | Callable[[], bool]) -> None:
        """Wait until a text is on the screen, or something else is so."""
        until = time.monotonic() + _SECONDS
        while not (seen in self.text if isinstance(seen, str) else seen()):
            assert time.monotonic() < until, f"{seen} did not come; this is there:\n{self.text}"
            self._read()

    def wait_for_end(self) -> int:
        """Wait for the program's end and return its exit code."""
        self.wait(lambda: self.process.poll() is not None)
        self._read()
        return self.process.returncode

    def is_as_before(self) -> bool:
        """Whether the terminal's settings are those of before the program."""
        return termios.tcgetattr(self._theirs) == self._before

    def _read(self) -> None:
        waiting = select.poll()
        waiting.register(self._ours, select.POLLIN)
        if waiting.poll(50):
            # pyte has one screen only: leaving the second one shows the first, which was empty.
            shown, left, after = os.read(self._ours, 65536).partition(b"\x1b[?1049l")
            self._stream.feed(shown)
            if left:
                self.screen.reset()
                self._stream.feed(after)
