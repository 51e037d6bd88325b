"""Read model of a stream, for its HTTP server and the exporters of metrics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from streamer.config import Config
from streamer.config.lint.http_paths import find_served_paths
from streamer.connectors.http_server.registry import EndpointRegistry
from streamer.core.execution import Execution
from streamer.core.log_format import LogLine
from streamer.engine.driver.rejected_files import WaitingMessages
from streamer.engine.report.batch_progress import BatchProgress
from streamer.engine.report.clock_blame import ClockBlame
from streamer.engine.report.failed_messages import FailedMessages
from streamer.engine.report.latency import LatencySnapshot
from streamer.engine.report.metric_labels import Labels
from streamer.engine.report.start_progress import StartPhase, StartProgress
from streamer.engine.report.stream_metrics import Counts, SeriesKey, Snapshot
from streamer.engine.report.trouble import Trouble
from streamer.sdk.spec import MetricsMapping
from streamer.service.monitoring.earlier_figures import NEW_FIGURES, EarlierFigures
from streamer.service.monitoring.metric_components import (
    MetricComponent,
    find_custom_metrics,
    find_metric_components,
)
from streamer.service.monitoring.stream_figures import StreamFigures
from streamer.window.inspect.window_query import WindowQuery


@dataclass(frozen=True, slots=True)
class StreamState:
    """A stream at one moment.

    Attributes:
        snapshot: its figures.
        counts: its counters, by name and labels.
        problem: why it does not get on, or an empty text.
        times: how long things took, by name and labels.
        gauges: measures what is not known until somebody asks, by name; it may read files.
        problem_labels: label and path of the component that the problem is of; empty when it is
            none's.
        backlog: messages that waited at the input of late; None when nobody knows.
        last_delivery: when the newest micro-batch was delivered, Unix s; None before the first.
        rejected: the rejected messages that wait for longest to be sent again; None for none.
        trouble: why the stream does not get on, with its history; None while it does.
        last_message: when a message last came in, Unix s; None before the first of a start.
        behind_since: since when more messages wait at the input than a micro-batch takes, Unix s;
            None when they do not.
        tables: the newest commits of the tables that it writes, as the API has them.
        clock_blames: who holds the clock of each buffer back, by its label; by an empty text of
            the only buffer.
    """

    snapshot: Snapshot
    counts: Counts
    problem: str = ""
    times: Mapping[SeriesKey, LatencySnapshot] = field(default_factory=dict)
    gauges: Callable[[], Mapping[str, float]] = dict
    problem_labels: Labels = field(default_factory=dict)
    backlog: int | None = None
    last_delivery: float | None = None
    rejected: WaitingMessages | None = None
    trouble: Trouble | None = None
    last_message: float | None = None
    behind_since: float | None = None
    tables: Sequence[Mapping[str, Any]] = ()
    clock_blames: Mapping[str, ClockBlame] = field(default_factory=dict)


class MetricName(NamedTuple):
    """A metric's name, and its labels."""

    name: str
    labels: Mapping[str, str]


MetricKey = tuple[tuple[MetricsMapping, ...], str, tuple[tuple[str, str], ...]]
"""The mappings of templates that a metric goes through, its name, and its labels with values."""


class ManagedState(NamedTuple):
    """The state of a stream that is one of many.

    Attributes:
        state: its state.
        restarts: how often it was started again since somebody started it.
        revision: what is deployed.
        uptime: for how long it runs, s.
        reason: why it failed, or is started again.
        since: when it came to that state, Unix s; None where nobody knows.
        failing_since: when the first of the failures in a row was, Unix s; None without any.
        tries: how many failures in a row there were; None when nobody counts.
        next_try: when it is started again, Unix s; None when it is not.
        leaving: `pausing` or `stopping` from the moment that somebody asks for it; else empty.
        leaving_since: when that was, Unix s.
    """

    state: str
    restarts: int
    revision: int
    uptime: float
    reason: str = ""
    since: float | None = None
    failing_since: float | None = None
    tries: int | None = None
    next_try: float | None = None
    leaving: str = ""
    leaving_since: float | None = None


_EMPTY_STATE = StreamState(Snapshot(), {})


def ignore_line(level: str, text: str, fields: Mapping[str, Any]) -> None:
    """Take a line of the log, and do nothing."""


