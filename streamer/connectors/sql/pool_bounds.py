"""Settings of SQLAlchemy's pool for the bounds that configs set for Go's `database/sql`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

_SECOND_NS: Final = 10**9
# Go's pool waits for as long as it takes.
_UNBOUNDED_WAIT_S: Final = 10.0**6


@dataclass(frozen=True, slots=True)
class PoolBounds:
    """The bounds of a pool.

    Attributes:
        idle: connections that are kept while nobody uses them; 0 or less for none.
        open: connections at once; 0 or less for no bound.
        idle_time: ns after which a connection that nobody uses is closed; 0 or less for never.
        life_time: ns after which a connection is closed; 0 or less for never.
    """

    idle: int = 2
    open: int = 0
    idle_time: int = 0
    life_time: int = 0

    def pool_arguments(self) -> dict[str, Any]:
        """Return the arguments of SQLAlchemy's engine for its pool."""
        from sqlalchemy.pool import NullPool, QueuePool

        if self.idle <= 0 and self.open <= 0:
            return {"poolclass": NullPool}
        kept = max(self.idle, 1)  # to QueuePool, 0 is no bound
        if self.open > 0:
            kept = min(kept, self.open)
        times = [time for time in (self.idle_time, self.life_time) if time > 0]
        return {
            "poolclass": QueuePool,
            "pool_size": kept,
            "max_overflow": self.open - kept if self.open > 0 else -1,
            "pool_timeout": _UNBOUNDED_WAIT_S,
            "pool_recycle": min(times) / _SECOND_NS if times else -1,
            "pool_use_lifo": True,
        }
