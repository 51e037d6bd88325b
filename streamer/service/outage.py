"""What a stream's figures say while messages do not flow: nothing that was true only before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from streamer.durations import SECOND
from streamer.engine.meters import Key
from streamer.engine.recent import LAG

KAFKA_LAGS: Final = frozenset({"kafka_lag", "redpanda_lag"})


def counts_in_trouble(
    counts: Mapping[Key, float], event_time: int | None, now: int, *, outage: bool
) -> dict[Key, Any]:
    """Return counters and gauges as they are worth telling while an end is not connected.

    Args:
        counts: by name and labels, as of the newest delivery.
        event_time: of the newest event that was delivered, ns; None when none has one.
        now: the wall clock, ns.
        outage: whether the input's server does not answer, so that nobody knows what waits.
    """
    found: dict[Key, Any] = {
        key: number for key, number in counts.items() if not (outage and key[0] in KAFKA_LAGS)
    }
    if LAG in found and event_time is not None:
        # A frozen age would look like a stream that is on time.
        age = round(max(now - event_time, 0) / SECOND, 3)
        found[LAG] = max(found[LAG], age)
    return found
