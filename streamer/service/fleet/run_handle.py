"""Interface of a run of a stream, as the service's fleet handles it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from streamer.config import Config
from streamer.core.log_format import LogLine
from streamer.engine.report.message_samples import MessageSamples
from streamer.service.monitoring.stream_view import StreamView
from streamer.service.monitoring.window_rows import DEFAULT_QUERY
from streamer.service.run.revision_switch import RevisionChange
from streamer.service.run.stream_host import StreamHost
from streamer.window.inspect.window_query import WindowQuery


class RunHandle(Protocol):
    """One run of a stream, from its start to its end."""

    @property
    def newest_batch(self) -> int:
        """The number of the newest micro-batch; it grows when the stream gets on."""

    @property
    def host(self) -> StreamHost | None:
        """The place of the run for its streams, beside which a canary may run; None for none."""

    def poll(self) -> bool:
        """Check on the run; return whether it has ended: its input has, and all is done.

        Raises:
            StreamerError: it failed too often at the same place.
        """

    def list_windows(self, query: WindowQuery = DEFAULT_QUERY) -> Mapping[str, Any]:
        """Return the open windows, see `list_open_windows`."""

    def request_windows(self, query: WindowQuery) -> bool:
        """Have the next micro-batch answer a question; return whether nobody asked it before."""

    def tap(self) -> MessageSamples | None:
        """Return the samples of messages; None while it is not open."""

    def set_min_interval(self, seconds: float) -> None:
        """Set the shortest time between two micro-batches, s."""

    def interrupt(self) -> None:
        """Abandon the wait for what fails, from another thread; `stop` comes next."""

    def replace(self, change: RevisionChange) -> Any:
        """Let another revision take its place.

        Raises:
            StreamerError: it does not run; what ran before does.
        """

    def stop(self, timeout: float | None = None, has_ended: bool = False) -> None:
        """Stop the run, and free its resources.

        Args:
            timeout: seconds for the micro-batch in hand; the config's `shutdown_timeout` when None.
            has_ended: whether its input has ended, so that the next start begins anew.
        """


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Request for a run.

    Attributes:
        stream_id: the stream.
        config: what is to run.
        log: takes the stream's lines.
        view: what others may ask about the run.
        on_rollback: called with the config that runs after one that has failed on probation.
        is_of_api: whether the stream came by API.
    """

    stream_id: str
    config: Config
    log: LogLine
    view: StreamView
    on_rollback: Callable[[Config], None]
    is_of_api: bool


StartRun = Callable[[RunRequest], RunHandle]
"""Starts a run; when that raises, all that was begun is undone."""
