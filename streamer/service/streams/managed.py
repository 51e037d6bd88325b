"""One stream of the service, with all that is known about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from streamer.config import Config
from streamer.config.secrets import with_variables
from streamer.durations import SECOND, format_duration
from streamer.endpoints.registry import Endpoints
from streamer.engine.delivery import LogLine
from streamer.redaction import Redaction
from streamer.service.streams.lines import Lines
from streamer.service.streams.store import API, Revision
from streamer.service.streams.supervisor import ACTIVE, Gate, Restarts, Run, State, Supervisor
from streamer.service.view import Standing, StreamView

Make = Callable[[str, Config, LogLine, StreamView, Callable[[Config], None], bool], Run]
"""Makes a run: of an id and a config, with a log, a view to tell, who hears of the config that runs
after one that has failed on probation, and whether it came by API."""


_FINE: Final = frozenset({"DEBUG", "TRACE"})


class Managed:
    """A stream.

    Attributes:
        stream_id: its id.
        config: what runs.
        revision: what is deployed.
        directory: what this machine keeps of it.
        lines: the newest lines of its log.
        view: what its newest run says.
        run: its newest run; None before the first.
        supervisor: looks after it.
        beside: gives what other streams serve on the same server, see `Endpoints`.
        prefixed: whether what it serves stands behind its id, see `Endpoints`.
    """

    def __init__(
        self,
        stream_id: str,
        config: Config,
        revision: Revision,
        directory: str,
        make: Make,
        log: LogLine,
        restarts: Restarts,
        look: Callable[[], float],
        gate: Gate,
        told: Callable[[str, State], None],
        back: Callable[[Managed, Config], None],
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
            look: gives the seconds between two looks at it.
            gate: what streams pass when they start.
            told: hears of the states that it comes to by itself.
            back: hears of the config that it went back to.
        """
        self.stream_id = stream_id
        self.directory = directory
        self.lines = Lines()
        self.view = StreamView(config, self._standing)
        self.run: Run | None = None
        self.beside: Callable[[], Iterable[tuple[str, Endpoints]]] = lambda: ()
        self.prefixed = False
        self._make = make
        self._back = back
        self._log = log
        self._redaction = Redaction()
        self.take(config, revision)
        self.supervisor = Supervisor(
            stream_id,
            self._made,
            self.log,
            restarts,
            look,
            gate,
            lambda state: told(stream_id, state),
        )

    def take(self, config: Config, revision: Revision) -> None:
        """Have another revision: it runs already, or is to run from the next start on."""
        self.config, self.revision = config, revision
        self._redaction = Redaction(with_variables(config.secrets))

    def _made(self) -> Run:
        self.view = StreamView(self.config, self._standing)
        # The service's server is there before any stream.
        self.view.endpoints.served = bool(self.config.http["enabled"])
        self.view.endpoints.beside = self.beside
        self.view.endpoints.prefixed = self.prefixed
        self.run = self._make(
            *(self.stream_id, self.config, self.log, self.view),
            lambda config: self._back(self, config),
            self.of_api,
        )
        return self.run

    def without_secrets(self, value: Any) -> Any:
        """Return a value whose texts are without the stream's secrets."""
        return self._redaction.value(value)

    def redacted(self, text: str) -> str:
        """Return a text without the stream's secrets."""
        return self._redaction.text(text)

    def log(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Write a line about the stream."""
        text, fields = self._redaction.text(text), self._redaction.value(fields)
        if level not in _FINE:
            self.lines.add(time.time_ns(), level, text, fields)
        self._log(level, text, {**fields, "stream": self.stream_id})

    @property
    def of_api(self) -> bool:
        """Whether it came by API, and is the API's to change."""
        return self.revision.source == API

    @property
    def active(self) -> bool:
        """Whether messages flow, or are about to."""
        return self.supervisor.state in ACTIVE

    @property
    def ready(self) -> bool:
        """Whether its input and output are connected, and it neither stops nor drains."""
        if self.view.unready_reason():
            return False
        now = self.view.now()
        return self.view.started and not now.problem and now.snapshot.batch >= 0

    @property
    def _is_starting(self) -> bool:
        """Whether it may be on its way to its first micro-batch."""
        return self.supervisor.state in (State.STARTING, State.RUNNING)

    def uptime(self) -> int:
        """Return for how long it runs, ns; of one that does not, how long it has run."""
        return round(self.supervisor.uptime() * SECOND)

    def _standing(self) -> Standing:
        supervisor = self.supervisor
        uptime = supervisor.uptime() if self.active else 0.0
        return Standing(str(supervisor.state), supervisor.restarts, self.revision.number, uptime)

    def _oldest_rejected(self) -> dict[str, Any] | None:
        """Return the rejected messages that wait for longest to be sent again, if there are any."""
        found = self.view.now().rejected
        if found is None:
            return None
        document = found.document()
        return {**document, "error": self._redaction.text(document["error"])}

    def status(self) -> dict[str, Any]:
        """Return what the list of streams says of it: Benthos's fields first."""
        uptime, supervisor = self.uptime(), self.supervisor
        snapshot = self.view.now().snapshot
        return {
            "active": self.active,
            "uptime": uptime / SECOND,
            "uptime_str": format_duration(uptime),
            "state": str(supervisor.state),
            "waits_for": self._redaction.text(self.view.waits_for) if self._is_starting else "",
            "reason": self._redaction.text(supervisor.reason or self.view.now().problem),
            "rejected": self._oldest_rejected(),
            "restarts": supervisor.restarts,
            "source": self.revision.source,
            "revision": self.revision.number,
            "messages": snapshot.messages,
            "open_windows": snapshot.open_windows,
        }
