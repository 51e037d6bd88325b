"""A batch policy at work on the driver, where messages come in their own time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.processing.batching import CREATED_COUNTER, BatchPolicy


class Batcher:
    """Collects batches until a limit of the policy is reached, as Benthos does.

    Attributes:
        has_pending: whether messages are held.
    """

    def __init__(self, policy: BatchPolicy, now: Callable[[], int]) -> None:
        """Begin with nothing; `now` is a clock that never runs backwards, ns."""
        self._policy = policy
        self._now = now
        self._pending: Batch = []
        self._size = 0
        self._since = now()

    @property
    def has_pending(self) -> bool:
        """Whether messages are held."""
        return bool(self._pending)

    def add(self, batch: Batch, ex: Execution) -> Iterator[Batch]:
        """Add a batch, which is never cut; return what is closed by it."""
        policy, closes = self._policy, ""
        for message in batch:
            self._pending.append(message)
            if policy.byte_size > 0:
                self._size += len(message.raw)
            closes = closes or policy.closes(self._pending, self._size, ex)
        return self._flush(closes, ex) if closes else iter(())

    def flush_due(self, ex: Execution) -> Iterator[Batch]:
        """Return what is closed since the period has passed."""
        period = self._policy.period
        if period is None or self._now() - self._since < period:
            return iter(())
        return self._flush("period", ex)

    def flush(self, ex: Execution) -> Iterator[Batch]:
        """Return what is held."""
        return self._flush("", ex)

    def _flush(self, closes: str, ex: Execution) -> Iterator[Batch]:
        pending, self._pending, self._size = self._pending, [], 0
        self._since = self._now()
        if not pending:
            return iter(())
        if closes:
            ex.count(CREATED_COUNTER, 1, mechanism=closes, **self._policy.labels)
        return iter(list(self._policy.flush(pending, ex)))
