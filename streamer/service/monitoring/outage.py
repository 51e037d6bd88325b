"""Figures of a stream while messages do not flow: none that was true only before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from streamer.core.durations import SECOND
from streamer.engine.report.stream_metrics import SeriesKey
from streamer.engine.report.window_history import LAG_METRIC_KEY

KAFKA_LAGS: Final = frozenset({"kafka_lag", "redpanda_lag"})


class PartitionLag(NamedTuple):
    """Messages of a partition that no micro-batch has taken yet.

    Attributes:
        topic: its topic.
        partition: its number.
        lag: how many.
    """

    topic: str
    partition: str
    lag: float


def list_lags(counts: Mapping[SeriesKey, float]) -> list[PartitionLag]:
    """Return the lags of Kafka's partitions among the gauges of a stream, the largest first."""
    lags = []
    # Another thread may add a series meanwhile.
    for (name, labels), number in tuple(counts.items()):
        if name in KAFKA_LAGS:
            place = dict(labels)
            lags.append(PartitionLag(place.get("topic", ""), place.get("partition", ""), number))
    return sorted(lags, key=lambda one: one.lag, reverse=True)


def adjust_counts_in_outage(
    counts: Mapping[SeriesKey, float], event_time: int | None, now: int, *, has_outage: bool
) -> dict[SeriesKey, Any]:
    """Return counters and gauges as they are worth telling while an end is not connected.

    Args:
        counts: by name and labels, as of the newest delivery.
        event_time: of the newest event that was delivered, ns; None when none has one.
        now: the wall clock, ns.
        has_outage: whether the input's server does not answer, so that nobody knows what waits.
    """
    adjusted: dict[SeriesKey, Any] = {
        key: number for key, number in counts.items() if not (has_outage and key[0] in KAFKA_LAGS)
    }
    if LAG_METRIC_KEY in adjusted and event_time is not None:
        # A frozen age would look like a stream that is on time.
        age = round(max(now - event_time, 0) / SECOND, 3)
        adjusted[LAG_METRIC_KEY] = max(adjusted[LAG_METRIC_KEY], age)
    return adjusted
