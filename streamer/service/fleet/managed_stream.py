"""One stream of the service, with all that is known about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from streamer.config import Config
from streamer.config.secrets import add_variable_values
from streamer.connectors.http_server.registry import EndpointRegistry
from streamer.core.durations import SECOND, format_duration
from streamer.core.redaction import Redaction
from streamer.engine.driver.delivery import LogLine
from streamer.service.fleet.deployment_store import API_SOURCE, Revision
from streamer.service.fleet.log_tail import LogTail
from streamer.service.fleet.supervisor import (
    ACTIVE,
    LifecycleState,
    RestartPolicy,
    RunHandle,
    StartLimiter,
    Supervisor,
)
from streamer.service.monitoring.stream_view import ManagedState, StreamView

MakeRun = Callable[[str, Config, LogLine, StreamView, Callable[[Config], None], bool], RunHandle]
"""Makes a run: of an id and a config, with a log, a view to tell, who hears of the config that runs
after one that has failed on probation, and whether it came by API."""


_FINE_LEVELS: Final = frozenset({"DEBUG", "TRACE"})


class ManagedStream:
    """A stream.

    Attributes:
        stream_id: its id.
        config: what runs.
        revision: what is deployed.
        directory: what this machine keeps of it.
        log_tail: the newest lines of its log.
        view: what its newest run says.
        run: its newest run; None before the first.
        supervisor: looks after it.
        list_other_endpoints: gives what other streams serve on the same server, see
            `EndpointRegistry`.
        prefixed: whether what it serves stands behind its id, see `EndpointRegistry`.
    """

    def __init__(
        self,
        stream_id: str,
        config: Config,
        revision: Revision,
        directory: str,
        make: MakeRun,
        log: LogLine,
        restarts: RestartPolicy,
        poll_interval: Callable[[], float],
        start_limiter: StartLimiter,
        on_state: Callable[[str, LifecycleState], None],
        on_rollback: Callable[[ManagedStream, Config], None],
    ) -> None:
        """Begin with a stream that is stopped.

        Args:
            stream_id: its id.
            config: what is to run.
            revision: what is deployed.
            directory: what this machine keeps of it.
            make: makes runs.
            log: takes lines of the service's log.
            restarts: how often it is started again.
            poll_interval: gives the seconds between two looks at it.
            start_limiter: what streams pass when they start.
            on_state: hears of the states that it comes to by itself.
            on_rollback: hears of the config that it went back to.
        """
        self.stream_id = stream_id
        self.directory = directory
        self.log_tail = LogTail()
        self.view = StreamView(config, self._managed_state)
        self.run: RunHandle | None = None
        self.list_other_endpoints: Callable[[], Iterable[tuple[str, EndpointRegistry]]] = lambda: ()
        self.prefixed = False
        self._make = make
        self._on_rollback = on_rollback
        self._log = log
        self._redaction = Redaction()
        self.set_revision(config, revision)
        self.supervisor = Supervisor(
            stream_id,
            self._start_run,
            self.log,
            restarts,
            poll_interval,
            start_limiter,
            lambda state: on_state(stream_id, state),
        )

    def set_revision(self, config: Config, revision: Revision) -> None:
        """Have another revision: it runs already, or is to run from the next start on."""
        self.config, self.revision = config, revision
        self._redaction = Redaction(add_variable_values(config.secrets, config.inputs))

    def _start_run(self) -> RunHandle:
        self.view = StreamView(self.config, self._managed_state)
        # The service's server is there before any stream.
        self.view.endpoints.served = bool(self.config.http["enabled"])
        self.view.endpoints.fallback = self.list_other_endpoints
        self.view.endpoints.prefixed = self.prefixed
        self.run = self._make(
            *(self.stream_id, self.config, self.log, self.view),
            lambda config: self._on_rollback(self, config),
            self.is_of_api,
        )
        return self.run

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
        self._log(level, text, {**fields, "stream": self.stream_id})

    @property
    def is_of_api(self) -> bool:
        """Whether the stream came by API, and is the API's to change."""
        return self.revision.source == API_SOURCE

    @property
    def is_active(self) -> bool:
        """Whether messages flow, or are about to."""
        return self.supervisor.state in ACTIVE

    @property
    def is_ready(self) -> bool:
        """Whether its input and output are connected, and it neither stops nor drains."""
        if self.view.unready_reason():
            return False
        now = self.view.current_state()
        return self.view.is_running and not now.problem and now.snapshot.batch >= 0

    @property
    def _is_starting(self) -> bool:
        """Whether it may be on its way to its first micro-batch."""
        return self.supervisor.state in (LifecycleState.STARTING, LifecycleState.RUNNING)

    def uptime_ns(self) -> int:
        """Return for how long it runs, ns; of one that does not, how long it has run."""
        return round(self.supervisor.uptime() * SECOND)

    def _managed_state(self) -> ManagedState:
        supervisor = self.supervisor
        uptime = supervisor.uptime() if self.is_active else 0.0
        return ManagedState(
            str(supervisor.state), supervisor.restarts, self.revision.number, uptime
        )

    def _oldest_rejected(self) -> dict[str, Any] | None:
        """Return the rejected messages that wait for longest to be sent again, if there are any."""
        waiting = self.view.current_state().rejected
        if waiting is None:
            return None
        document = waiting.to_document()
        return {**document, "error": self._redaction.redact_text(document["error"])}

    def status(self) -> dict[str, Any]:
        """Return what the list of streams says of it: Benthos's fields first."""
        uptime, supervisor = self.uptime_ns(), self.supervisor
        snapshot = self.view.current_state().snapshot
        return {
            "active": self.is_active,
            "uptime": uptime / SECOND,
            "uptime_str": format_duration(uptime),
            "state": str(supervisor.state),
            "waits_for": self._redaction.redact_text(self.view.waits_for)
            if self._is_starting
            else "",
            "reason": self._redaction.redact_text(
                supervisor.reason or self.view.current_state().problem
            ),
            "rejected": self._oldest_rejected(),
            "restarts": supervisor.restarts,
            "source": self.revision.source,
            "revision": self.revision.number,
            "messages": snapshot.messages,
            "open_windows": snapshot.open_windows,
        }
