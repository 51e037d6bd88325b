"""Handle of a stream that runs in a thread of this program."""

from __future__ import annotations

import atexit
import os
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from streamer.core.errors import StreamerError
from streamer.service.fleet.log_tail import LoggedLine
from streamer.service.library.errors import StreamFailedError, StreamTimeoutError
from streamer.service.library.live_display import open_display
from streamer.service.library.run_thread import RunThread
from streamer.service.library.status import RunState, StreamStatus, WindowTable
from streamer.service.library.text_view import TextView

if TYPE_CHECKING:
    import pyarrow as pa

    from streamer.service.library.stream import Stream

_WAIT_SLICE_S: Final = 0.2
"""Seconds of one wait: Python handles Ctrl-C between two of them, on each system."""

_DEFAULT_ROWS: Final = 20


class StreamHandle:
    """A stream that runs, until its input ends or somebody stops it.

    As a context manager, it stops the stream at the end of the block, and raises the error of a
    stream that has failed. Its methods can be called from several threads. Streams that still run
    when the program ends are stopped, and their open windows stay in the checkpoint.
    """

    def __init__(self, stream: Stream, thread: RunThread) -> None:
        """Take a stream, and the thread that is to run it; `Stream.start` makes handles."""
        # The stream has the directory of a temporary checkpoint.
        self._stream = stream
        self._thread = thread

    def __repr__(self) -> str:
        status = self.status
        return f"<StreamHandle {status.name}: {status.condition or status.state}>"

    def _repr_html_(self) -> str:
        """Return the status and the windows as HTML, for notebooks."""
        return self.status._repr_html_() + self.windows()._repr_html_()

    def __rich__(self) -> Any:
        """Return status and windows as the library `rich` prints them; only that calls this."""
        from rich.console import Group

        return Group(self.status.__rich__(), self.windows().__rich__())

    def __enter__(self) -> StreamHandle:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if error is None:
            self._raise_failure()

    @property
    def name(self) -> str:
        """The stream's name."""
        return self._thread.name

    @property
    def status(self) -> StreamStatus:
        """The status of the stream now."""
        return self._thread.read_status()

    def windows(self, limit: int = _DEFAULT_ROWS) -> WindowTable:
        """Return the windows as of the newest micro-batch: closed ones first, then open ones.

        Args:
            limit: windows at most, of each.
        """
        return self._thread.read_windows(limit)

    def log(self) -> list[LoggedLine]:
        """Return the newest lines of the stream's log, at most 1,000, without secrets."""
        return self._thread.log.lines()

    def results(self, **selection: Any) -> pa.Table:
        """Return results that the stream keeps; see `Stream.results`."""
        return self._stream.results(**selection)

    def wait_until_running(self, timeout: float | None = None) -> StreamStatus:
        """Wait until the stream runs, and return its status; one that is over does not run.

        Args:
            timeout: seconds; None for no limit.

        Raises:
            StreamFailedError: it has failed.
            StreamTimeoutError: it still starts; it goes on with that.
        """
        if not self._wait(self._thread.has_started, timeout):
            raise StreamTimeoutError(f"the stream {self.name} does not run after {timeout:g} s")
        self._raise_failure()
        return self.status

    def wait(self, timeout: float | None = None) -> StreamStatus:
        """Wait until the stream is over, and return its status.

        Args:
            timeout: seconds; None for no limit.

        Raises:
            StreamFailedError: it has failed.
            StreamTimeoutError: it still runs; it goes on.
        """
        if not self._wait(self._thread.is_over, timeout):
            raise StreamTimeoutError(f"the stream {self.name} is not over after {timeout:g} s")
        self._raise_failure()
        return self.status

    def stop(self, timeout: float | None = None) -> StreamStatus:
        """Stop the stream between two micro-batches, wait for that, and return its status.

        Open windows stay in the checkpoint for the next start. A start in progress is broken off. A
        stream that is over stays as it is; that it has failed is in its status.

        Args:
            timeout: seconds for the micro-batch in hand, which is replayed by the next start if it
                takes longer; the config's `shutdown_timeout` when None.
        """
        self._thread.request_stop(timeout)
        if threading.current_thread() is not self._thread.thread:
            self._wait(self._thread.is_over, None)
        return self.status

    def drain(self, timeout: float | None = None) -> StreamStatus:
        """Emit all open windows, read no further, and return the status at the end.

        The next start goes on with the first message that was not read, and with new windows.

        Args:
            timeout: seconds to wait; None for no limit.

        Raises:
            StreamFailedError: it has failed; windows that were not written stay in the checkpoint.
            StreamTimeoutError: it still drains; it goes on with that.
            StreamerError: the stream was stopped before its windows were emitted.
        """
        self._thread.request_drain()
        if threading.current_thread() is self._thread.thread:
            return self.status
        status = self.wait(timeout)
        if status.state == RunState.STOPPED:
            raise StreamerError(
                f"the stream {self.name} was stopped, and its open windows are in the checkpoint; "
                "start it again, and drain it then"
            )
        return status

    def watch(self, interval: float = 1.0, timeout: float | None = None) -> None:
        """Show status and windows in one place, updated until the stream is over.

        It works in notebooks and on terminals. Ctrl-C, or the stop of a cell, ends the display; the
        stream goes on.

        Args:
            interval: seconds between two updates.
            timeout: seconds after which the display ends; None for no limit.
        """
        show = open_display()
        until = None if timeout is None else time.monotonic() + timeout
        with suppress(KeyboardInterrupt):
            while True:
                is_over = self._thread.is_over.is_set()
                show(_HandleView(self))
                left = interval if until is None else min(interval, until - time.monotonic())
                if is_over or left <= 0:
                    return
                self._wait(self._thread.is_over, left)

    def _wait(self, event: threading.Event, timeout: float | None) -> bool:
        until = None if timeout is None else time.monotonic() + timeout
        while not event.is_set():
            left = _WAIT_SLICE_S if until is None else min(_WAIT_SLICE_S, until - time.monotonic())
            if left <= 0:
                return False
            event.wait(left)
        return True

    def _raise_failure(self) -> None:
        reason = self._thread.failure
        if reason:
            raise StreamFailedError(self.name, reason)


