"""Run of a canary: another revision of a stream beside it, on a copy of its checkpoint.

It repeats the micro-batches of the running revision as soon as they are committed: the same input,
read by the same source, at the same times. Its outputs are dropped, and the windows of both are
compared. Nothing but its own directory is written, which goes when it ends.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streamer.connectors.kafka.input.message_metadata import NeededMetadata
from streamer.core.durations import HOUR, MINUTE, SECOND, format_duration
from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.engine.canary.captured_windows import CapturedWindows
from streamer.engine.canary.emissions import count_emissions, read_emissions
from streamer.engine.canary.field_differences import ComparisonRules
from streamer.engine.canary.window_comparison import WindowComparison
from streamer.engine.planner.followed_stream import FollowedStream
from streamer.engine.planner.kafka_inputs import list_range_sources, replace_range_sources
from streamer.plan import Plan
from streamer.plan.canary import CanaryRefusedError, make_canary_plan
from streamer.plan.metadata_read import find_read_metadata
from streamer.sdk.input.replayable import ReplayableSource
from streamer.service.monitoring.canary_metrics import (
    BEHIND_METRIC,
    DIFFERENCES_METRIC,
    WINDOWS_METRIC,
)
from streamer.service.run.canary_taps import ResultTap
from streamer.service.run.revision_switch import with_new_run
from streamer.service.run.stream_host import StreamHost

if TYPE_CHECKING:
    from streamer.spark.query.input_session import InputSession
    from streamer.spark.query.stream import Stream

_POLL_INTERVAL_S: Final = 0.1
_FIRST_BATCH_TIMEOUT_S: Final = 60.0
_STOP_TIMEOUT_S: Final = 10.0
_END_TIMEOUT_S: Final = 5.0
_MAX_WAITING_BYTES: Final = 1 << 30
_MAX_BEHIND: Final = 60
"""Micro-batches that the canary may be behind: Spark keeps the offsets of a hundred."""

_MAX_FAILURES: Final = 2
"""Failures in a row of a micro-batch after which the canary ends."""

_DELETE_TRIES: Final = 20
_LABELS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class CanarySettings:
    """Settings of a canary.

    Attributes:
        windows: how many windows are compared.
        max_differences: how many of them may differ.
        is_automatic: whether the rule decides; else somebody does.
        timeout: how long it may run, ns.
        max_lag: how long a micro-batch of the running revision may wait for the canary, ns.
        ignored: fields that do not matter (`ComparisonRules`).
        allowed_calls: names and labels of components whose calls may be made twice.
    """

    windows: int = 1_000
    max_differences: int = 0
    is_automatic: bool = False
    timeout: int = HOUR
    max_lag: int = MINUTE
    ignored: tuple[str, ...] = ()
    allowed_calls: tuple[str, ...] = ()


class Outcome(StrEnum):
    """The outcomes of a run of a canary.

    Attributes:
        COMPARED: all windows are compared.
        DIFFERENT: more of them differ than may; the others need not be compared.
        TIMEOUT: the time is over before all are compared.
        INPUT_ENDED: the input has ended before all are compared, and nothing more comes.
        FAILED: the canary has failed, or cannot keep up.
        CHANGED: the running revision has stopped, or another one took its place.
        DROPPED: somebody has ended it.
    """

    COMPARED = "compared"
    DIFFERENT = "different"
    TIMEOUT = "timeout"
    INPUT_ENDED = "input ended"
    FAILED = "failed"
    CHANGED = "changed"
    DROPPED = "dropped"


class _EndedError(Exception):
    """The run has come to its end.

    Attributes:
        outcome: how.
        reason: why, in words; empty where the outcome says it all.
    """

    def __init__(self, outcome: Outcome, reason: str = "") -> None:
        super().__init__(reason)
        self.outcome, self.reason = outcome, reason


class CanaryRun:
    """The run of a canary, in a thread of its own.

    Attributes:
        comparison: what is compared so far.
        outcome: how it has ended; None while it runs.
        reason: why, in words.
        has_started: whether the copy is made, and windows are compared.
    """

    def __init__(
        self,
        host: StreamHost,
        plan: Plan,
        directory: Path,
        settings: CanarySettings,
        log: LogLine,
        *,
        moves_closes: bool = False,
    ) -> None:
        """Make ready beside the stream that runs on a host.

        Args:
            host: where that one runs.
            plan: of the changed stream.
            directory: the canary's own, which is not there.
            settings: how it is judged.
            log: takes log lines.
            moves_closes: whether the change may let windows close at other times.

        Raises:
            CanaryRefusedError: the stream's checkpoint is not on this machine.
        """
        if host.checkpoint.is_remote:
            raise CanaryRefusedError(
                f"the checkpoint {host.checkpoint} is not on this machine, and a canary begins "
                "with a copy of it; deploy the change without a canary"
            )
        self._host, self._plan, self._directory = host, plan, directory
        self._settings, self._log = settings, log
        self._running: Stream = host.stream
        read = [find_read_metadata(one) for one in (self._running.plan, plan)]
        both = None if None in read else frozenset().union(*(one for one in read if one))
        self._metadata = both
        rules = ComparisonRules(settings.ignored, both)
        self.comparison = WindowComparison(rules, moves_closes=moves_closes)
        self._is_exact = not moves_closes
        self.outcome: Outcome | None = None
        self.reason = ""
        self.has_started = False
        self.on_end: Callable[[CanaryRun], None] = lambda run: None
        self._stopping = threading.Event()
        self._stream: Stream | None = None
        self._checkpoint: Any = None
        self._old: ResultTap | None = None
        self._new: ResultTap | None = None
        self._next_batch: int | None = None
        self._began = time.monotonic()
        self._reported = 0, 0
        self._thread = threading.Thread(target=self._run, daemon=True, name="canary")

    def start(self) -> None:
        """Begin; what comes of it is in `outcome`, and `on_end` is called then."""
        self._thread.start()

    def request_stop(self) -> None:
        """Let the run end soon."""
        self._stopping.set()

    def stop(self, timeout: float = 30.0) -> None:
        """End the run, and wait until nothing is left of it.

        Args:
            timeout: seconds to wait at most.
        """
        self._stopping.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    @property
    def micro_batches_behind(self) -> int:
        """Number of micro-batches that the canary is behind the running revision."""
        if self._old is None or self._new is None or self._old.first_batch is None:
            return 0
        reached = max(self._new.newest_batch, self._old.first_batch - 1)
        return max(self._old.newest_batch - reached, 0)

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    def _run(self) -> None:
        outcome, reason = Outcome.FAILED, ""
        try:
            self._begin()
            while True:
                self._step()
                self._stopping.wait(_POLL_INTERVAL_S)
        except _EndedError as e:
            outcome, reason = e.outcome, e.reason
        except StreamerError as e:
            reason = str(e)
        except Exception as e:  # whatever it is, the stream beside it goes on
            reason = f"{type(e).__name__}: {e}"
        finally:
            self._clean_up()
        self.reason, self.outcome = reason, outcome
        self.on_end(self)

    def _begin(self) -> None:
        """Let the running revision capture its windows, and start on a copy of its checkpoint."""
        shutil.rmtree(self._directory, ignore_errors=True)
        self._directory.mkdir(mode=0o700, parents=True)
        checkpoint, copy = self._host.checkpoint, self._directory / "checkpoint"
        windows = self._directory / "windows"

        def clone() -> None:
            from streamer.spark.checkpoint.checkpoint_clone import clone_checkpoint

            clone_checkpoint(checkpoint, copy)

        self._old = old = ResultTap(CapturedWindows(windows / "running"), clone)
        self._new = ResultTap(CapturedWindows(windows / "canary"))
        spark = copy / checkpoint.spark.name
        self._follow_input(str(spark))
        self._running.run.delivery.window_tap = old
        self._wait_for_copy(old)
        self._start_stream(copy, FollowedStream(Path(str(checkpoint.spark)), spark))
        self.has_started = True
        self._log("INFO", "The canary runs", {"windows": self._settings.windows})

    def _follow_input(self, follower: str) -> None:
        """Let the input keep what the canary still needs; all goes with an empty name."""
        session = self._running.input
        session.follower = follower
        self._host.stream.run.signals.driver.update(follower=follower)

    def _wait_for_copy(self, tap: ResultTap) -> None:
        """Wait until a micro-batch begins, with which the copy is made."""
        until = time.monotonic() + _FIRST_BATCH_TIMEOUT_S
        while not tap.has_first.wait(_POLL_INTERVAL_S):
            # An idle stream runs one for it.
            self._running.input.window_questions.wake()
            self._check_end()
            if time.monotonic() > until:
                raise _EndedError(
                    Outcome.FAILED,
                    f"the running revision has begun no micro-batch in {_FIRST_BATCH_TIMEOUT_S:g} "
                    "s; look at its log, and try again when it flows",
                )
        if tap.error is not None:
            raise tap.error

    def _start_stream(self, copy: Path, followed: FollowedStream) -> None:
        from streamer.spark.checkpoint.checkpoint import Checkpoint
        from streamer.spark.checkpoint.relocation import update_moved_paths
        from streamer.spark.query.input_session import InputSession, ProcessEnds
        from streamer.spark.query.stream import Stream

        assert self._new is not None
        plan = with_new_run(make_canary_plan(self._plan))
        self._checkpoint = checkpoint = Checkpoint(copy)
        update_moved_paths(checkpoint.spark)
        session: InputSession = InputSession(plan, checkpoint, self._log_quietly, ProcessEnds())
        session.follow(self._make_source(), followed)
        self._stream = stream = Stream(plan, checkpoint, self._log_quietly, input_session=session)
        stream.run.delivery.window_tap = self._new
        stream.start(self._host.session)

    def _make_source(self) -> ReplayableSource:
        """Return the input as the running revision reads it, with all that both need of it."""
        source, run = self._running.input.source, self._running.run
        if run.kafka is None:
            return source
        source = run.kafka.prepare_source(source)
        needed = NeededMetadata(self._metadata)
        return replace_range_sources(
            source, [replace(one, needed=needed) for one in list_range_sources(source)]
        )

    def _log_quietly(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Pass on what went wrong: the log is that of the stream that runs."""
        if level in ("WARN", "ERROR", "FATAL"):
            self._log("WARN", f"Canary: {text}", fields)

    def _step(self) -> None:
        self._check_end()
        stream, old, new = self._stream, self._old, self._new
        assert stream is not None and old is not None and new is not None
        if (error := old.error or new.error) is not None:
            raise error
        has_ended = stream.poll()
        if stream.failures >= _MAX_FAILURES:
            raise _EndedError(Outcome.FAILED, stream.trouble.text)
        self._compare_batches(old, new)
        self._report()
        self._judge()
        is_done = old.newest_batch == new.newest_batch and (has_ended or self._has_input_ended())
        if is_done:
            raise _EndedError(Outcome.INPUT_ENDED)
        self._check_lag(old, new)

    def _compare_batches(self, old: ResultTap, new: ResultTap) -> None:
        if self._next_batch is None:
            if old.first_batch is None:
                return
            self._next_batch = old.first_batch
        while self._next_batch <= min(old.newest_batch, new.newest_batch):
            batch = self._next_batch
            self._compare_batch(old, new, batch)
            old.discard(batch)
            new.discard(batch)
            self._next_batch = batch + 1
            self._judge()

    def _compare_batch(self, old: ResultTap, new: ResultTap, batch: int) -> None:
        before, after = old.read(batch), new.read(batch)
        if self._is_exact and before == after:
            self.comparison.add_equal(count_emissions(before))
            return
        shards = self._running.plan.shards
        self.comparison.compare(read_emissions(before, shards), read_emissions(after, shards))

    def _judge(self) -> None:
        counts, settings = self.comparison.counts, self._settings
        if settings.is_automatic and counts.differences > settings.max_differences:
            raise _EndedError(Outcome.DIFFERENT)
        if counts.windows >= settings.windows:
            is_different = counts.differences > settings.max_differences
            raise _EndedError(Outcome.DIFFERENT if is_different else Outcome.COMPARED)
        if self.seconds * SECOND > settings.timeout:
            raise _EndedError(
                Outcome.TIMEOUT,
                f"{counts.windows} of {settings.windows} windows are compared after "
                f"{format_duration(settings.timeout)}",
            )

    def _check_lag(self, old: ResultTap, new: ResultTap) -> None:
        lag, limit = old.waiting_seconds(), self._settings.max_lag / SECOND
        reason = ""
        if lag > limit:
            reason = f"a micro-batch has waited for it for {lag:.0f} s"
        elif self.micro_batches_behind > _MAX_BEHIND:
            reason = f"it is {self.micro_batches_behind} micro-batches behind"
        elif old.size + new.size > _MAX_WAITING_BYTES:
            reason = f"{old.size + new.size:,} bytes of results wait for it"
        if reason:
            raise _EndedError(Outcome.FAILED, f"the canary cannot keep up: {reason}")

    def _check_end(self) -> None:
        """End with the running revision, unless its input has ended: then the rest is compared."""
        if self._stopping.is_set():
            raise _EndedError(Outcome.DROPPED)
        if not self._has_stopped():
            return
        until = time.monotonic() + _END_TIMEOUT_S
        while not self._has_input_ended():
            if time.monotonic() > until or self._host.stream is not self._running:
                raise _EndedError(
                    Outcome.CHANGED, "the running revision has stopped, or another one runs"
                )
            if self._stopping.wait(_POLL_INTERVAL_S):
                raise _EndedError(Outcome.DROPPED)

    def _has_stopped(self) -> bool:
        running = self._running
        return self._host.stream is not running or running.run.stopping.is_set()

    def _has_input_ended(self) -> bool:
        """Whether the input of the running revision has ended, and all is written."""
        if not self._has_stopped():
            return False
        with suppress(StreamerError):
            return bool(self._host.checkpoint.read_record().get("finished"))
        return False

    def _report(self) -> None:
        counts, meters = self.comparison.counts, self._running.meters
        windows, differences = self._reported
        meters.count(WINDOWS_METRIC, _LABELS, counts.windows - windows)
        meters.count(DIFFERENCES_METRIC, _LABELS, counts.differences - differences)
        meters.set(BEHIND_METRIC, _LABELS, self.micro_batches_behind)
        self._reported = counts.windows, counts.differences

    def _clean_up(self) -> None:
        """Leave the running revision as it was, and nothing of the canary."""
        with suppress(Exception):
            if self._running.run.delivery.window_tap is self._old:
                self._running.run.delivery.window_tap = None
        with suppress(Exception):
            self._follow_input("")
        with suppress(Exception):
            if self.has_started:
                self._report()
            self._running.meters.set(BEHIND_METRIC, _LABELS, None)
        with suppress(Exception):
            if self._stream is not None:
                self._stream.interrupt()
                if not self._stream.stop(_STOP_TIMEOUT_S):
                    self._stream.run.abandon()
        with suppress(Exception):
            if self._checkpoint is not None:
                self._checkpoint.close()
        delete_directory(self._directory)


def delete_directory(directory: Path) -> None:
    """Delete a directory, into which Spark may still write for a moment."""
    for _ in range(_DELETE_TRIES):
        shutil.rmtree(directory, ignore_errors=True)
        time.sleep(_POLL_INTERVAL_S)
        if not directory.exists():
            with suppress(OSError):  # others may have canaries
                directory.parent.rmdir()
            return
