"""Small ranges of a task, fetched together before they are read: one request to each broker.

A micro-batch of 200 partitions has few records of each. Asked one after the other, each range would
cost a round trip; so ranges that follow one another are asked for in groups, and the next group is
under way while one is read. Two groups are in memory at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.input.fetch_requests import BrokerAnswer, PendingAnswer
from streamer.connectors.kafka.input.partition_fetcher import PartitionFetcher, PartitionRange

GROUP_BYTES: Final = 2 << 20
"""The most bytes of a group's answer, unless a batch of records is larger."""

_SMALL_SHARE: Final = 8
"""A range is small that may have this part of a group at most."""


class FetchAhead:
    """The ranges that a task will read, in their order. Not for several threads at once."""

    def __init__(self, ranges: Iterable[PartitionRange], size: int = GROUP_BYTES) -> None:
        """Take the ranges, and the most bytes of a group's answer."""
        self._left = list(reversed(list(ranges)))
        self._size = min(size, GROUP_BYTES)
        self._group: dict[PartitionRange, BrokerAnswer] = {}
        self._next: tuple[list[PartitionRange], PendingAnswer] | None = None

    def take(self, fetcher: PartitionFetcher, target: PartitionRange) -> BrokerAnswer | None:
        """Return what has been fetched of a range; None where it is to be requested by itself.

        Args:
            fetcher: fetches.
            target: the range that is read now.
        """
        if target not in self._group and self._is_ahead(target):
            if self._next is None or target not in self._next[0]:
                self._skip_to(target)
                self._begin(fetcher)
            self._receive(fetcher)
        return self._group.pop(target, None)

    def _is_ahead(self, target: PartitionRange) -> bool:
        return target in self._left or (self._next is not None and target in self._next[0])

    def _skip_to(self, target: PartitionRange) -> None:
        while self._left and self._left[-1] != target:
            self._left.pop()

    def _begin(self, fetcher: PartitionFetcher) -> None:
        """Request the next group: small ranges of different partitions that follow one another."""
        group: list[PartitionRange] = []
        places: set[PartitionRef] = set()
        size = 0
        while self._left:
            one = self._left[-1]
            more = fetcher.estimate_size(one)
            is_small = more * _SMALL_SHARE <= self._size and size + more <= self._size
            if not is_small or (one.topic, one.partition) in places:
                break
            group.append(self._left.pop())
            places.add((one.topic, one.partition))
            size += more
        # One alone is not asked for twice.
        self._next = (group, fetcher.begin_together(group, self._size)) if len(group) > 1 else None

    def _receive(self, fetcher: PartitionFetcher) -> None:
        if self._next is None:
            return
        group, pending = self._next
        answers: dict[PartitionRef, BrokerAnswer] = {}
        # Whoever reads a range asks again, and says what is wrong.
        with suppress(Exception):
            answers = pending.result(2 * fetcher.settings.timeout_s)
        self._group = {
            one: answers[one.topic, one.partition]
            for one in group
            if (one.topic, one.partition) in answers
        }
        self._begin(fetcher)
