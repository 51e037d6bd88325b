"""`rate_limit`: lets messages pass only as fast as a rate limit allows.

It "throttles the throughput of a pipeline according to a specified rate_limit resource". Messages
wait here, in order.
"""

from __future__ import annotations

from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.rate_limit import RateLimit, wait_for_access
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec

RESOURCE: Final = "resource"

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "rate_limit",
    "Passes messages only as fast as a rate limit allows; each message requests one access.",
    description=(
        "All components that name a rate limit share it. If it is unavailable, the error is "
        "logged and the request is retried after a second. Messages wait within their "
        "micro-batch, which takes longer; keep micro-batches small for low limits."
    ),
    fields=(Field(RESOURCE, "string", "The label of the rate limit.", refers=Kind.RATE_LIMIT),),
    categories=("Utility",),
    limits="its micro-batch waits with it",
)


class RateLimitProcessor:
    """Waits for a rate limit before each message passes."""

    def __init__(self, limit: RateLimit) -> None:
        """Take the limit."""
        self._limit = limit

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return the batch when all of its messages may pass."""
        return [self.process_each(batch, ex)]

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Return the messages when all may pass."""
        for _ in messages:
            wait_for_access(self._limit, ex)
        return messages


def build(parsed: ParsedFields, context: BuildContext) -> RateLimitProcessor:
    """Find the limit."""
    return RateLimitProcessor(context.resource(Kind.RATE_LIMIT, parsed[RESOURCE]))
