"""One stream of the service: starts it, starts it again when it fails, stops it on request.

Everything that is done with a stream is done in its own thread, one thing after the other. So no
stream waits for another one, and what fails in one is seen by nobody else.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamer.config import Config
from streamer.config.secrets import add_variable_values, list_references
from streamer.connectors.http_server.registry import EndpointRegistry
from streamer.core.crash_output import hide_in_crash_output
from streamer.core.durations import SECOND, format_duration
from streamer.core.errors import StreamerError, is_transient
from streamer.core.log_format import LogLine
from streamer.core.redaction import Redaction
from streamer.engine.driver.failure_diagnosis import root_cause_line
from streamer.service.fleet.deployment_store import API_SOURCE, Revision
from streamer.service.fleet.lifecycle import ACTIVE, Lifecycle, LifecycleState
from streamer.service.fleet.log_tail import LogTail
from streamer.service.fleet.restart_schedule import RestartPolicy, RestartSchedule, StartLimiter
from streamer.service.fleet.run_handle import RunHandle, RunRequest, StartRun
from streamer.service.monitoring.earlier_figures import FiguresFile
from streamer.service.monitoring.readiness import unready_reason
from streamer.service.monitoring.stream_condition import (
    CONDITION_TEXTS,
    Condition,
    derive_condition,
)
from streamer.service.monitoring.stream_figures import MarkerKind, StreamFigures
from streamer.service.monitoring.stream_view import (
    ManagedState,
    StreamState,
    StreamView,
    shown_figures,
)
from streamer.service.run.revision_switch import RevisionChange

_LEAVING: Final[Mapping[LifecycleState | None, str]] = {
    LifecycleState.PAUSED: Condition.PAUSING,
    LifecycleState.STOPPED: Condition.STOPPING,
}
"""Conditions of a stream that is asked to stop, by the state that it comes to."""

_FINE_LEVELS: Final = frozenset({"DEBUG", "TRACE"})
_ERROR_LEVELS: Final = frozenset({"ERROR", "FATAL"})

_START_POLL_INTERVAL_S: Final = 0.1
_MAX_START_S: Final = 20.0
"""Seconds after which a stream that has delivered nothing is not taken to be starting."""

_BUSY_S: Final = 30.0
"""Seconds for which a stream that has delivered something is taken to be busy."""


@dataclass(frozen=True, slots=True)
class FleetContext:
    """Surroundings that all streams of a service share.

    Attributes:
        start_run: starts runs.
        log: takes lines of the service's log.
        restarts: how often a stream that fails is started again.
        start_limiter: what streams pass when they start.
        poll_interval: gives the seconds between two polls of a stream.
        other_endpoints: gives what other streams than one serve, by their ids, see
            `EndpointRegistry`.
        prefixed: whether what a stream serves stands behind its id, see `EndpointRegistry`.
        on_end: called with the id of a stream whose input has ended.
        on_rollback: called with a stream, and the config that it went back to.
        read_config: reads the config of a stream's revision again, for its secrets.
    """

    start_run: StartRun
    log: LogLine
    restarts: RestartPolicy
    start_limiter: StartLimiter
    poll_interval: Callable[[], float]
    other_endpoints: Callable[[str], Iterable[tuple[str, EndpointRegistry]]]
    prefixed: bool
    on_end: Callable[[str], None]
    on_rollback: Callable[[ManagedStream, Config], None]
    read_config: Callable[[str, Revision], Config] | None = None


class ManagedStream:
    """A stream, with all that is known about it. Its methods may be called from several threads.

    Attributes:
        stream_id: its id.
        config: what runs.
        revision: what is deployed.
        directory: what this machine keeps of it.
        log_tail: the newest lines of its log.
        view: what its newest run says.
        figures: of all its runs.
        run: its run; None while there is none.
        lifecycle: its state.
    """

    def __init__(
        self,
        stream_id: str,
        config: Config,
        revision: Revision,
        directory: str,
        context: FleetContext,
    ) -> None:
        """Begin with a stream that is stopped.

        Args:
            stream_id: its id.
            config: what is to run.
            revision: what is deployed.
            directory: what this machine keeps of it.
            context: what it shares with others.
        """
        self.stream_id = stream_id
        self.directory = directory
        self.log_tail = LogTail()
        self.figures = StreamFigures()
        self.view = StreamView(config, self._managed_state, self.figures)
        self.view.earlier_figures = FiguresFile(Path(directory)).load()
        self.run: RunHandle | None = None
        self.lifecycle = Lifecycle()
        self._context = context
        self.set_revision(config, revision)
        self._schedule = RestartSchedule(context.restarts)
        self._restart_at = 0.0
        self._leaving: tuple[str, float | None] = "", None
        self._start_slot_since: float | None = None
        self._min_interval = 0.0
        self._newest_batch = -1, time.monotonic() - _BUSY_S
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        name = f"stream {stream_id}"
        self._thread = threading.Thread(target=self._run_jobs, daemon=True, name=name)
        self._thread.start()

    def set_revision(self, config: Config, revision: Revision) -> None:
        """Have another revision: it runs already, or is to run from the next start on."""
        self.config, self.revision = config, revision
        secrets = add_variable_values(config.secrets, config.inputs)
        self._redaction = Redaction(secrets)
        hide_in_crash_output(secrets)

    def start(self, should_retry: bool = False) -> None:
        """Start the stream, and wait until that is done.

        Args:
            should_retry: try again later when it does not start, as when it fails while it runs.

        Raises:
            StreamerError: it did not start, and is in the state that it was in.
        """
        self._submit(lambda: self._begin_start(should_retry))

    def stop(
        self, timeout: float | None = None, state: LifecycleState | None = LifecycleState.STOPPED
    ) -> None:
        """Stop the stream between two micro-batches, and wait until that is done.

        Args:
            timeout: seconds for the micro-batch in hand.
            state: what it comes to; None for a stream that whoever calls starts again at once.
        """
        self._leaving = _LEAVING.get(state, ""), time.time()
        try:
            self._interrupt()
            self._submit(lambda: self._stop(timeout, state))
        finally:
            self._leaving = "", None

    def replace(self, change: RevisionChange) -> bool:
        """Let another revision take the place of the run, and wait until that is done.

        Returns:
            Whether there was a run; else the next start has to do it.

        Raises:
            StreamerError: it does not run; what ran before does.
        """
        results: list[bool] = []
        self._submit(lambda: results.append(self._replace(change)))
        return results[0]

    def close(self) -> None:
        """Stop the stream if it runs, and end its thread; its state stays what it was."""
        self._interrupt()
        self._submit(self._stop_run)
        self._jobs.put(None)
        self._thread.join(30)

    def set_min_interval(self, seconds: float) -> None:
        """Set the shortest time between two micro-batches, s."""
        self._min_interval = seconds

    def _interrupt(self) -> None:
        run = self.run
        if run is not None:
            run.interrupt()

    def _submit(self, action: Callable[[], None]) -> None:
        done: Future[None] = Future()

        def job() -> None:
            try:
                action()
            except BaseException as e:
                done.set_exception(e)
            else:
                done.set_result(None)

        self._jobs.put(job)
        done.result()

    def _run_jobs(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=self._next_wait())
            except queue.Empty:
                self._poll()
                continue
            if job is None:
                return
            job()

    def _next_wait(self) -> float | None:
        if self.lifecycle.state in (LifecycleState.RESTARTING, LifecycleState.WAITING):
            return max(self._restart_at - time.monotonic(), 0.0)
        if self.run is None:
            return None
        interval = self._context.poll_interval()
        # Others wait for the place of a stream that starts: few do so at a time.
        return min(interval, _START_POLL_INTERVAL_S) if self._start_slot_since else interval

    def _poll(self) -> None:
        """Check on the run, or start it again when it is time to."""
        try:
            if self.run is None:
                self._start()
                return
            self.run.set_min_interval(self._min_interval)
            batch, now = self.run.newest_batch, time.monotonic()
            if batch != self._newest_batch[0]:
                self._newest_batch = batch, now
            began = self._start_slot_since
            if began is not None and (batch >= 0 or now - began > _MAX_START_S):
                self._release_start_slot()
            if self.run.poll():
                self._stop_run(has_ended=True)
                self.lifecycle.move_to(LifecycleState.ENDED)
                self._context.on_end(self.stream_id)
        except BaseException as e:
            # Whatever goes wrong in one stream, `sys.exit` too, must not end its thread.
            self._handle_failure(e)

    def _begin_start(self, should_retry: bool) -> None:
        if self.run is not None:
            return
        self._schedule = RestartSchedule(self._context.restarts)
        self.lifecycle.restarts = 0
        former_state = self.lifecycle.state
        try:
            self._start()
        except BaseException as e:
            # What a server or the machine lacks now says nothing about the config.
            if not should_retry and not is_transient(e):
                self.lifecycle.move_to(former_state)
                if isinstance(e, Exception):
                    raise
                raise StreamerError(f"it ended itself: {type(e).__name__}: {e}") from e
            self._handle_failure(e)

    def _start(self) -> None:
        context, lifecycle = self._context, self.lifecycle
        if lifecycle.state != LifecycleState.WAITING:
            lifecycle.move_to(LifecycleState.STARTING)
        self._read_secrets()
        has_slot = context.start_limiter.acquire()
        self._start_slot_since = time.monotonic() if has_slot else None
        try:
            self.run = context.start_run(self._make_request())
        except BaseException:
            self._release_start_slot()
            raise
        self.run.set_min_interval(self._min_interval)
        lifecycle.move_to(LifecycleState.RUNNING)

    def _read_secrets(self) -> None:
        """Read the secrets of the config again: they may have changed since its deploy."""
        read = self._context.read_config
        if read is None or not list_references(self.config):
            return
        try:
            self.set_revision(read(self.stream_id, self.revision), self.revision)
        except StreamerError as e:
            # A store may be away just now; what it said before may still be right.
            text = "The secrets cannot be read again; the stream starts with those it had"
            self.log("WARN", text, {"reason": self.redact_text(str(e))})

    def _make_request(self) -> RunRequest:
        context = self._context
        former_figures = shown_figures(self.view, self.view.current_state())
        failed_messages = self.view.failed_messages
        self.view = StreamView(self.config, self._managed_state, self.figures)
        # What has failed in the run before is what somebody looks for now.
        self.view.failed_messages = failed_messages
        self.view.earlier_figures = former_figures
        # The service's server is there before any stream.
        self.view.endpoints.served = bool(self.config.http["enabled"])
        self.view.endpoints.fallback = lambda: context.other_endpoints(self.stream_id)
        self.view.endpoints.prefixed = context.prefixed
        return RunRequest(
            *(self.stream_id, self.config, self.log, self.view),
            on_rollback=lambda config: context.on_rollback(self, config),
            is_of_api=self.is_of_api,
        )

    def _stop(self, timeout: float | None, state: LifecycleState | None) -> None:
        self._stop_run(timeout)
        if state is None:
            is_active = self.lifecycle.is_active
            state = LifecycleState.RESTARTING if is_active else self.lifecycle.state
            # Not by itself before whoever calls has come to do it.
            self._restart_at = time.monotonic() + _MAX_START_S
        self.lifecycle.move_to(state)

    def _replace(self, change: RevisionChange) -> bool:
        if self.run is None:
            return False
        self.run.replace(change)
        self._schedule.forget_failures()
        return True

    def _stop_run(self, timeout: float | None = None, has_ended: bool = False) -> None:
        run, self.run = self.run, None
        self._release_start_slot()
        if run is not None:
            run.stop(timeout, has_ended)

    def _release_start_slot(self) -> None:
        if self._start_slot_since is not None:
            self._start_slot_since = None
            self._context.start_limiter.release()

    def _handle_failure(self, error: BaseException) -> None:
        """Decide what becomes of a stream that failed."""
        known = isinstance(error, StreamerError)
        text = str(error) if known else root_cause_line(f"{type(error).__name__}: {error}")
        batch = self.run.newest_batch if self.run is not None else None
        outcome = self._schedule.record_failure(error, text, batch)
        try:
            self._stop_run(0.0)
        except BaseException as e:
            self.log("WARN", f"Something of the stream was left behind: {e}", {})
        if outcome.pause_s is None:
            line = f"The stream has failed, and is not started again: {text}"
        else:
            self._restart_at = time.monotonic() + outcome.pause_s
            self.lifecycle.restarts += 1
            again = f"in {outcome.pause_s:g} s"
            line = f"The stream failed: {text}; starting it again {again}"
            if outcome.state == LifecycleState.WAITING:
                line = f"The stream waits: {outcome.reason}; trying again {again}"
        self.log("ERROR", line, {})
        self.lifecycle.move_to(outcome.state, outcome.reason)

    def redact_value(self, value: Any) -> Any:
        """Return a value whose texts are without the stream's secrets."""
        return self._redaction.redact_value(value)

    def redact_text(self, text: str) -> str:
        """Return a text without the stream's secrets."""
        return self._redaction.redact_text(text)

    def log(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Write a line about the stream."""
        text, fields = self._redaction.redact_text(text), self._redaction.redact_value(fields)
        if level not in _FINE_LEVELS:
            self.log_tail.add(time.time_ns(), level, text, fields)
        if level in _ERROR_LEVELS:
            self.figures.mark(MarkerKind.ERROR, text)
        self.view.on_line(level, text, fields)
        self._context.log(level, text, {**fields, "stream": self.stream_id})

    @property
    def is_of_api(self) -> bool:
        """Whether the stream came by API, and is the API's to change."""
        return self.revision.source == API_SOURCE

    @property
    def is_busy(self) -> bool:
        """Whether the stream has delivered something of late."""
        return self.lifecycle.is_active and time.monotonic() - self._newest_batch[1] < _BUSY_S

    @property
    def is_ready(self) -> bool:
        """Whether its input and output are connected, and it neither stops nor drains."""
        now = self.view.current_state()
        return self.view.is_running and not now.problem and not unready_reason(self.view, now)

    def unready_text(self) -> str:
        """Return why it is not ready, in a few words."""
        view, now = self.view, self.view.current_state()
        reason = view.unready_reason()
        return reason or CONDITION_TEXTS[derive_condition(view, now, time.time()).name]

    def uptime_ns(self) -> int:
        """Return for how long it runs, ns; of one that does not, how long it has run."""
        return round(self.lifecycle.uptime() * SECOND)

    def _managed_state(self) -> ManagedState:
        lifecycle = self.lifecycle
        uptime = lifecycle.uptime() if lifecycle.is_active else 0.0
        schedule, next_try = self._schedule, None
        if lifecycle.state in (LifecycleState.RESTARTING, LifecycleState.WAITING):
            left = self._restart_at - time.monotonic()
            next_try = time.time() + left if left > 0 else None
        leaving, leaving_since = self._leaving
        return ManagedState(
            *(str(lifecycle.state), lifecycle.restarts, self.revision.number, uptime),
            reason=lifecycle.reason,
            since=lifecycle.changed_at,
            failing_since=schedule.failing_since,
            tries=schedule.failures + schedule.waits or None,
            next_try=next_try,
            leaving=leaving if lifecycle.is_active else "",
            leaving_since=leaving_since,
        )

    def _oldest_rejected(self) -> dict[str, Any] | None:
        """Return the rejected messages that wait for longest to be sent again, if there are any."""
        waiting = self.view.current_state().rejected
        if waiting is None:
            return None
        document: dict[str, Any] = self.redact_value(waiting.to_document())
        return document

    def condition(self, current: StreamState | None = None) -> dict[str, Any]:
        """Return how the stream is, for JSON; see `stream_condition`."""
        now = time.time()
        state = self.view.current_state() if current is None else current
        document = derive_condition(self.view, state, now).to_document(now)
        redacted: dict[str, Any] = self.redact_value(document)
        return redacted

    def status(self) -> dict[str, Any]:
        """Return what the list of streams says of it: Benthos's fields first."""
        uptime, lifecycle = self.uptime_ns(), self.lifecycle
        # Together: a stream that is tried again and again is in another state a moment later.
        lifecycle_state, reason = lifecycle.state, lifecycle.reason
        current = self.view.current_state()
        figures = shown_figures(self.view, current)
        # Whether it may be on its way to its first micro-batch.
        is_starting = lifecycle_state in (LifecycleState.STARTING, LifecycleState.RUNNING)
        return {
            "active": lifecycle_state in ACTIVE,
            "uptime": uptime / SECOND,
            "uptime_str": format_duration(uptime),
            "state": str(lifecycle_state),
            "condition": self.condition(current),
            "waits_for": self.redact_text(self.view.waits_for) if is_starting else "",
            "reason": self.redact_text(reason or current.problem),
            "rejected": self._oldest_rejected(),
            "restarts": lifecycle.restarts,
            "source": self.revision.source,
            "revision": self.revision.number,
            "messages": figures.messages,
            "open_windows": figures.open_windows,
            "as_of": figures.as_of_text,
        }
