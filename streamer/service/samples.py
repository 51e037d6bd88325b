"""The figures of a stream as metrics: Benthos's names where they mean the same, ours elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from streamer.bloblang import compile_mapping
from streamer.durations import SECOND
from streamer.errors import MessageError
from streamer.message import Execution, Message
from streamer.service.view import StreamView
from streamer.spec import ParsedComponent

_ABOUT: Final = {
    "input_received": "Messages taken in.",
    "messages_dropped": "Messages dropped, by reason.",
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
    value: float


def about(name: str) -> str:
    """Return what a metric says, in a sentence."""
    return _ABOUT.get(name, "A counter of a component.")


def samples(view: StreamView) -> Iterator[Sample]:
    """Return the figures of a stream."""
    now = view.now()
    shot = now.snapshot
    yield Sample("input_received", _of(view.config.input), shot.messages)
    for reason, number in sorted(shot.dropped.items()):
        yield Sample("messages_dropped", {"reason": reason}, number)
    for (name, labels), number in sorted(now.counts.items()):
        if name not in _IN_SNAPSHOT:
            yield Sample(name, dict(labels), number)
    if view.config.buffer.name == "system_window":
        yield Sample("open_windows", {}, shot.open_windows)
        yield Sample("open_window_messages", {}, shot.held)
        if shot.next_close is not None:
            yield Sample("next_window_close_timestamp_seconds", {}, shot.next_close / SECOND)
    yield Sample("micro_batch", {}, shot.batch)
    yield Sample("stream_running", {}, int(view.started))


def _of(component: ParsedComponent) -> dict[str, str]:
    return {"label": component.label, "path": f"root.{component.path}"}


def mapped(found: Iterable[Sample], text: str) -> Iterator[Sample]:
    """Rename, label and drop metrics by the mapping of the `metrics` section, as Benthos does.

    In it, `this` is the name, metadata are the labels, and the new name is `root`. A metric on
    which the mapping fails keeps its name and loses its labels.
    """
    if not text.strip():
        yield from found
        return
    mapping = compile_mapping(text)
    ex = Execution(time.time_ns)
    for sample in found:
        try:
            made = mapping.apply([Message.of(sample.name, sample.labels)], 0, ex)
        except MessageError:
            yield sample._replace(labels={})
            continue
        if made is None:
            continue
        # A mapping's text is a message's bytes.
        name: Any = made.doc if made.has_doc() else made.raw.decode()
        labels = {key: str(value) for key, value in sorted(made.meta.items())}
        yield Sample(name, labels, sample.value) if isinstance(name, str) else sample
