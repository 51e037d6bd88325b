"""Latencies over many tasks: sums since the start, and recent quantiles."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from streamer.core.component_stats import bucket_middle

_SPAN_S: Final = 120.0
_SPAN_COUNT: Final = 5
"""Quantiles look back ten minutes, in steps of two: as the summaries of Prometheus's client do."""


@dataclass(frozen=True, slots=True)
class LatencySnapshot:
    """Times as of one moment.

    Attributes:
        count: how many were taken.
        total: what they add up to, ns.
        buckets: how many there are of each (see `streamer.core.component_stats`).
        recent: the same, of the last ten minutes.
    """

    count: int = 0
    total: int = 0
    buckets: Mapping[int, int] = field(default_factory=dict)
    recent: Mapping[int, int] = field(default_factory=dict)

    def quantile(self, share: float) -> float | None:
        """Return the time that a share (0 to 1) of the recent ones does not exceed, ns."""
        rank = share * sum(self.recent.values())
        for bucket in sorted(self.recent):
            rank -= self.recent[bucket]
            if rank <= 0:
                return bucket_middle(bucket)
        return None

    def percentiles(self) -> dict[str, float | None]:
        """Return what Benthos shows of times outside of Prometheus, ns."""
        return {"p50": self.quantile(0.5), "p90": self.quantile(0.9), "p99": self.quantile(0.99)}

    def cumulative_counts(self, bounds: Sequence[float]) -> list[int]:
        """Return for each bound how many times were not longer, as far as buckets tell.

        Args:
            bounds: the shortest first, ns.
        """
        counts = [0] * (len(bounds) + 1)
        for bucket, number in self.buckets.items():
            counts[bisect_left(bounds, bucket_middle(bucket))] += number
        return list(accumulate(counts[:-1]))

    def since(self, before: LatencySnapshot) -> LatencySnapshot:
        """Return what has been added since an earlier moment; all of it is recent."""
        added = {
            bucket: number - before.buckets.get(bucket, 0)
            for bucket, number in self.buckets.items()
            if number != before.buckets.get(bucket, 0)
        }
        return LatencySnapshot(self.count - before.count, self.total - before.total, added, added)


class LatencyHistogram:
    """Takes times, and forgets which of them are recent as they grow old."""

    def __init__(self) -> None:
        """Begin with none."""
        self._total = 0
        self._all: Counter[int] = Counter()
        self._recent: list[tuple[float, Counter[int]]] = []
        # What these add up to: who asks about a hundred streams would add up for long.
        self._recent_sum: Counter[int] = Counter()

    def add(self, total: int, buckets: Iterable[tuple[int, int]], now: float) -> None:
        """Add times.

        Args:
            total: what they add up to, ns.
            buckets: how many are in each.
            now: a clock that never runs backwards, seconds.
        """
        if not self._recent or now - self._recent[-1][0] >= _SPAN_S:
            self._recent = [*self._recent_spans(now)[1 - _SPAN_COUNT :], (now, Counter())]
            self._recent_sum = _merge_counts(self._recent)
        self._total += total
        for bucket, number in buckets:
            self._all[bucket] += number
            self._recent[-1][1][bucket] += number
            self._recent_sum[bucket] += number

    def times(self, now: float) -> LatencySnapshot:
        """Return what was taken; others may ask while something is added."""
        spans = self._recent_spans(now)
        recent = dict(self._recent_sum if len(spans) == len(self._recent) else _merge_counts(spans))
        buckets = dict(self._all)
        return LatencySnapshot(sum(buckets.values()), self._total, buckets, recent)

    def _recent_spans(self, now: float) -> list[tuple[float, Counter[int]]]:
        return [span for span in self._recent if now - span[0] < _SPAN_S * _SPAN_COUNT]


def _merge_counts(spans: Iterable[tuple[float, Counter[int]]]) -> Counter[int]:
    total: Counter[int] = Counter()
    for _, buckets in spans:
        total.update(dict(buckets))
    return total
