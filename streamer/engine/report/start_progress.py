"""Progress of a start: its phases from the command to the first micro-batch, and their times."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from streamer.core.log_format import LogLine
from streamer.sdk.spec import ParsedComponent


class StartPhase(StrEnum):
    """The phases of a start; the values are the words for them."""

    PLAN = "planning"
    CHECKPOINT = "opening the checkpoint"
    CONNECT = "connecting"
    JAVA = "starting Java"
    SPARK = "starting Spark"
    QUERY = "starting the query"
    FIRST_BATCH = "first micro-batch"


_IN_BACKGROUND: Final = frozenset({StartPhase.JAVA, StartPhase.SPARK})
"""What may go on while the start does something else, which is then what it waits for."""

_LOG_TEXTS: Final[Mapping[StartPhase, str]] = {
    StartPhase.CHECKPOINT: "Opening the checkpoint",
    StartPhase.JAVA: "Starting Java",
    StartPhase.SPARK: "Starting Spark",
}
"""Phases with a log line. The others are over at once, or have one of their own ("Running")."""

_SLOW_CONNECT_S: Final = 1.0
"""A connection that takes longer has a log line: most take milliseconds, and there may be many."""


@dataclass(frozen=True, slots=True)
class PhaseState:
    """A phase that a start is in.

    Attributes:
        phase: which.
        component: label or name of what it connects to; empty in all other phases.
        seconds: since the phase began.
        label: label of what it connects to.
        path: the config path of that; empty in all other phases.
    """

    phase: StartPhase
    component: str
    seconds: float
    label: str = ""
    path: str = ""

    @property
    def text(self) -> str:
        """The phase in words: `starting Java`, `connecting to redis_list`."""
        return f"{self.phase} to {self.component}" if self.component else str(self.phase)


class StartProgress:
    """The phases of one start. It can be used from several threads.

    A phase lasts until the next one begins. Java and Spark may start in the background: they are
    what the start waits for when it is in no other phase.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin now, by a clock that never runs backwards, seconds."""
        self._clock = clock
        self._began = clock()
        self._log: LogLine | None = None
        self._lock = threading.Lock()
        self._foreground: tuple[StartPhase, str, float] | None = None
        self._background: tuple[StartPhase, str, float] | None = None
        self._connect_logged = False
        self._connecting = "", ""
        self._is_finished = False
        self._is_delivered = False

    def log_to(self, log: LogLine | None) -> None:
        """Write a line for each phase from now on, or none any more."""
        self._log = log

    def begin(self, phase: StartPhase, component: str = "") -> None:
        """Begin a phase of the start; ignored after the first micro-batch.

        Args:
            phase: what.
            component: label or name of what it connects to.
        """
        with self._lock:
            if self._is_finished:
                return
            begun = (phase, component, self._clock())
            if phase in _IN_BACKGROUND:
                self._background = begun
            else:
                self._foreground = begun
                self._connect_logged = False
            if phase in (StartPhase.QUERY, StartPhase.FIRST_BATCH):
                self._background = None
        if self._log is not None and phase in _LOG_TEXTS:
            self._log("INFO", _LOG_TEXTS[phase], {"seconds": self._rounded_seconds()})

    def connect(self, component: ParsedComponent) -> None:
        """Begin to connect to a component."""
        self._connecting = component.label, component.path
        self.begin(StartPhase.CONNECT, component.label or component.name)

    def end(self, phase: StartPhase) -> None:
        """End a phase before the next one begins: the background is waited for."""
        with self._lock:
            if self._foreground is not None and self._foreground[0] == phase:
                self._foreground = None
            elif self._background is not None and self._background[0] == phase:
                self._background = None

    def finish(self, delivered: bool = True) -> None:
        """End the start.

        Args:
            delivered: whether the first micro-batch is; else the start is given up. A micro-batch
                that is delivered after that still has its line: an input may end so soon that
                nobody has seen the first one delivered.
        """
        with self._lock:
            was_delivered = self._is_delivered
            self._is_finished, self._is_delivered = True, was_delivered or delivered
            self._foreground = self._background = None
        if delivered and not was_delivered and self._log is not None:
            text = "The first micro-batch is delivered"
            self._log("INFO", text, {"seconds": self._rounded_seconds()})

    @property
    def is_finished(self) -> bool:
        """Whether the first micro-batch is delivered, or the start given up."""
        return self._is_finished

    @property
    def current(self) -> PhaseState | None:
        """The current phase; None when the start has ended, or between two phases."""
        state = self._foreground or self._background
        if state is None:
            return None
        phase, component, began = state
        at = self._connecting if component else ("", "")
        return PhaseState(phase, component, self._clock() - began, *at)

    @property
    def seconds(self) -> float:
        """Seconds since the start began."""
        return self._clock() - self._began

    def check_connection(self) -> None:
        """Write a line when a connection takes long; call it now and then."""
        state = self.current
        if state is None or state.phase != StartPhase.CONNECT or state.seconds < _SLOW_CONNECT_S:
            return
        if self._log is not None and not self._connect_logged:
            self._connect_logged = True
            text = f"Still connecting to {state.component}"
            self._log("INFO", text, {"seconds": self._rounded_seconds()})

    def _rounded_seconds(self) -> float:
        return round(self.seconds, 1)


NO_PROGRESS: Final = StartProgress()
"""For a start that nobody looks at."""
NO_PROGRESS.finish()
