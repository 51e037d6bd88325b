"""Log of a stream in a program: lines of Python's `logging`, without secrets."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any, Final

from streamer.core.redaction import Redaction
from streamer.service.fleet.log_tail import LoggedLine, LogTail
from streamer.service.monitoring.stream_figures import MarkerKind
from streamer.service.monitoring.stream_view import StreamView

LOGGER: Final = logging.getLogger("streamer")
"""The logger of all streams."""

_TRACE: Final = 5
_LEVELS: Final[Mapping[str, int]] = {
    "TRACE": _TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_NO_LEVEL: Final = logging.CRITICAL + 1
_FINE_LEVELS: Final = frozenset({"DEBUG", "TRACE"})
_ERROR_LEVELS: Final = frozenset({"ERROR", "FATAL"})


class LibraryLog:
    """Takes the lines of one stream: keeps the newest ones, and passes them to `logging`."""

    def __init__(self, stream: str, level: str, redaction: Redaction, view: StreamView) -> None:
        """Begin.

        Args:
            stream: the stream's name.
            level: the lowest level that is passed on.
            redaction: takes secrets out.
            view: shows errors.
        """
        self._stream, self._redaction, self._view = stream, redaction, view
        self._threshold = {"ALL": _TRACE}.get(level, _LEVELS.get(level, _NO_LEVEL))
        self._tail = LogTail()

    def __call__(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Take a line."""
        number = _LEVELS.get(level, logging.INFO)
        if number < self._threshold:
            return
        text, fields = self._redaction.redact_text(text), self._redaction.redact_value(fields)
        if level in _ERROR_LEVELS:
            self._view.figures.mark(MarkerKind.ERROR, text)
        if level not in _FINE_LEVELS:
            self._tail.add(time.time_ns(), level, text, fields)
        self._view.on_line(level, text, fields)
        shown = "".join(f" {name}={value}" for name, value in fields.items())
        LOGGER.log(
            number,
            "%s: %s%s",
            *(self._stream, text, shown),
            extra={"stream": self._stream, "fields": dict(fields)},
        )

    def lines(self) -> list[LoggedLine]:
        """Return the newest lines, at most 1,000."""
        return self._tail.lines_after(0)
