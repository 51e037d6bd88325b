"""What others than the stream may ask about it: its HTTP server, and what exports metrics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from streamer.config import Config
from streamer.config.served import served_paths
from streamer.endpoints.registry import Endpoints
from streamer.engine.batch_progress import BatchProgress
from streamer.engine.meters import Key
from streamer.engine.places import Labels
from streamer.engine.rejected_files import WaitingMessages
from streamer.engine.snapshot import Counts, Snapshot
from streamer.engine.start_progress import StartPhase, StartProgress
from streamer.engine.timing import Times
from streamer.message import Execution
from streamer.service.expected import Expected, custom_metrics, expected
from streamer.spec import MetricsMapping


@dataclass(frozen=True, slots=True)
class Now:
    """A stream at one moment.

    Attributes:
        snapshot: its figures.
        counts: its counters, by name and labels.
        problem: why it does not get on, or an empty text.
        times: how long things took, by name and labels.
        gauges: measures what is not known until somebody asks, by name; it may read files.
        place: label and path of the component that the problem is of; empty when it is none's.
        backlog: messages that waited at the input of late; None when nobody knows.
        last_delivery: when the newest micro-batch was delivered, Unix s; None before the first.
        rejected: the rejected messages that wait for longest to be sent again; None for none.
    """

    snapshot: Snapshot
    counts: Counts
    problem: str = ""
    times: Mapping[Key, Times] = field(default_factory=dict)
    gauges: Callable[[], Mapping[str, float]] = dict
    place: Labels = field(default_factory=dict)
    backlog: int | None = None
    last_delivery: float | None = None
    rejected: WaitingMessages | None = None


class MetricName(NamedTuple):
    """A metric's name, and its labels."""

    name: str
    labels: Mapping[str, str]


MetricKey = tuple[tuple[MetricsMapping, ...], str, tuple[tuple[str, str], ...]]
"""The mappings of templates that a metric goes through, its name, and its labels with values."""


class Standing(NamedTuple):
    """How a stream stands that is one of many.

    Attributes:
        state: its state.
        restarts: how often it was started again since somebody started it.
        revision: what is deployed.
        uptime: for how long it runs, s.
    """

    state: str
    restarts: int
    revision: int
    uptime: float


_NOTHING = Now(Snapshot(), {})


class StreamView:
    """One stream from its start to its end. It can be used from several threads.

    Attributes:
        config: what runs.
        endpoints: the paths that components are served at.
        start: what its start is doing.
        batch_progress: tells how far the micro-batch in hand has got; None between two.
        standing: says how it stands among others; None where it has none beside it.
        mapped_names: what mappings have made of metrics, by these metrics' names and labels: the
            new name and labels, or None for a metric that is dropped. Each metric is mapped once,
            as in Benthos, so that what a mapping adds (an id, a time) stays.
        mapping_run: what these mappings may ask for, such as counters.
        unready_reason: gives why the stream is not ready although its ends are connected: it stops,
            or a deploy lets its windows out; an empty text for no such reason.
    """

    def __init__(self, config: Config, standing: Callable[[], Standing] | None = None) -> None:
        """Begin with a stream that has not started."""
        self.config = config
        self.endpoints = Endpoints(config.path)
        self._expect_paths()
        self.start = StartProgress()
        self.batch_progress: Callable[[], BatchProgress | None] = lambda: None
        self.unready_reason: Callable[[], str] = lambda: ""
        self.standing = standing
        self.mapped_names: dict[MetricKey, MetricName | None] = {}
        self.mapping_run = Execution(time.time_ns)
        self._lock = threading.Lock()
        self._now: Callable[[], Now] | None = None
        self._last = _NOTHING
        self._ended = False

    @cached_property
    def expected(self) -> tuple[Expected, ...]:
        """The components that have metrics."""
        return expected(self.config)

    @cached_property
    def custom_metrics(self) -> tuple[Expected, ...]:
        """The processors that make metrics of the config's own."""
        return custom_metrics(self.config)

    def replaced(self, config: Config) -> None:
        """Say that another config runs now."""
        self.config = config
        self._expect_paths()
        self.__dict__.pop("expected", None)
        self.__dict__.pop("custom_metrics", None)
        self.mapped_names = {}

    def _expect_paths(self) -> None:
        config = self.config
        paths = served_paths(config.input, config.buffer, config.output, config.resources)
        self.endpoints.expect(paths)

    def waits(self, problem: str) -> None:
        """Say why the stream does not start yet."""
        with self._lock:
            self._last = Now(Snapshot(), {}, problem)

    def running(self, now: Callable[[], Now]) -> None:
        """Say that the stream runs, and whom to ask about it."""
        with self._lock:
            self._now = now

    def ended(self) -> None:
        """Say that the stream is over; its last figures stay."""
        with self._lock:
            if self._now is not None:
                self._last = self._now()
            self._now, self._ended = None, True

    @property
    def waits_for(self) -> str:
        """What its start waits for, in words, with what the first micro-batch has read so far."""
        phase = self.start.current
        if phase is None:
            return ""
        batch = self.batch_progress() if phase.phase == StartPhase.FIRST_BATCH else None
        return f"{phase.text}: {batch.text}" if batch is not None and batch.messages else phase.text

    @property
    def started(self) -> bool:
        """Whether the stream runs."""
        return self._now is not None

    @property
    def is_over(self) -> bool:
        """Whether the stream has ended."""
        return self._ended

    def now(self) -> Now:
        """Return what the stream is doing."""
        ask = self._now
        return self._last if ask is None else ask()


Views = Callable[[], Mapping[str, StreamView]]
"""Gives streams by id; the one of a program that has no others has an empty one."""
