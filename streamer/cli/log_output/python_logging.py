"""Records of Python's `logging`, by which libraries report, as lines of the program's log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

from streamer.core.log_format import LogLine
from streamer.core.throttled_log import LineThrottle

_MAX_LENGTH: Final = 500


class PythonLogHandler(logging.Handler):
    """Writes a record as one line, and only one of its kind in a minute.

    A kind is a logger, the first line of the unformatted text, and the class of the exception.
    Clients decide how often there is something to report, so that all would be a flood.
    """

    def __init__(self, log: LogLine, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin.

        Args:
            log: takes level, text and fields.
            clock: gives seconds.
        """
        super().__init__(logging.WARNING)
        self._log = log
        self._counter = LineThrottle(clock)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless one of its kind was written within the minute."""
        try:
            error = record.exc_info[1] if record.exc_info else None
            kind = record.name, _first_line(str(record.msg)), type(error).__name__
            left_out = self._counter.count(kind)
            if left_out is None:
                return
            text = " ".join(record.getMessage().split("\n"))
            if error is not None:
                text = f"{text}: {type(error).__name__}: {_first_line(str(error))}"
            fields: dict[str, Any] = {"logger": record.name}
            if left_out:
                fields["left_out"] = left_out
            level = "ERROR" if record.levelno >= logging.ERROR else "WARN"
            # What a client sends is no fault of the program.
            level = "WARN" if record.name.startswith("aiohttp.") else level
            # What Java calls and fails goes back to Java: the stream that it is of says it.
            level = "DEBUG" if record.name.startswith("py4j") else level
            self._log(level, text[:_MAX_LENGTH], fields)
        except Exception:
            self.handleError(record)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()


def take_python_logs(log: LogLine) -> None:
    """Write what libraries report by `logging` to a log; warnings and what is worse.

    Args:
        log: takes level, text and fields.
    """
    root = logging.getLogger()
    for handler in [one for one in root.handlers if isinstance(one, PythonLogHandler)]:
        root.removeHandler(handler)
    root.addHandler(PythonLogHandler(log))
