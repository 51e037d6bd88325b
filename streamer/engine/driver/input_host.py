"""Host of a stream's inputs: threads, directories and claims, which the driver frees again."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from streamer.connectors.spool.spooled_messages import SpooledMessages
from streamer.connectors.spool.store import CAPACITY_BYTES
from streamer.core.errors import StreamAbortedError, StreamerError
from streamer.core.limits import DEFAULT_LIMITS, stream_limits
from streamer.core.log_format import LogLine
from streamer.plan.component_text import parse_component, redact_component
from streamer.sdk.input.input_context import InputContext, MessageSpool, StoppableContext
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.sdk.sync_response import PendingRequests


class AddCount(Protocol):
    """Adds to a counter."""

    def __call__(self, name: str, by: int = 1, **labels: str) -> None:
        """Add."""


class PlannerWaker:
    """Wakes the planner of the query that runs; inputs outlive queries.

    Attributes:
        wake: wakes the planner of the newest query; nothing before the first.
    """

    def __init__(self) -> None:
        """Begin without a query."""
        self.wake: Callable[[], None] = lambda: None

    def __call__(self) -> None:
        """Wake the planner."""
        self.wake()


class InputHost:
    """Host of the inputs of one stream; each is opened in a context of its own.

    Attributes:
        remembered: what the inputs want to know at the next start, by their names.
        spool_limit: bytes that may wait in the spool of each input.
        limits: the largest message.
        local: whether the workers see this machine's files.
        answers: where requests wait for their answer; None when nothing gives any.
        endpoints: the stream's HTTP server; None when there is none.
        threads: those of the receivers.
        planner_waker: wakes the planner when an input has more to read.
        save: keeps what is remembered when that happens later on; set once all inputs are opened.
    """

    def __init__(
        self,
        directory: Path,
        known: Mapping[str, Any],
        log: LogLine,
        count: AddCount,
        stopping: threading.Event,
        read_stdin: Callable[[int], bytes] | None = None,
    ) -> None:
        """Set up.

        Args:
            directory: where receivers keep what the checkpoint does not have yet.
            known: what the inputs of an earlier start remembered.
            log: takes log lines.
            count: adds to a counter.
            stopping: set when the stream is to stop.
            read_stdin: reads the standard input; the process's own when None.
        """
        self.directory = directory
        self.known = known
        self.log = log
        self.count = count
        self.stopping = stopping
        self.read_stdin = read_stdin or (lambda size: os.read(sys.stdin.fileno(), size))
        self.remembered: dict[str, Any] = {}
        self.spool_limit = CAPACITY_BYTES
        self.limits = DEFAULT_LIMITS
        self.local = True
        self.answers: PendingRequests | None = None
        self.endpoints: Any = None
        self.planner_waker = PlannerWaker()
        self.save: Callable[[Mapping[str, Any]], None] = lambda remembered: None
        self.threads: list[threading.Thread] = []
        self.aborts: list[StreamAbortedError] = []
        self._waits: dict[str, tuple[str, float]] = {}
        self._claimed: set[str] = set()
        self._stops: list[Callable[[], None]] = []
        self._children: list[InputHost] = []

    def root_context(self) -> InputContext:
        """Return the context of the stream's input."""
        return _InputContext(self, "", self.directory)

    def stoppable_child(self, name: str, directory: Path) -> StoppableContext:
        """Return a context whose receivers stop with all others, or by themselves before."""
        # What inputs remember, claim and wait for is the stream's.
        child_host = copy(self)
        child_host.directory, child_host.stopping = directory, threading.Event()
        child_host.threads, child_host._stops, child_host._children = [], [], []
        self._children.append(child_host)

        def stop() -> None:
            with suppress(ValueError):
                self._stops.remove(stop)
            child_host.stop()
            self.report_waiting(name, "")
            if child_host in self._children and not child_host.is_alive():
                self._children.remove(child_host)

        self.on_stop(stop)
        return StoppableContext(_InputContext(child_host, name, directory), stop)

    def report_waiting(self, name: str, what: str) -> None:
        """Note what an input waits for; see `InputContext`."""
        if what:
            since = self._waits.get(name, ("", time.time()))[1]
            self._waits[name] = what, since
        else:
            self._waits.pop(name, None)

    @property
    def waiting_text(self) -> str:
        """The systems that inputs wait for, and since when; empty for none."""
        texts = []
        for what, since in list(self._waits.values()):
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(since))
            texts.append(f"{what}; waiting since {at}")
        return ", ".join(texts)

    def claim(self, what: str) -> None:
        """Give something away that there is one of."""
        if what in self._claimed:
            raise StreamerError(
                f"two inputs read {what}, and each would get a part of it: keep one of them"
            )
        self._claimed.add(what)

    def start(self, what: str, run: Callable[[], None]) -> None:
        """Run a receiver; one that breaks down says so."""

        def run_guarded() -> None:
            try:
                with stream_limits(self.limits):
                    run()
            except StreamAbortedError as e:
                self.aborts.append(e)
            except Exception as e:
                text = f"The receiver {what} broke down: {type(e).__name__}: {e}"
                self.log("ERROR", text, {})

        thread = threading.Thread(target=run_guarded, daemon=True, name=what)
        self.threads.append(thread)
        thread.start()

    def on_stop(self, stop: Callable[[], None]) -> None:
        """Have something called when the stream stops."""
        self._stops.append(stop)

    def stop(self) -> None:
        """Let the receivers take no more."""
        self.stopping.set()
        while self._stops:
            self._stops.pop()()

    def is_alive(self) -> bool:
        """Whether a receiver is still at work."""
        return any(thread.is_alive() for thread in self.threads) or any(
            branch.is_alive() for branch in self._children
        )

    def join(self, timeout: float) -> bool:
        """Wait, after `stop`, until the receivers have done what they were at.

        Args:
            timeout: seconds to wait.

        Returns:
            Whether they have. One that waits for a pipe does not hear of a stop.
        """
        until = time.monotonic() + timeout
        while self.is_alive():
            if time.monotonic() >= until:
                return False
            time.sleep(0.01)
        return True


