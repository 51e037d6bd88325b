"""The start of a stream whose input's server may be away: it waits, as a stream that runs does."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event
from typing import Final

from streamer.core.errors import StreamerError, is_transient
from streamer.core.log_format import LogLine

_FIRST_PAUSE_S: Final = 1.0
_MAX_PAUSE_S: Final = 10.0
_LOG_REPEAT_INTERVAL_S: Final = 60.0
"""The same reason is logged again after so long."""


def open_with_retries(
    start: Callable[[], None],
    stopping: Event,
    log: LogLine,
    on_wait: Callable[[str], None],
    now: Callable[[], float] = time.monotonic,
) -> bool:
    """Open a stream's inputs and outputs, however long their servers are away.

    Args:
        start: opens them; what it has begun when it raises is undone.
        stopping: ends the wait.
        log: takes log lines.
        on_wait: called with the reason for the wait.
        now: a clock that never runs backwards, seconds.

    Returns:
        Whether they are open; False when the program is to stop.

    Raises:
        StreamerError: they cannot be opened, and waiting is of no use.
    """
    pause, logged, logged_at = _FIRST_PAUSE_S, "", float("-inf")
    was_away = False
    while True:
        try:
            start()
            return True
        except StreamerError as error:
            if not is_transient(error, returned=was_away):
                raise
            was_away, text = True, str(error)
        if text != logged or now() - logged_at >= _LOG_REPEAT_INTERVAL_S:
            log("ERROR", f"Waiting to start: {text}", {})
            logged, logged_at = text, now()
        on_wait(text)
        if stopping.wait(pause):
            return False
        pause = min(pause * 2, _MAX_PAUSE_S)
