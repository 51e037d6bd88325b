"""Rate limits: how those who must not do something too often ask whether they may.

A rate limit is a resource. A component takes it while it is built and asks before each access:

    limit: RateLimit = context.resource(Kind.RATE_LIMIT, parsed[RATE_LIMIT])
    ...
    wait_for_access(limit, ex)

There is one of each label in a worker process; it outlives tasks (see `worker_resource`), several
threads may use it at once, and what it allows is allowed once for all of them.
"""

from __future__ import annotations

from typing import Final, Protocol

from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import Field, ParsedComponent, duration_field

COUNT: Final = "count"
INTERVAL: Final = "interval"

LIMIT_FIELDS: Final = (
    Field(
        COUNT,
        "int",
        "Number of accesses per interval.",
        default=1000,
        check=lambda count: None if count > 0 else "count must be larger than zero",
    ),
    duration_field(INTERVAL, "The interval.", default="1s"),
)

_RETRY_AFTER_ERROR_NS: Final = SECOND


class RateLimitError(StreamerError):
    """A rate limit could not be asked: its server is away, its file cannot be written."""


class RateLimit(Protocol):
    """Something that may be done only so often."""

    def access(self, ex: Execution) -> int:
        """Request one access.

        Returns:
            0 when it is granted (and counted), else for how many nanoseconds to wait before asking
            again.

        Raises:
            RateLimitError: the limit cannot be asked.
        """


class CountedRateLimit:
    """A rate limit whose answers are counted, as Benthos's `rate_limit_*` metrics have them."""

    def __init__(self, limit: RateLimit, component: ParsedComponent) -> None:
        """Take a limit, and where it stands in the config."""
        self.limit = limit
        self._origin = ComponentRef(component)

    def access(self, ex: Execution) -> int:
        """Request one access; see `RateLimit`."""
        labels = self._origin.fields
        ex.count("rate_limit_checked", 1, **labels)
        try:
            wait = self.limit.access(ex)
        except RateLimitError:
            ex.count("rate_limit_error", 1, **labels)
            raise
        except OSError as error:
            ex.count("rate_limit_error", 1, **labels)
            raise RateLimitError(str(error)) from error
        if wait > 0:
            ex.count("rate_limit_triggered", 1, **labels)
        return wait


def wait_for_access(limit: RateLimit, ex: Execution) -> None:
    """Return when an access is granted.

    A limit that cannot be asked is logged, and asked again after a second, as in Benthos.
    """
    while True:
        try:
            wait = limit.access(ex)
        except RateLimitError as error:
            ex.log("ERROR", f"Failed to access rate limit: {error}", {})
            wait = _RETRY_AFTER_ERROR_NS
        if wait <= 0:
            return
        ex.sleep(wait)
