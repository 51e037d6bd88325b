"""Output of users' code: what it prints becomes lines of the log, with the component's label."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO

MAX_LINES: Final = 1_000
"""Lines of one call of a processor that are logged."""

MAX_LINE_CHARACTERS: Final = 4_000

LogText = Callable[[str, str], None]
"""Logs a level and a text."""


class _Printer:
    """Lines that a thread prints while it runs users' code."""

    def __init__(self, log: LogText) -> None:
        self._log = log
        self._open = {"INFO": "", "WARN": ""}
        self._count = 0

    def write(self, level: str, text: str) -> None:
        *whole, rest = (self._open[level] + text).split("\n")
        for line in whole:
            self._write_line(level, line)
        while len(rest) > MAX_LINE_CHARACTERS:
            self._write_line(level, rest[:MAX_LINE_CHARACTERS])
            rest = rest[MAX_LINE_CHARACTERS:]
        self._open[level] = rest

    def finish(self) -> None:
        for level, rest in self._open.items():
            if rest:
                self._write_line(level, rest)
        if self._count > MAX_LINES:
            self._log("WARN", f"{self._count - MAX_LINES:,} further lines were printed")

    def _write_line(self, level: str, line: str) -> None:
        self._count += 1
        text = line.rstrip("\r")
        if text.strip() and self._count <= MAX_LINES:
            self._log(level, text[:MAX_LINE_CHARACTERS])


_LOCAL: Final = threading.local()


class _Stream:
    """A standard stream; what threads print that run users' code goes to their printers."""

    def __init__(self, stream: TextIO, level: str) -> None:
        self._stream, self._level = stream, level

    def write(self, text: str) -> int:
        printer: _Printer | None = getattr(_LOCAL, "printer", None)
        if printer is None:
            return self._stream.write(text)
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        printer.write(self._level, text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if getattr(_LOCAL, "printer", None) is None:
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def print_to(log: LogText) -> Iterator[None]:
    """Log what this thread prints meanwhile: of the standard output as INFO, of errors as WARN."""
    if not isinstance(sys.stdout, _Stream):
        sys.stdout = _Stream(sys.stdout, "INFO")
    if not isinstance(sys.stderr, _Stream):
        sys.stderr = _Stream(sys.stderr, "WARN")
    before = getattr(_LOCAL, "printer", None)
    printer = _LOCAL.printer = _Printer(log)
    try:
        yield
    finally:
        _LOCAL.printer = before
        printer.finish()
