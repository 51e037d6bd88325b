"""Queue of the batches of a micro-batch that are still to be sent, on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.engine.report.undelivered import UndeliveredBatches, decode_undelivered

_TargetKey = tuple[int, str, int, str]


class RedeliveryQueue:
    """Batches that tasks could not deliver; those that go to one output keep their order.

    An output that is away is tried with one batch, for a try that fails is to cost little. Once
    that is sent, all others that go there follow.
    """

    def __init__(self, frames: Iterable[Frame]) -> None:
        """Take the frames of kind `UNDELIVERED` among some, which are in order."""
        self._queues: dict[_TargetKey, list[UndeliveredBatches]] = {}
        self._reachable: set[_TargetKey] = set()
        for key, some in _group_by_key(frames).items():
            self._queues[key] = sorted(some, key=attrgetter("order"))

    @property
    def first(self) -> UndeliveredBatches | None:
        """The batch that has waited longest; None when all is sent."""
        return next((queue[0] for queue in self._queues.values() if queue), None)

    def count_messages(self) -> int:
        """Return how many messages wait."""
        return sum(_count_messages(one) for queue in self._queues.values() for one in queue)

    def take(self) -> list[UndeliveredBatches]:
        """Take what is to be sent next from what waits."""
        taken: list[UndeliveredBatches] = []
        for key, queue in self._queues.items():
            # A transaction is of all batches of its part.
            if key in self._reachable or key[3]:
                taken += queue
                queue.clear()
            elif queue:
                first = queue.pop(0)
                taken.append(first._replace(batches=first.batches[:1]))
                if len(first.batches) > 1:
                    queue.insert(0, first._replace(batches=first.batches[1:]))
        return taken

    def put_back(self, taken: Sequence[UndeliveredBatches], frames: Iterable[Frame]) -> bool:
        """Put back what could not be sent again.

        Args:
            taken: what was taken.
            frames: what the try has returned, in order.

        Returns:
            Whether anything was sent.
        """
        left = _group_by_key(frames)
        tried = {_key_of(one) for one in taken}
        for key, some in left.items():
            queue = self._queues.setdefault(key, [])
            # What has come here on this try only, from an output around it, is newer.
            self._queues[key] = some + queue if key in tried else queue + some
        self._reachable = tried - left.keys()
        return sum(map(_count_messages, taken)) > sum(
            _count_messages(one) for some in left.values() for one in some
        )


def _group_by_key(frames: Iterable[Frame]) -> dict[_TargetKey, list[UndeliveredBatches]]:
    groups: dict[_TargetKey, list[UndeliveredBatches]] = {}
    for frame in frames:
        if frame.kind == FrameKind.UNDELIVERED:
            undelivered = decode_undelivered(frame.body)
            groups.setdefault(_key_of(undelivered), []).append(undelivered)
    return groups


def _key_of(undelivered: UndeliveredBatches) -> _TargetKey:
    return undelivered.output, undelivered.path, undelivered.start, undelivered.part


def _count_messages(undelivered: UndeliveredBatches) -> int:
    return sum(map(len, undelivered.batches))
