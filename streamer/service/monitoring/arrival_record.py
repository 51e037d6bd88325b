"""Record of when messages of a stream last came in, and since when it is behind."""

from __future__ import annotations

import time
from collections.abc import Callable


class ArrivalRecord:
    """Times of a stream: of its newest message, and of when it fell behind its input.

    Attributes:
        last_message: when the figure of messages last grew, Unix s; None before that.
        behind_since: since when more messages wait than a micro-batch takes, Unix s; None when
            they do not.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Begin at a start; `clock` gives Unix s."""
        self._clock = clock
        self._messages: int | None = None
        self.last_message: float | None = None
        self.behind_since: float | None = None

    def update(self, messages: int, *, is_behind: bool) -> None:
        """Take new figures.

        Args:
            messages: taken in so far.
            is_behind: whether more messages wait at the input than one micro-batch takes.
        """
        now = self._clock()
        if self._messages is None or messages > self._messages:
            self.last_message = now
        self._messages = messages
        if not is_behind:
            self.behind_since = None
        elif self.behind_since is None:
            self.behind_since = now
