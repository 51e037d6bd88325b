"""The rooms that a stream's inputs are opened in: what the driver lends them, and takes back."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from streamer.answering import Answers
from streamer.engine.delivery import LogLine
from streamer.errors import StreamerError
from streamer.landing.store import CAPACITY
from streamer.limits import DEFAULT_LIMITS, stream_limits
from streamer.plan.texts import component_document, read_component
from streamer.source.opening import Branch, Room
from streamer.spec import Kind, ParsedComponent


class Count(Protocol):
    """Adds to a counter."""

    def __call__(self, name: str, by: int = 1, **labels: str) -> None:
        """Add."""


class House:
    """All rooms of one stream.

    Attributes:
        remembered: what the inputs want to know at the next start, by their names.
        spool_limit: bytes that may wait in the spool of each input.
        limits: what one message may come to.
        local: whether the workers see this machine's files.
        answers: where requests wait for their answer; None when nothing gives any.
        endpoints: the stream's HTTP server; None when there is none.
        threads: those of the receivers.
        save: keeps what is remembered when that happens later on; set once all inputs are opened.
    """

    def __init__(
        self,
        directory: Path,
        known: Mapping[str, Any],
        log: LogLine,
        count: Count,
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
        self.spool_limit = CAPACITY
        self.limits = DEFAULT_LIMITS
        self.local = True
        self.answers: Answers | None = None
        self.endpoints: Any = None
        self.save: Callable[[Mapping[str, Any]], None] = lambda remembered: None
        self.threads: list[threading.Thread] = []
        self._waits: dict[str, tuple[str, float]] = {}
        self._claimed: set[str] = set()
        self._stops: list[Callable[[], None]] = []
        self._branches: list[House] = []

    def room(self) -> Room:
        """Return the room of the stream's input."""
        return _Room(self, "", self.directory)

    def branch(self, name: str, directory: Path) -> Branch:
        """Return a room whose receivers can be stopped by themselves; they stop with all others."""
        apart = House(directory, self.known, self.log, self.count, threading.Event())
        apart.read_stdin = self.read_stdin
        apart.spool_limit, apart.local, apart.limits = self.spool_limit, self.local, self.limits
        apart.answers, apart.endpoints = self.answers, self.endpoints
        apart.remembered, apart.save = self.remembered, self.save
        apart._claimed, apart._waits = self._claimed, self._waits
        self._branches.append(apart)

        def stop() -> None:
            with suppress(ValueError):
                self._stops.remove(stop)
            apart.stop()
            self.report_waiting(name, "")
            if apart in self._branches and not apart.busy():
                self._branches.remove(apart)

        self.on_stop(stop)
        return Branch(_Room(apart, name, directory), stop)

    def report_waiting(self, name: str, what: str) -> None:
        """Hear what an input waits for; see `Room`."""
        if what:
            since = self._waits.get(name, ("", time.time()))[1]
            self._waits[name] = what, since
        else:
            self._waits.pop(name, None)

    @property
    def waiting(self) -> str:
        """What the inputs wait for and since when; empty for nothing."""
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

        def guarded() -> None:
            try:
                with stream_limits(self.limits):
                    run()
            except Exception as e:
                text = f"The receiver {what} broke down: {type(e).__name__}: {e}"
                self.log("ERROR", text, {})

        thread = threading.Thread(target=guarded, daemon=True, name=what)
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

    def busy(self) -> bool:
        """Whether a receiver is still at work."""
        return any(thread.is_alive() for thread in self.threads) or any(
            branch.busy() for branch in self._branches
        )

    def left(self, timeout: float) -> bool:
        """Wait, after `stop`, until the receivers have done what they were at.

        Args:
            timeout: seconds to wait.

        Returns:
            Whether they have. One that waits for a pipe does not hear of a stop.
        """
        until = time.monotonic() + timeout
        while self.busy():
            if time.monotonic() >= until:
                return False
            time.sleep(0.01)
        return True


class _Room:
    def __init__(self, house: House, name: str, directory: Path) -> None:
        self._house = house
        self.name = name
        self.directory = directory
        self.spool_limit = house.spool_limit
        self.limits = house.limits
        self.local = house.local
        self.answers = house.answers
        self.endpoints = house.endpoints
        self.claim = house.claim
        self.start = house.start
        self.on_stop = house.on_stop
        self.log = house.log
        self.count = house.count
        self.wait = house.stopping.wait
        self.read_stdin = house.read_stdin

    @property
    def stopping(self) -> bool:
        return self._house.stopping.is_set()

    def report_waiting(self, what: str) -> None:
        self._house.report_waiting(self.name, what)

    def known(self) -> Any:
        return self._house.known.get(self.name)

    def remember(self, what: Any) -> None:
        self._house.remembered[self.name] = what
        self._house.save(self._house.remembered)

    def inner(self, name: str) -> Room:
        return _Room(self._house, *self._below(name))

    def branch(self, name: str) -> Branch:
        return self._house.branch(*self._below(name))

    def read_config(self, kind: Kind, text: str) -> ParsedComponent:
        return read_component(kind, text)

    def shown_config(self, component: ParsedComponent) -> Mapping[str, Any]:
        return component_document(component)

    def _below(self, name: str) -> tuple[str, Path]:
        # Labels may hold anything that YAML can.
        return f"{self.name}/{name}", self.directory / quote(name, safe="")