class StreamView:
    """One stream from its start to its end. It can be used from several threads.

    Attributes:
        config: what runs.
        endpoints: the paths that components are served at.
        start: what its start is doing.
        earlier_figures: figures of the run before, shown until this one has delivered something.
        batch_progress: tells how far the micro-batch in hand has got; None between two.
        managed_state: says how it stands among others; None where it has none beside it.
        failed_messages: samples of messages that have failed.
        mapped_names: what mappings have made of metrics, by these metrics' names and labels: the
            new name and labels, or None for a metric that is dropped. Each metric is mapped once,
            as in Benthos, so that what a mapping adds (an id, a time) stays.
        mapping_run: what these mappings may ask for, such as counters.
        figures: their history, and the rates now.
        unready_reason: gives why the stream is not ready although its ends are connected: it stops,
            or a deploy lets its windows out; an empty text for no such reason.
        is_draining: tells whether a deploy lets its windows out.
        on_line: hears each line of the stream's log.
        checkpoint_directory: of the run, on this machine; None before it has one.
        list_windows: lists the open windows of the run.
    """

    def __init__(
        self,
        config: Config,
        managed_state: Callable[[], ManagedState] | None = None,
        figures: StreamFigures | None = None,
    ) -> None:
        """Begin with a stream that has not started; its figures may be those of earlier runs."""
        self.config = config
        self.figures = figures or StreamFigures()
        self.endpoints = EndpointRegistry(config.path)
        self._register_paths()
        self.start = StartProgress()
        self.earlier_figures = NEW_FIGURES
        self.batch_progress: Callable[[], BatchProgress | None] = lambda: None
        self.unready_reason: Callable[[], str] = lambda: ""
        self.is_draining: Callable[[], bool] = lambda: False
        self.on_line: LogLine = ignore_line
        self.checkpoint_directory: Path | None = None
        self.list_windows: Callable[[WindowQuery], Mapping[str, Any]] = lambda query: {}
        self.managed_state = managed_state
        self.failed_messages = FailedMessages()
        self.mapped_names: dict[MetricKey, MetricName | None] = {}
        self.mapping_run = Execution(time.time_ns)
        self._lock = threading.Lock()
        self._read_state: Callable[[], StreamState] | None = None
        self._last_state = _EMPTY_STATE
        self._has_ended = False

    @cached_property
    def metric_components(self) -> tuple[MetricComponent, ...]:
        """The components that have metrics."""
        return find_metric_components(self.config)

    @cached_property
    def custom_metrics(self) -> tuple[MetricComponent, ...]:
        """The processors that make metrics of the config's own."""
        return find_custom_metrics(self.config)

    def set_config(self, config: Config) -> None:
        """Switch to another config, which runs from now on."""
        self.config = config
        self._register_paths()
        self.__dict__.pop("metric_components", None)
        self.__dict__.pop("custom_metrics", None)
        self.mapped_names = {}

    def _register_paths(self) -> None:
        config = self.config
        ends = (config.input, *config.outputs)
        paths = find_served_paths(ends, config.late_outputs, config.resources)
        self.endpoints.expect(paths)

    def set_waiting(self, problem: str) -> None:
        """Set why the stream does not start yet."""
        with self._lock:
            self._last_state = StreamState(Snapshot(), {}, problem)

    def set_running(self, read_state: Callable[[], StreamState]) -> None:
        """Begin to read the state of a stream that runs."""
        with self._lock:
            self._read_state = read_state

    def set_ended(self) -> None:
        """Mark the stream as ended; its last figures stay."""
        with self._lock:
            if self._read_state is not None:
                self._last_state = self._read_state()
            self._read_state, self._has_ended = None, True

    @property
    def waits_for(self) -> str:
        """The phase of the start, in words, with the progress of the first micro-batch."""
        phase = self.start.current
        if phase is None:
            return ""
        batch = self.batch_progress() if phase.phase == StartPhase.FIRST_BATCH else None
        return f"{phase.text}: {batch.text}" if batch is not None and batch.messages else phase.text

    @property
    def is_running(self) -> bool:
        """Whether the stream runs."""
        return self._read_state is not None

    @property
    def has_ended(self) -> bool:
        """Whether the stream has ended."""
        return self._has_ended

    def current_state(self) -> StreamState:
        """Return what the stream is doing."""
        read_state = self._read_state
        return self._last_state if read_state is None else read_state()


def shown_figures(view: StreamView, current: StreamState) -> EarlierFigures:
    """Return the figures of a stream: of now, or as of the newest micro-batch of an earlier run."""
    snapshot, earlier = current.snapshot, view.earlier_figures
    has_earlier = snapshot.batch < 0 and earlier != NEW_FIGURES
    return earlier if has_earlier else EarlierFigures.of(snapshot)


Views = Callable[[], Mapping[str, StreamView]]
"""Gives streams by id; the one of a program that has no others has an empty one."""
