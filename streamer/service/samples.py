"""The figures of a stream as metrics: Benthos's names where they mean the same, ours elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Final, NamedTuple

from streamer.catalog import makes_windows
from streamer.durations import SECOND
from streamer.engine.meters import Key, key_of
from streamer.engine.timing import Times
from streamer.metrics.catalogue import METRICS
from streamer.metrics.metric import Metric, MetricKind
from streamer.service.expected import Expected
from streamer.service.ready import end_states
from streamer.service.view import Now, StreamView
from streamer.spec import Kind

_CONNECTION: Final = ("connection_up", "connection_failed", "connection_lost")
_MOVED: Final = ("received", "batch_received", "sent", "batch_sent")
_OF_KIND: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.INPUT: ("received", *_CONNECTION),
    Kind.BUFFER: _MOVED,
    Kind.PROCESSOR: (*_MOVED, "error"),
    Kind.OUTPUT: ("sent", "batch_sent", "error", "rejected", *_CONNECTION),
}
# These are told apart: they are there from the start, or come from more than one place.
_APART: Final = frozenset(
    {
        *("input_received", "window_closed", "window_dropped", "batch_failed"),
        *("window_close_delay_seconds", "batch_duration_seconds"),
    }
)

STATES: Final = (
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
        of: the metric in the catalogue, whatever name a mapping gives it; None for a config's own.
        kind: the type of a config's own metric, `counter` or `gauge`; `untyped` when not known.
    """

    name: str
    labels: Mapping[str, str]
    value: float | Times
    of: Metric | None = None
    kind: str = "untyped"

    @classmethod
    def made(cls, name: str, labels: Mapping[str, str], value: float | Times) -> Sample:
        """Make one under the name that it has in the catalogue, if it is in there."""
        return cls(name, labels, value, METRICS.get(name))

    def plain(self) -> float | dict[str, float | None]:
        """Return the value; of times their percentiles, in the metric's unit."""
        if not isinstance(self.value, Times):
            return self.value
        found = self.value.percentiles()
        if self.of is None or self.of.kind != MetricKind.HISTOGRAM:
            return found
        return {name: ns and round(ns / SECOND, 6) for name, ns in found.items()}


def samples(view: StreamView) -> Iterator[tuple[Expected | None, Sample]]:
    """Return the figures of a stream, each with the component that it is of, if it is of one."""
    now = view.now()
    told: set[Key] = set()
    # What comes in at the outermost input is known since the checkpoint began, where there are
    # windows; those inside of it count for themselves.
    outermost = next((one for one in view.expected if one.kind == Kind.INPUT), None)
    for component in view.expected:
        for sample in _of(component, now, component is outermost):
            told.add(key_of(sample.name, sample.labels))
            yield component, sample
    components = (*view.expected, *view.custom_metrics)
    of_place = {(each.label, each.path): each for each in components}
    for key, number in sorted(now.counts.items()):
        name, labels = key[0], dict(key[1])
        if name not in _APART and key not in told:
            yield _of_config(of_place, name, labels, number)
    for key, times in sorted(now.times.items(), key=itemgetter(0)):
        if key[0] not in _APART and key not in told:
            yield _of_config(of_place, key[0], dict(key[1]), times)
    for found in (*_of_windows(view, now), *_of_stream(view, now)):
        yield None, Sample.made(*found)


def _of_config(
    of_place: Mapping[tuple[str, str], Expected],
    name: str,
    labels: Mapping[str, str],
    value: float | Times,
) -> tuple[Expected | None, Sample]:
    """Return what a component has counted besides, or what a config counts itself."""
    component = of_place.get((labels.get("label", ""), labels.get("path", "")))
    sample = Sample.made(name, labels, value)
    if sample.of is None and component is not None and component.custom[0] == name:
        sample = sample._replace(kind=component.custom[1] or sample.kind)
    return component, sample


def _of(component: Expected, now: Now, outermost: bool) -> Iterator[Sample]:
    labels = {"label": component.label, "path": component.path}
    for last in _OF_KIND[component.kind]:
        name = f"{component.kind}_{last}"
        if outermost and name == "input_received":
            yield Sample.made(name, labels, now.snapshot.messages)
        else:
            yield Sample.made(name, labels, now.counts.get(key_of(name, labels), 0))
    name = f"{component.kind}_latency_ns"
    yield Sample.made(name, labels, now.times.get(key_of(name, labels), Times()))


_Figures = Iterator[tuple[str, Mapping[str, str], float | Times]]


def _of_windows(view: StreamView, now: Now) -> _Figures:
    shot, counts = now.snapshot, now.counts
    dropped = Counter(shot.dropped)
    for (name, labels), number in counts.items():
        if name == "window_dropped":
            dropped[dict(labels)["reason"]] += number
        elif name == "input_dropped":
            # It is told as the input's.
            dropped.pop(dict(labels)["reason"], None)
    for reason, number in sorted(dropped.items()):
        yield "window_dropped", {"reason": reason}, number
    if not makes_windows(view.config.buffer):
        return
    yield "window_open", {}, shot.open_windows
    yield "window_messages", {}, shot.held
    yield "window_closed", {}, shot.closed + counts.get(key_of("window_closed", {}), 0)
    yield "state_bytes", {}, shot.size
    if shot.closed_until is not None:
        yield "window_watermark_timestamp_seconds", {}, shot.closed_until / SECOND
    if shot.next_close is not None:
        yield "window_next_close_timestamp_seconds", {}, shot.next_close / SECOND
    name = "window_close_delay_seconds"
    yield name, {}, now.times.get(key_of(name, {}), Times())


def _of_stream(view: StreamView, now: Now) -> _Figures:
    name = "batch_duration_seconds"
    yield name, {}, now.times.get(key_of(name, {}), Times())
    yield "batch_failed", {}, now.counts.get(key_of("batch_failed", {}), 0)
    yield "micro_batch", {}, now.snapshot.batch
    progress = view.batch_progress()
    yield "batch_in_hand_seconds", {}, 0 if progress is None else round(progress.seconds, 3)
    if now.last_delivery is not None:
        yield "last_delivery_timestamp_seconds", {}, now.last_delivery
    yield "stream_running", {}, int(view.started)
    ends = end_states(view, now)
    yield "stream_ready", {}, int(all(end.connected for end in ends) and not view.unready_reason())
    for end in ends:
        labels = {"label": end.label, "path": f"root.{end.path}"}
        yield f"{end.kind}_connected", labels, int(end.connected)
    if now.backlog is not None:
        yield "backlog", {}, now.backlog
    for name, value in sorted(now.gauges().items()):
        yield name, {}, value
    if view.standing is None:
        return
    standing = view.standing()
    for state in STATES:
        yield "stream_state", {"state": state}, int(state == standing.state)
    yield "stream_restarts", {}, standing.restarts
    yield "stream_revision", {}, standing.revision
    yield "stream_uptime_seconds", {}, round(standing.uptime, 3)
