"""The figures of a stream as metrics: Benthos's names where they mean the same, ours elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Final, NamedTuple

from streamer.components.catalog import makes_windows
from streamer.components.metrics.metric import Metric, MetricKind
from streamer.components.metrics.metric_names import METRICS
from streamer.core.durations import SECOND
from streamer.engine.report.latency import LatencySnapshot
from streamer.engine.report.stream_metrics import SeriesKey, Snapshot, series_key
from streamer.sdk.spec import Kind
from streamer.service.monitoring.canary_metrics import CANARY_METRICS
from streamer.service.monitoring.metric_components import MetricComponent
from streamer.service.monitoring.readiness import end_states, unready_reason
from streamer.service.monitoring.stream_condition import Condition, derive_condition
from streamer.service.monitoring.stream_view import StreamState, StreamView

_CONNECTION_COUNTERS: Final = ("connection_up", "connection_failed", "connection_lost")
_FLOW_COUNTERS: Final = ("received", "batch_received", "sent", "batch_sent")
_COUNTERS_BY_KIND: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.INPUT: ("received", *_CONNECTION_COUNTERS),
    Kind.BUFFER: _FLOW_COUNTERS,
    Kind.PROCESSOR: (*_FLOW_COUNTERS, "error"),
    Kind.OUTPUT: ("sent", "batch_sent", "error", "rejected", *_CONNECTION_COUNTERS),
}
# These are told apart: they are there from the start, or come from more than one place.
_SPECIAL_METRICS: Final = frozenset(
    {
        *("input_received", "window_closed", "window_dropped", "batch_failed"),
        *("window_close_delay_seconds", "batch_duration_seconds"),
    }
)

_LISTED_BUFFER_PATH: Final = "root.buffers."

STREAM_STATES: Final = (
    "starting",
    "running",
    "restarting",
    "waiting",
    "paused",
    "ended",
    "failed",
    "stopped",
)
"""The states of a stream of the service."""


class Sample(NamedTuple):
    """One figure.

    Attributes:
        name: the metric's name.
        labels: its labels.
        value: its value.
        metric: the metric in the catalogue, whatever name a mapping gives it; None for a config's
            own.
        kind: the type of a config's own metric, `counter` or `gauge`; `untyped` when not known.
    """

    name: str
    labels: Mapping[str, str]
    value: float | LatencySnapshot
    metric: Metric | None = None
    kind: str = "untyped"

    @classmethod
    def create(cls, name: str, labels: Mapping[str, str], value: float | LatencySnapshot) -> Sample:
        """Make one under the name that it has in the catalogue, if it is in there."""
        return cls(name, labels, value, METRICS.get(name))

    @property
    def type_name(self) -> str:
        """The type: `counter`, `gauge`, `timing`, `histogram`, or `untyped` when not known."""
        if isinstance(self.value, LatencySnapshot):
            is_histogram = self.metric is not None and self.metric.kind == MetricKind.HISTOGRAM
            return str(MetricKind.HISTOGRAM if is_histogram else MetricKind.TIMING)
        return self.kind if self.metric is None else str(self.metric.kind)

    def plain_value(self) -> float | dict[str, float | None]:
        """Return the value; of times their percentiles, in the metric's unit."""
        if not isinstance(self.value, LatencySnapshot):
            return self.value
        percentiles = self.value.percentiles()
        if self.metric is None or self.metric.kind != MetricKind.HISTOGRAM:
            return percentiles
        return {name: ns and round(ns / SECOND, 6) for name, ns in percentiles.items()}


def collect_samples(view: StreamView) -> Iterator[tuple[MetricComponent | None, Sample]]:
    """Return the figures of a stream, each with the component that it is of, if it is of one."""
    now = view.current_state()
    reported: set[SeriesKey] = set()
    # What comes in at the outermost input is known since the checkpoint began, where there are
    # windows; those inside of it count for themselves.
    outermost = next((one for one in view.metric_components if one.kind == Kind.INPUT), None)
    for component in view.metric_components:
        for sample in _component_samples(component, now, component is outermost):
            reported.add(series_key(sample.name, sample.labels))
            yield component, sample
    components = (*view.metric_components, *view.custom_metrics)
    component_by_labels = {(each.label, each.path): each for each in components}
    for key, number in sorted(now.counts.items()):
        name, labels = key[0], dict(key[1])
        if name not in _SPECIAL_METRICS and key not in reported:
            yield _config_sample(component_by_labels, name, labels, number)
    for key, times in sorted(now.times.items(), key=itemgetter(0)):
        if key[0] not in _SPECIAL_METRICS and key not in reported:
            yield _config_sample(component_by_labels, key[0], dict(key[1]), times)
    for figure in (*_window_figures(view, now), *_stream_figures(view, now)):
        yield None, Sample.create(*figure)


def _config_sample(
    component_by_labels: Mapping[tuple[str, str], MetricComponent],
    name: str,
    labels: Mapping[str, str],
    value: float | LatencySnapshot,
) -> tuple[MetricComponent | None, Sample]:
    """Return what a component has counted besides, or what a config counts itself."""
    component = component_by_labels.get((labels.get("label", ""), labels.get("path", "")))
    sample = Sample.create(name, labels, value)
    if sample.metric is None and component is not None and component.custom[0] == name:
        sample = sample._replace(kind=component.custom[1] or sample.kind)
    return component, sample