class _HandleView(TextView):
    """Status and windows at one moment."""

    def __init__(self, handle: StreamHandle) -> None:
        self._status, self._windows = handle.status, handle.windows()

    def __str__(self) -> str:
        return f"{self._status}\n{self._windows}"

    def _repr_html_(self) -> str:
        return self._status._repr_html_() + self._windows._repr_html_()


_RUNNING: Final[set[StreamHandle]] = set()
_RUNNING_LOCK: Final = threading.Lock()


def track_handle(handle: StreamHandle, thread: RunThread) -> None:
    """Have a stream stopped at the end of the program, unless it is over before.

    Raises:
        StreamerError: another stream of this process runs on its checkpoint.
    """
    place = os.path.realpath(thread.checkpoint)
    with _RUNNING_LOCK:
        for other in _RUNNING:
            if os.path.realpath(other._thread.checkpoint) == place:
                raise StreamerError(
                    f"the stream {other.name} of this process runs on the checkpoint "
                    f"{thread.checkpoint}; stop it first, or give this one another checkpoint"
                )
        _RUNNING.add(handle)

    def forget() -> None:
        with _RUNNING_LOCK:
            _RUNNING.discard(handle)

    thread.on_over = forget


def stop_all() -> None:
    """Stop all streams of this process, at the same time."""
    with _RUNNING_LOCK:
        handles = list(_RUNNING)
    for handle in handles:
        handle._thread.request_stop(None)
    for handle in handles:
        handle.stop()


atexit.register(stop_all)