class _InputContext:
    def __init__(self, host: InputHost, name: str, directory: Path) -> None:
        self._host = host
        self.name = name
        self.directory = directory
        self.spool_limit = host.spool_limit
        self.limits = host.limits
        self.is_local = host.local
        self.pending_requests = host.answers
        self.endpoints = host.endpoints
        self.claim = host.claim
        self.start = host.start
        self.on_stop = host.on_stop
        self.log = host.log
        self.count = host.count
        self.wait = host.stopping.wait
        self.wake_planner = host.planner_waker
        self.read_stdin = host.read_stdin

    @property
    def stopping(self) -> bool:
        return self._host.stopping.is_set()

    def report_waiting(self, what: str) -> None:
        self._host.report_waiting(self.name, what)

    def load_state(self) -> Any:
        return self._host.known.get(self.name)

    def save_state(self, what: Any) -> None:
        self._host.remembered[self.name] = what
        self._host.save(self._host.remembered)

    def open_spool(self) -> MessageSpool:
        return SpooledMessages(self)

    def child(self, name: str) -> InputContext:
        return _InputContext(self._host, *self._child_location(name))

    def stoppable_child(self, name: str) -> StoppableContext:
        return self._host.stoppable_child(*self._child_location(name))

    def read_config(self, kind: Kind, text: str) -> ParsedComponent:
        return parse_component(kind, text)

    def redacted_config(self, component: ParsedComponent) -> Mapping[str, Any]:
        return redact_component(component)

    def _child_location(self, name: str) -> tuple[str, Path]:
        # Labels may hold anything that YAML can.
        return f"{self.name}/{name}", self.directory / quote(name, safe="")