def _component_samples(
    component: MetricComponent, now: StreamState, outermost: bool
) -> Iterator[Sample]:
    labels = {"label": component.label, "path": component.path}
    for last in _COUNTERS_BY_KIND[component.kind]:
        name = f"{component.kind}_{last}"
        if outermost and name == "input_received":
            yield Sample.create(name, labels, now.snapshot.messages)
        else:
            yield Sample.create(name, labels, now.counts.get(series_key(name, labels), 0))
    name = f"{component.kind}_latency_ns"
    yield Sample.create(name, labels, now.times.get(series_key(name, labels), LatencySnapshot()))


_Figures = Iterator[tuple[str, Mapping[str, str], float | LatencySnapshot]]


def _window_figures(view: StreamView, now: StreamState) -> _Figures:
    snapshot, counts = now.snapshot, now.counts
    dropped = Counter(snapshot.dropped)
    for (name, labels), number in counts.items():
        if name == "window_dropped":
            dropped[dict(labels)["reason"]] += number
        elif name == "input_dropped":
            # It is told as the input's.
            dropped.pop(dict(labels)["reason"], None)
    components = [one for one in view.metric_components if one.kind == Kind.BUFFER]
    listed = [one for one in components if one.path.startswith(_LISTED_BUFFER_PATH)]
    for one in listed:
        own = {"label": one.label, "path": one.path}
        state = snapshot.by_buffer.get(one.label, Snapshot())
        for reason, number in sorted(state.dropped.items()):
            dropped[reason] -= number
            yield "window_dropped", {**own, "reason": reason}, number
        yield from _buffer_figures(state, now, own, one.label)
    for reason, number in sorted(dropped.items()):
        if number > 0 or not listed:
            yield "window_dropped", {"reason": reason}, number
    if makes_windows(view.config.buffer) and not listed:
        yield from _buffer_figures(snapshot, now, {})


def _buffer_figures(
    snapshot: Snapshot, now: StreamState, labels: Mapping[str, str], buffer: str = ""
) -> _Figures:
    """Give the figures of a buffer's windows; `labels` are its own, where there are several."""
    counts = now.counts
    yield "window_open", labels, snapshot.open_windows
    yield "window_messages", labels, snapshot.held
    closed = counts.get(series_key("window_closed", labels), 0)
    yield "window_closed", labels, snapshot.closed + closed
    yield "state_bytes", labels, snapshot.size
    yield "state_keys", labels, snapshot.state_keys
    if snapshot.closed_until is not None:
        yield "window_watermark_timestamp_seconds", labels, snapshot.closed_until / SECOND
    if snapshot.clock_source:
        source = {**labels, "source": snapshot.clock_source}
        yield "window_clock_held_seconds", source, snapshot.clock_ahead / SECOND
    blame = now.clock_blames.get(buffer)
    if blame is not None and blame.kind == "source":
        source = {**labels, "source": blame.name}
        yield "window_clock_held_since_timestamp_seconds", source, blame.since / SECOND
        yield "window_clock_held_windows", source, blame.windows
        yield "window_clock_held_messages", source, blame.messages
        yield "window_clock_held_bytes", source, blame.size or 0
    if snapshot.next_close is not None:
        yield "window_next_close_timestamp_seconds", labels, snapshot.next_close / SECOND
    name = "window_close_delay_seconds"
    yield name, labels, now.times.get(series_key(name, labels), LatencySnapshot())


def _stream_figures(view: StreamView, now: StreamState) -> _Figures:
    name = "batch_duration_seconds"
    yield name, {}, now.times.get(series_key(name, {}), LatencySnapshot())
    yield "batch_failed", {}, now.counts.get(series_key("batch_failed", {}), 0)
    yield "micro_batch", {}, now.snapshot.batch
    progress = view.batch_progress()
    yield "batch_in_hand_seconds", {}, 0 if progress is None else round(progress.seconds, 3)
    if now.last_delivery is not None:
        yield "last_delivery_timestamp_seconds", {}, now.last_delivery
    yield "stream_running", {}, int(view.is_running)
    ends = end_states(view, now)
    ready = all(end.connected for end in ends) and not unready_reason(view, now)
    yield "stream_ready", {}, int(ready)
    at = time.time()
    condition = derive_condition(view, now, at)
    for name in Condition:
        yield "stream_condition", {"condition": str(name)}, int(name == condition.name)
    yield "stream_failing_seconds", {}, condition.failing_seconds(at)
    for end in ends:
        labels = {"label": end.label, "path": f"root.{end.path}"}
        yield f"{end.kind}_connected", labels, int(end.connected)
    if now.backlog is not None:
        yield "backlog", {}, now.backlog
    for name in CANARY_METRICS:
        key = series_key(name, {})
        if key in now.counts:
            yield name, {}, now.counts[key]
    for name, value in sorted(now.gauges().items()):
        yield name, {}, value
    if view.managed_state is None:
        return
    managed_state = view.managed_state()
    for state in STREAM_STATES:
        yield "stream_state", {"state": state}, int(state == managed_state.state)
    yield "stream_restarts", {}, managed_state.restarts
    yield "stream_revision", {}, managed_state.revision
    yield "stream_uptime_seconds", {}, round(managed_state.uptime, 3)
