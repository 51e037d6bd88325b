"""A batch policy at work on the driver, where messages come in their own time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamer.message import Batch, Execution
from streamer.pipeline.batching import CREATED_COUNTER, BatchPolicy


class Collector:
    """Collects batches until a limit of the policy is reached, as Benthos does.

    Attributes:
        waits: whether messages are held.
    """

    def __init__(self, policy: BatchPolicy, now: Callable[[], int]) -> None:
        """Begin with nothing; `now` is a clock that never runs backwards, ns."""
        self._policy = policy
        self._now = now
        self._held: Batch = []
        self._size = 0
        self._since = now()

    @property
    def waits(self) -> bool:
        """Whether messages are held."""
        return bool(self._held)

    def add(self, batch: Batch, ex: Execution) -> Iterator[Batch]:
        """Add a batch, which is never cut; return what is closed by it."""
        policy, closes = self._policy, ""
        for message in batch:
            self._held.append(message)
            if policy.byte_size > 0:
                self._size += len(message.raw)
            closes = closes or policy.closes(self._held, self._size, ex)
        return self._flushed(closes, ex) if closes else iter(())

    def due(self, ex: Execution) -> Iterator[Batch]:
        """Return what is closed since the period has passed."""
        period = self._policy.period
        if period is None or self._now() - self._since < period:
            return iter(())
        return self._flushed("period", ex)

    def rest(self, ex: Execution) -> Iterator[Batch]:
        """Return what is held."""
        return self._flushed("", ex)

    def _flushed(self, closes: str, ex: Execution) -> Iterator[Batch]:
        held, self._held, self._size = self._held, [], 0
        self._since = self._now()
        if not held:
            return iter(())
        if closes:
            ex.count(CREATED_COUNTER, 1, mechanism=closes, **self._policy.labels)
        return iter(list(self._policy.flush(held, ex)))
