"""Summary of a stream, and of each of its components.

These are counted whatever the `metrics` section says: it is about what others are told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from streamer.core.timestamps import format_unix_seconds
from streamer.engine.report.window_history import LAG_METRIC_KEY
from streamer.sdk.spec import Kind
from streamer.service.monitoring.metric_components import MetricComponent
from streamer.service.monitoring.outage import list_lags
from streamer.service.monitoring.stream_view import StreamState, StreamView

_ERROR: Final = "_error"
_SHOWN_COUNTERS: Final = (
    "received",
    "sent",
    "error",
    "rejected",
    "connection_up",
    "connection_lost",
)
_EXPECTATION_COUNTERS: Final = {
    "expectation_passed_total": "passed",
    "expectation_failed_total": "failed",
    "expectation_dropped_total": "dropped",
}


def summarise_stream(view: StreamView) -> dict[str, Any]:
    """Return what a stream has written, what failed, and how far it is behind.

    `received`, `sent` and `errors` are counted since `counted_since`, the start of the run;
    `in_rate`, `out_rate` and `error_rate` are those of now, per second. `event_time_lag` is in
    seconds, how old the newest message was; None where messages have no times. `backlog` is how
    many messages wait at the input, `kafka_lag` those of Kafka's partitions, `kafka_lag_worst` the
    partition with most of them; None where nobody knows. `expectations` is what
    `summarise_expectations` returns. `tables` has the newest commits of the tables that the stream
    writes, as they were after its newest micro-batch.
    """
    now = view.current_state()
    lags = list_lags(now.counts)
    since = view.figures.counted_since
    return {
        **view.figures.rate_fields(),
        "counted_since": None if since is None else format_unix_seconds(since),
        "received": None if since is None else view.figures.received,
        "sent": _count_sent(view.metric_components, now),
        "errors": sum(number for (name, _), number in now.counts.items() if name.endswith(_ERROR)),
        "event_time_lag": now.counts.get(LAG_METRIC_KEY),
        "backlog": now.backlog,
        "kafka_lag": sum(one.lag for one in lags) if lags else None,
        "kafka_lag_worst": lags[0]._asdict() if lags else None,
        "expectations": summarise_expectations(view),
        "tables": list(now.tables),
    }


def summarise_components(view: StreamView) -> list[dict[str, Any]]:
    """Return what each component has counted since the start of the program, by its place.

    Next to a component's kind, label and path there are the counters that it has: `received`,
    `sent`, `error`, …; `latency_ms`, the 99th percentile of the last ten minutes, or None;
    `received_rate` and `sent_rate`, those of now, per second; and `load`, which part of the last
    minute it was busy, back-pressured and idle, or None.
    """
    now = view.current_state()
    loads, rates = view.figures.read_loads(), view.figures.rates
    counted = _counts_by_component(now)
    rows = []
    for kind, label, path, *_ in view.metric_components:
        counts = dict(counted.get((label, path), {}))
        if kind == Kind.INPUT and path == "root.input":
            counts["received"] = now.snapshot.messages
        figures: dict[str, float] = {
            name: counts[f"{kind}_{name}"] for name in _SHOWN_COUNTERS if f"{kind}_{name}" in counts
        }
        if "received" in counts:
            figures["received"] = counts["received"]
        place = tuple(sorted({"label": label, "path": path}.items()))
        times = now.times.get((f"{kind}_latency_ns", place))
        p99 = None if times is None else times.percentiles().get("p99")
        latency = None if p99 is None else round(p99 / 1e6, 3)
        each: dict[str, Any] = {
            "kind": str(kind),
            "label": label,
            "path": path,
            "latency_ms": latency,
        }
        each["load"] = load._asdict() if (load := loads.get(path)) else None
        for what in ("received", "sent"):
            name = "in" if kind == Kind.INPUT and path == "root.input" else f"{path} {what}"
            if what in figures and (rate := rates.rate(name)) is not None:
                figures[f"{what}_rate"] = round(rate, 3)
        rows.append({**each, **figures})
    return rows


def summarise_expectations(view: StreamView) -> list[dict[str, Any]]:
    """Return what each expectation of an `expect` has counted since the start of the program.

    Next to its name and the place of its component: `passed` and `failed`, in messages, or in
    batches where it is per batch; and `dropped`, in messages. One that has judged nothing is left
    out.
    """
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for (name, labels), number in view.current_state().counts.items():
        counter = _EXPECTATION_COUNTERS.get(name)
        if counter is None:
            continue
        place = dict(labels)
        row = rows.setdefault(
            (place["path"], place["expectation"]),
            {
                "expectation": place["expectation"],
                "label": place["label"],
                "path": place["path"],
                **dict.fromkeys(_EXPECTATION_COUNTERS.values(), 0),
            },
        )
        row[counter] += number
    return [rows[key] for key in sorted(rows)]


def _counts_by_component(now: StreamState) -> Mapping[tuple[str, str], dict[str, int]]:
    counts_by_component: dict[tuple[str, str], dict[str, int]] = {}
    for (name, labels), number in now.counts.items():
        label_map = dict(labels)
        if "path" in label_map:
            figures = counts_by_component.setdefault(
                (label_map.get("label", ""), label_map["path"]), {}
            )
            figures[name] = figures.get(name, 0) + number
    return counts_by_component


def _count_sent(components: tuple[MetricComponent, ...], now: StreamState) -> int:
    """Add up what outputs have sent; of one that has others inside, only what itself says."""
    counted = _counts_by_component(now)
    outer: list[str] = []

    def numbers() -> Iterator[int]:
        for kind, label, path, *_ in components:
            if kind != Kind.OUTPUT or path.startswith(tuple(outer)):
                continue
            number = counted.get((label, path), {}).get("output_sent", 0)
            if number:
                outer.append(f"{path}.")
            yield number

    return sum(numbers())
