"""What one wants to know of a stream at a glance, and of each of its components.

These are counted whatever the `metrics` section says: it is about what others are told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from streamer.engine.recent import LAG
from streamer.service.expected import Expected
from streamer.service.outage import KAFKA_LAGS
from streamer.service.view import Now, StreamView
from streamer.spec import Kind

_ERROR: Final = "_error"
_COUNTED: Final = ("received", "sent", "error", "rejected", "connection_up", "connection_lost")


def vitals(view: StreamView) -> dict[str, Any]:
    """Return what a stream has written, what failed, and how far it is behind.

    `sent` and `errors` are since the start of the program. `event_time_lag` is in seconds, how old
    the newest message was; None where messages have no times. `backlog` is how many messages wait
    at the input, `kafka_lag` those of Kafka's partitions; None where nobody knows.
    """
    now = view.now()
    lags = [number for (name, _), number in now.counts.items() if name in KAFKA_LAGS]
    return {
        "sent": _sent(view.expected, now),
        "errors": sum(number for (name, _), number in now.counts.items() if name.endswith(_ERROR)),
        "event_time_lag": now.counts.get(LAG),
        "backlog": now.backlog,
        "kafka_lag": sum(lags) if lags else None,
    }


def components(view: StreamView) -> list[dict[str, Any]]:
    """Return what each component has counted since the start of the program, by its place.

    Next to a component's kind, label and path there are the counters that it has: `received`,
    `sent`, `error`, …; and `latency_ms`, the 99th percentile of late, or None.
    """
    now = view.now()
    counted = _by_place(now)
    found = []
    for kind, label, path, *_ in view.expected:
        mine = dict(counted.get((label, path), {}))
        if kind == Kind.INPUT and path == "root.input":
            mine["received"] = now.snapshot.messages
        figures = {name: mine[f"{kind}_{name}"] for name in _COUNTED if f"{kind}_{name}" in mine}
        if "received" in mine:
            figures["received"] = mine["received"]
        place = tuple(sorted({"label": label, "path": path}.items()))
        times = now.times.get((f"{kind}_latency_ns", place))
        p99 = None if times is None else times.percentiles().get("p99")
        latency = None if p99 is None else round(p99 / 1e6, 3)
        each = {"kind": str(kind), "label": label, "path": path, "latency_ms": latency}
        found.append({**each, **figures})
    return found


def _by_place(now: Now) -> Mapping[tuple[str, str], dict[str, int]]:
    found: dict[tuple[str, str], dict[str, int]] = {}
    for (name, labels), number in now.counts.items():
        of = dict(labels)
        if "path" in of:
            figures = found.setdefault((of.get("label", ""), of["path"]), {})
            figures[name] = figures.get(name, 0) + number
    return found


def _sent(expected: tuple[Expected, ...], now: Now) -> int:
    """Add up what outputs have sent; of one that has others inside, only what itself says."""
    counted = _by_place(now)
    outer: list[str] = []

    def numbers() -> Iterator[int]:
        for kind, label, path, *_ in expected:
            if kind != Kind.OUTPUT or path.startswith(tuple(outer)):
                continue
            number = counted.get((label, path), {}).get("output_sent", 0)
            if number:
                outer.append(f"{path}.")
            yield number

    return sum(numbers())
