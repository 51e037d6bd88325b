"""The figures of a stream as metrics: Benthos's names where they mean the same, ours elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Final, NamedTuple

from streamer.catalog import makes_windows
from streamer.durations import SECOND
from streamer.engine.meters import Key, key_of
from streamer.engine.timing import Times
from streamer.service.expected import Expected
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
_ABOUT: Final = {
    "received": "Messages that came in.",
    "batch_received": "Batches that came in.",
    "sent": "Messages that went out.",
    "batch_sent": "Batches that went out.",
    "error": "What failed: messages of a processor, writes of an output.",
    "rejected": "Messages that were not written because a processor had failed on them.",
    "connection_up": "How often it was connected.",
    "connection_failed": "How often it could not be connected.",
    "connection_lost": "How often its connection was lost.",
    "latency_ns": "How long a batch took.",
    "messages_dropped": "Messages dropped, by reason.",
    "batch_created": "Batches that a policy has closed, by what closed them.",
    "open_windows": "Windows that are open.",
    "open_window_messages": "Messages in open windows.",
    "next_window_close_timestamp_seconds": "When the next window closes, Unix time.",
    "micro_batch": "The number of the newest micro-batch; -1 before the first.",
    "stream_running": "Whether the stream runs: 1, or 0.",
}
# These are in the figures of a snapshot, added up.
_IN_SNAPSHOT: Final = frozenset({"input_received", "input_dropped"})


class Sample(NamedTuple):
    """One figure: a metric's name, its labels and its value."""

    name: str
    labels: Mapping[str, str]
    value: float | Times


def about(name: str) -> str:
    """Return what a metric says, in a sentence."""
    return _ABOUT.get(name) or _ABOUT.get(name.partition("_")[2], "A counter of a component.")


def samples(view: StreamView) -> Iterator[tuple[Expected | None, Sample]]:
    """Return the figures of a stream, each with the component that it is of, if it is of one."""
    now = view.now()
    shot = now.snapshot
    told: set[Key] = set()
    for component in view.expected:
        for sample in _of(component, now):
            told.add(key_of(sample.name, sample.labels))
            yield component, sample
    for reason, number in sorted(shot.dropped.items()):
        yield None, Sample("messages_dropped", {"reason": reason}, number)
    of_place = {(each.label, each.path): each for each in view.expected}
    for key, number in sorted(now.counts.items()):
        name, labels = key[0], dict(key[1])
        if name not in _IN_SNAPSHOT and key not in told:
            place = labels.get("label", ""), labels.get("path", "")
            yield of_place.get(place), Sample(name, labels, number)
    for key, times in sorted(now.times.items(), key=itemgetter(0)):
        if key not in told:
            yield None, Sample(key[0], dict(key[1]), times)
    for name, value in _of_stream(view, now):
        yield None, Sample(name, {}, value)


def _of(component: Expected, now: Now) -> Iterator[Sample]:
    labels = {"label": component.label, "path": component.path}
    for last in _OF_KIND[component.kind]:
        name = f"{component.kind}_{last}"
        if name == "input_received":
            yield Sample(name, labels, now.snapshot.messages)
        else:
            yield Sample(name, labels, now.counts.get(key_of(name, labels), 0))
    name = f"{component.kind}_latency_ns"
    yield Sample(name, labels, now.times.get(key_of(name, labels), Times()))


def _of_stream(view: StreamView, now: Now) -> Iterator[tuple[str, float]]:
    shot = now.snapshot
    if makes_windows(view.config.buffer):
        yield "open_windows", shot.open_windows
        yield "open_window_messages", shot.held
        if shot.next_close is not None:
            yield "next_window_close_timestamp_seconds", shot.next_close / SECOND
    yield "micro_batch", shot.batch
    yield "stream_running", int(view.started)
