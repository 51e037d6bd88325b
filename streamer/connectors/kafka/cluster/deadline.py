"""The time that all questions of one look at a cluster share."""

from __future__ import annotations

import time
from typing import Final

CHECK_TIMEOUT_S: Final = 10.0
"""Seconds within which all is looked at."""

# One that has not answered the first question by then will not have done so in ten. It is less than
# half of that: a stream may have to look in vain twice, at inputs and at outputs.
_FIRST_ANSWER_TIMEOUT_S: Final = 4.0
_MIN_TIMEOUT_S: Final = 0.5


class Deadline:
    """Counts down from when it is made."""

    def __init__(self, seconds: float = CHECK_TIMEOUT_S) -> None:
        """Take the seconds that there are for all."""
        self._until = time.monotonic() + seconds

    @property
    def remaining_s(self) -> float:
        """Seconds for the next question; never none, so that a late one may still be answered."""
        return max(self._until - time.monotonic(), _MIN_TIMEOUT_S)

    @property
    def first_timeout_s(self) -> float:
        """The same for the first question, which tells whether anybody answers at all."""
        return min(self.remaining_s, _FIRST_ANSWER_TIMEOUT_S)
