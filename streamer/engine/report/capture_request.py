"""Whether a task sends the results of its windows to the driver, beside what it writes."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

CAPTURES_RESULTS: Final[ContextVar[bool]] = ContextVar("captures_results", default=False)
"""Set when each task begins; a stream with `retention` captures results in any case."""
