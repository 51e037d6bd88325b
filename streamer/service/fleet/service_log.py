"""The service's own log: written, and its newest lines kept for the API."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from streamer.core.redaction import Redaction
from streamer.service.fleet.log_tail import LogTail

STREAM_FIELD: Final = "stream"
"""The field of lines that are of a stream; these have a log of their own."""

_FINE_LEVELS: Final = frozenset({"DEBUG", "TRACE"})


class ServiceLog:
    """A log that is called as `LogLine`.

    Attributes:
        tail: the newest lines that are no stream's, without secrets.
    """

    def __init__(
        self,
        emit: Callable[[str, str, Mapping[str, Any], int], None],
        secrets: Mapping[str, str],
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Take the writer of lines.

        Args:
            emit: writes a line: level, text, fields, and the time, Unix ns.
            secrets: texts that are not to be seen, by what is shown instead.
            clock: gives Unix ns.
        """
        self.tail = LogTail()
        self._emit = emit
        self._redaction = Redaction(secrets)
        self._clock = clock

    def __call__(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Write a line, and keep it unless it is a stream's."""
        now = self._clock()
        self._emit(level, text, fields, now)
        if STREAM_FIELD not in fields and level not in _FINE_LEVELS:
            shown = self._redaction.redact_value(dict(fields))
            self.tail.add(now, level, self._redaction.redact_text(text), shown)
