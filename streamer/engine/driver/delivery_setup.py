"""Parts that a delivery is made of: its stream, listeners, sinks, clocks and record."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamer.core.message import Batch
from streamer.engine.driver.rejections import Rejections
from streamer.engine.driver.results_factory import ResultsWriter
from streamer.engine.report.batch_work import BatchWork
from streamer.engine.report.metric_labels import NO_LABELS, EndpointLabels, Labels
from streamer.engine.report.rejected_messages import RejectedMessages
from streamer.engine.report.result_frame import Frame
from streamer.engine.report.running_clock import RunningClock
from streamer.engine.report.stream_metrics import StreamMetrics
from streamer.engine.report.undelivered import UndeliveredBatches
from streamer.window.settings.window import Window

Resend = Callable[[Sequence[UndeliveredBatches], int], list[Frame]]
"""Tries once to send batches of a micro-batch of that number: see `Redelivery`."""


def _ignore_answers(answers: Mapping[str, Batch], refusals: Mapping[str, str]) -> None:
    """Nobody waits."""


def _ignore_failures(
    batch: int, at: int, samples: Sequence[bytes], rejected: Sequence[RejectedMessages]
) -> None:
    """Nobody looks."""


@dataclass(frozen=True, slots=True)
class DeliveredStream:
    """Facts of the stream whose micro-batches are delivered.

    Attributes:
        endpoint_labels: where the ends of the stream stand.
        window: the settings of windows; None without. Of several buffers, those of the first.
        windows: of several buffers, by label.
        parallel_tasks: gives how many tasks run at once.
    """

    endpoint_labels: EndpointLabels = NO_LABELS
    window: Window | None = None
    windows: Mapping[str, Window] = field(default_factory=dict)
    parallel_tasks: Callable[[], int] = lambda: 1


@dataclass(frozen=True, slots=True)
class DeliverySinks:
    """Destinations of what does not go to the outputs' writers.

    Attributes:
        results: keeps the results of windows.
        rejections: takes what outputs reject; without it such a micro-batch fails.
        resend: sends again what tasks could not deliver; None where they wait for ever.
    """

    results: ResultsWriter | None = None
    rejections: Rejections | None = None
    resend: Resend | None = None


@dataclass(frozen=True, slots=True)
class DeliveryListeners:
    """Callbacks of a delivery.

    Attributes:
        on_status: called with the statuses of all shards after each micro-batch.
        on_answers: called with the answers of requests, and with those that are refused and why.
        on_trouble: called with why it waits, and label and path of the component that it is of.
        on_wait: called after `on_trouble` with what is known of messages that wait for an output:
            see `TroubleTracker.note_wait`.
        on_samples: called with samples of messages, and when they came, ns.
        on_failures: called with the number of each micro-batch, the time, ns, the samples of its
            failed messages, and the messages that outputs have rejected.
        on_work: called with how long the stream's own processors and outputs had a micro-batch in
            hand, where that is so long that windows may expire for it.
    """

    on_status: Callable[[Mapping[int, Mapping[str, Any]]], None] = lambda statuses: None
    on_answers: Callable[[Mapping[str, Batch], Mapping[str, str]], None] = _ignore_answers
    on_trouble: Callable[[str, Labels], None] = lambda text, place: None
    on_wait: Callable[[int, float, int, str], None] = lambda tries, pause, messages, sample: None
    on_samples: Callable[[bytes, int], None] = lambda body, at: None
    on_failures: Callable[[int, int, Sequence[bytes], Sequence[RejectedMessages]], None] = (
        _ignore_failures
    )
    on_work: Callable[[BatchWork], None] = lambda work: None


@dataclass(frozen=True, slots=True)
class DeliveryClocks:
    """Clocks of a delivery.

    Attributes:
        sleep: waits between two tries, seconds.
        now: a clock that never runs backwards, seconds.
        wall_clock: ns.
        running: times the delivery; it stands while the program does.
    """

    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], int] = time.time_ns
    running: RunningClock = field(default_factory=RunningClock)


@dataclass(slots=True)
class DeliveryRecord:
    """Record of what was delivered, on which the next delivery of the same state goes on.

    Attributes:
        metrics: what was counted and timed since the start.
        statuses: the newest status of each shard, as stage 2 gave it.
        batch: the newest micro-batch that was delivered; -1 before the first.
    """

    metrics: StreamMetrics
    statuses: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    batch: int = -1
