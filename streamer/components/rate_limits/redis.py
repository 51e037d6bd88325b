"""`redis`: so many accesses in a time, for all that know a key in Redis.

"A rate limit implementation using Redis. It works by using a simple token bucket algorithm to limit
the number of requests to a given count within a given time period. The rate limit is shared across
all instances that use the same Redis instance."
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from streamer.connectors.redis import (
    CLIENT_FIELDS,
    PACKAGES,
    RedisError,
    client_problems,
    redis_errors,
    shared_client,
)
from streamer.connectors.redis.client import Client
from streamer.core.durations import MILLISECOND, SECOND
from streamer.core.execution import Execution
from streamer.sdk.rate_limit import COUNT, INTERVAL, LIMIT_FIELDS, RateLimitError
from streamer.sdk.spec import BuildContext, Field, Kind, ParsedFields, Spec

KEY: Final = "key"


def _check(parsed: ParsedFields) -> Iterable[tuple[str, str]]:
    yield from client_problems(parsed)
    if (parsed[INTERVAL] or SECOND) < MILLISECOND:
        yield INTERVAL, "must be 1ms or longer, which is as fine as Redis counts time"


SPEC: Final = Spec(
    Kind.RATE_LIMIT,
    "redis",
    "Allows a number of accesses in a time, for all workers of all machines together.",
    description=(
        "Redis counts accesses under a key that ends with the interval. Another stream, or "
        "Redpanda Connect itself, shares the limit if it uses the same key."
    ),
    status="experimental",
    fields=(
        *CLIENT_FIELDS,
        *LIMIT_FIELDS,
        Field(
            KEY,
            "string",
            "The key in Redis.",
            check=lambda key: None if key else "must not be empty",
        ),
    ),
    check=_check,
    begin={"key": "requests"},
    categories=("Services",),
    requires=PACKAGES,
)

# An access that is too many still counts, but the key ends when it would have.
_SCRIPT: Final = """
local taken = redis.call('INCR', KEYS[1])
if taken == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
if taken <= tonumber(ARGV[1]) then return 0 end
return redis.call('PTTL', KEYS[1])
"""


class RedisRateLimit:
    """Counts in Redis."""

    def __init__(self, connect: Callable[[], Client], key: str, count: int, interval: int) -> None:
        """Take what gives the client, the key, and the limit; `interval` in nanoseconds."""
        self._connect = connect
        self._key = key
        self._count = count
        self._interval = max(interval // MILLISECOND, 1)

    def access(self, ex: Execution) -> int:
        """Return 0, or for how many nanoseconds there is no access."""
        try:
            with redis_errors():
                reply: Any = self._connect().eval(
                    _SCRIPT, 1, self._key, str(self._count), str(self._interval)
                )
        except RedisError as error:
            raise RateLimitError(f"accessing redis rate limit: {error}") from None
        wait = int(reply)
        # The last of the milliseconds may be over before the key is.
        return 0 if wait == 0 else max(wait, 1) * MILLISECOND


def build(parsed: ParsedFields, context: BuildContext) -> RedisRateLimit:
    """Take the settings; the client is made at the first use."""
    return RedisRateLimit(
        lambda: shared_client(parsed, context),
        parsed[KEY],
        parsed[COUNT],
        parsed[INTERVAL] or SECOND,
    )
