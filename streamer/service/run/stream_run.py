"""One run of one stream: from the lock of its checkpoint until that is released."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from streamer.config import Config
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.engine.report.batch_progress import BatchProgress
from streamer.engine.report.message_samples import MessageSamples
from streamer.engine.report.start_progress import StartPhase
from streamer.engine.report.stream_metrics import Snapshot
from streamer.plan import Plan, make_plan
from streamer.plan.change_impact import judge
from streamer.plan.plan import guesses_shards
from streamer.service.monitoring.arrival_record import ArrivalRecord
from streamer.service.monitoring.earlier_figures import NEW_FIGURES, FiguresFile
from streamer.service.monitoring.event_topics import RunTopics
from streamer.service.monitoring.outage import adjust_counts_in_outage
from streamer.service.monitoring.stream_figures import MarkerKind
from streamer.service.monitoring.stream_view import StreamState, StreamView
from streamer.service.monitoring.tracing import make_tracer
from streamer.service.monitoring.window_listing import list_open_windows, list_windows_of_buffers
from streamer.service.monitoring.window_rows import DEFAULT_QUERY
from streamer.service.run.probation import Probation, RevisionHealth
from streamer.service.run.revision_switch import (
    DeployResult,
    OnReset,
    RevisionChange,
    RevisionSwitch,
    check_connections,
    finish_drain,
    prepare_start,
    with_new_run,
)
from streamer.service.run.run_recorder import RunRecorder
from streamer.service.run.stream_host import StreamHost
from streamer.window.inspect.window_query import WindowQuery

if TYPE_CHECKING:
    from streamer.spark.checkpoint.checkpoint import RemoteCheckpoint
    from streamer.spark.query.stream import Stream


@dataclass(frozen=True, slots=True)
class _Trial:
    """A revision on probation.

    Attributes:
        probation: its time.
        config: what ran before, and comes back if it fails.
        plan: the plan of that.
    """

    probation: Probation
    config: Config
    plan: Plan


class StreamRun:
    """One run of a stream. The steps are taken in order: made, opened, started, polled, left.

    All that a step has begun is undone by `close`, whichever step it was. While it runs, another
    revision can take its place (`replace`).

    Attributes:
        config: what runs.
        plan: its plan.
        checkpoint: held until `close`.
        is_renewed: whether the earlier run read its input to the end, so that this one begins anew.
        is_resumable: whether an earlier run left something to go on with.
        should_stop: tells whether the run is to stop, while something is waited for.
        on_rollback: hears of the config that runs after one that has failed on probation.
        on_close: called when the run is over, before the checkpoint is released.
    """

    def __init__(
        self,
        config: Config,
        plan: Plan,
        directory: str | RemoteCheckpoint,
        log: LogLine,
        view: StreamView,
    ) -> None:
        """Take the checkpoint.

        Args:
            config: the config.
            plan: its plan.
            directory: the checkpoint directory, or one elsewhere that is held already.
            log: takes log lines.
            view: hears when the stream runs, and when it has ended.

        Raises:
            StreamerError: the checkpoint is of no use, or another program has it.
        """
        view.start.begin(StartPhase.CHECKPOINT)
        from streamer.spark.checkpoint.checkpoint import Checkpoint

        self.config, self.plan = config, plan
        self._interrupted = threading.Event()
        self.should_stop: Callable[[], bool] = self._interrupted.is_set
        self.on_rollback: Callable[[Config], None] = lambda config: None
        self.on_close: Callable[[], None] = lambda: None
        self._log = log
        self._topics = RunTopics(log, view)
        self._view = view
        self._exit_error = ""
        self._on_reset: OnReset | None = None
        self._trial: _Trial | None = None
        self._tracer = make_tracer(config.tracer, plan.name, log)
        self._backlog, self._arrivals = 0, ArrivalRecord()
        self._arrivals_batch, self._messages = -2, 0
        self._is_leaving = self._is_draining = False
        view.unready_reason = self._unready_reason
        view.is_draining = lambda: self._is_draining
        self.checkpoint = Checkpoint(directory)
        view.checkpoint_directory, view.list_windows = self.checkpoint.directory, self.list_windows
        self._figures = FiguresFile(self.checkpoint.directory)
        try:
            self._check_checkpoint()
            self._begin_figures()
            self._recorder = RunRecorder(view.figures, plan, self.checkpoint, log, config)
        except BaseException:
            self.checkpoint.close()
            raise
        self._host = StreamHost(self.checkpoint, log, view, self._tracer, self._recorder)
        self._topics.open(config)

    def _check_checkpoint(self) -> None:
        from streamer.spark.checkpoint.consistency import check_consistent
        from streamer.spark.checkpoint.generations import delete_used_seed
        from streamer.spark.checkpoint.relocation import update_moved_paths

        checkpoint = self.checkpoint
        self.is_renewed = checkpoint.clear_finished_run()
        check_consistent(checkpoint)
        delete_used_seed(checkpoint)
        self.is_resumable = checkpoint.is_resumable
        if update_moved_paths(checkpoint.spark):
            text = "The checkpoint was moved; what Spark notes of its place follows"
            self._log("INFO", text, {"checkpoint": str(checkpoint)})

    def _begin_figures(self) -> None:
        if self.is_renewed or self.checkpoint.is_new:
            self._figures.delete()
            self._view.earlier_figures = NEW_FIGURES
            return
        earlier = self._figures.load()
        if self.plan.window is None:
            # Without windows messages are counted from the start of the program on.
            earlier = replace(earlier, messages=0)
        self._view.earlier_figures = earlier

    def _unready_reason(self) -> str:
        if self._is_leaving or self.should_stop():
            return "the stream is stopping"
        return "a deploy lets the open windows out" if self._is_draining else ""

    @property
    def needs_shards(self) -> bool:
        """Whether the number of shards is still to be chosen, by the cores of the executors."""
        return self.checkpoint.is_new and guesses_shards(self.config, self.plan)

    def choose_shards(self, session: Any) -> None:
        """Before `open`: let windows have as many shards as the executors have cores.

        The checkpoint keeps the number, so it is said before it does.

        Args:
            session: Spark's, with executors.
        """
        from streamer.spark.cluster.parallelism import wait_for_cores

        shards = wait_for_cores(lambda: int(session.sparkContext.defaultParallelism))
        self.plan = replace(self.plan, shards=shards)
        text = f"Windows get {shards} shards, as many as the executors have cores"
        more = "spark.shards says another number, and `streamer rescale` changes it later"
        self._log("INFO", f"{text}; {more}", {"shards": shards})

    def open(self, overlay: Any = None, on_reset: OnReset | None = None) -> None:
        """Open the stream's inputs and outputs, as far as that goes without Spark.

        Args:
            overlay: what shares a terminal with the standard output.
            on_reset: what becomes of open windows that an earlier run of another config has left,
                when this one cannot go on with them; None to refuse. With it, what runs is kept in
                the checkpoint, so that a later start can do so.

        Raises:
            StreamerError: the checkpoint does not fit, or what is to be read is not there.
        """
        self._host.overlay = overlay
        self._on_reset = on_reset
        if on_reset is not None:
            prepare_start(self.checkpoint, self.config, self.plan, on_reset, self._log)
        # What a deploy has begun is finished first, for which Spark is needed.
        if "draining" not in self.checkpoint.read_record():
            self._host.make_stream(self.plan)
        # Spark may be on its way, and is waited for from now on.
        self._view.start.end(StartPhase.CONNECT)

    @property
    def is_opened(self) -> bool:
        """Whether there is a stream."""
        return self._host.current_stream is not None

    @property
    def host(self) -> StreamHost:
        """The place of the run for its streams."""
        return self._host

    @property
    def stream(self) -> Stream:
        """The stream, once it is opened."""
        return self._host.stream

    def start(self, session: Any) -> None:
        """Start the query in a Spark session."""
        host = self._host
        host.session = session
        if not self.is_opened:
            input_session = finish_drain(
                host, self.plan, self._stop_timeout_s, lambda: self.should_stop(), self._log
            )
            host.make_stream(self.plan, input_session)
        host.start_query(self.stream)
        self._recorder.mark_start()
        self._save_running()
        self._view.set_running(self._read_state)
        self._view.batch_progress = self.batch_progress

    def _save_running(self) -> None:
        if self._on_reset is not None:
            from streamer.spark.checkpoint.generations import save_running

            save_running(self.checkpoint, self.config, self.plan)

    def replace(self, change: RevisionChange, level: str = "") -> DeployResult:
        """Let another revision take the place of what runs; in the thread that polls.

        Args:
            change: the revision.
            level: the log level of its plan; that of the present one when it is empty.

        Raises:
            DeployError: it was refused, or did not start; what ran before does so again.
            DrainInterruptedError: the run is to stop while open windows are let out.
        """
        plan = make_plan(change.config, level or self.plan.level, self.plan.name)
        check_connections(plan, self.plan)
        former = self.config, self.plan
        self._is_draining = bool(change.judgement.resets) and change.on_reset == OnReset.DRAIN
        try:
            result = self._switch(self._stop_timeout_s).replace(plan, change)
        finally:
            self._is_draining = False
        self._adopt_revision(change.config, plan, MarkerKind.DEPLOY)
        self._trial = None
        if change.probation is not None and result.effect is not None:
            self._trial = _Trial(Probation(time.monotonic() + change.probation), *former)
        return result

    def drain(self) -> None:
        """Flush open windows, and read no further; in the thread that polls, before `stop`.

        Raises:
            DrainInterruptedError: the run is to stop; the next start goes on with this.
            StreamerError: they cannot be written; they stay in the checkpoint.
        """
        if self.plan.window is None:
            return
        self._is_draining = True
        try:
            self._switch(self._stop_timeout_s).drain()
        finally:
            self._is_draining = False

    def _switch(self, timeout: float) -> RevisionSwitch:
        return RevisionSwitch(self._host, self._log, timeout, lambda: self.should_stop())

    def _adopt_revision(self, config: Config, plan: Plan, kind: MarkerKind) -> None:
        self.config, self.plan = config, plan
        self._topics.open(config)
        self._recorder.use_plan(plan, config)
        self._recorder.mark(kind)
        self._save_running()
        self._view.set_config(config)

    @property
    def _stop_timeout_s(self) -> float:
        return self.config.shutdown_timeout / SECOND

    def _read_state(self) -> StreamState:
        stream = self.stream
        meters = stream.meters
        counts, times = dict(meters.counts), meters.times()
        trouble, backlog = stream.trouble, None if stream.has_outage else self._backlog
        if trouble.text:
            counts = adjust_counts_in_outage(
                counts, stream.input.recent.event_time, time.time_ns(), has_outage=stream.has_outage
            )
        figures = stream.snapshot(), counts, trouble.text, times, stream.run.read_gauges
        return StreamState(
            *(*figures, trouble.place, backlog, stream.input.last_delivery),
            rejected=stream.run.rejections.oldest(),
            trouble=stream.run.trouble_tracker.current,
            last_message=self._arrivals.last_message,
            behind_since=None if trouble.text else self._arrivals.behind_since,
            tables=stream.run.describe_tables(),
            clock_blames=self._recorder.clock_blames,
        )

    def poll(self) -> bool:
        """Poll the query, see `Stream.poll`; undo a revision that fails in its probation.

        Raises:
            StreamerError: it failed too often without getting further.
            BrokenPipeError: nobody reads the standard output any more.
        """
        # It is in a file. Who asks about a hundred streams would read a hundred of them, and wait
        # after each for the other threads.
        hints = self.stream.run.signals.planner.read()
        self._backlog = hints.backlog
        self._recorder.tick(self.stream, self._backlog)
        self._note_arrivals(hints.is_behind)
        if self.stream.delivered_batches:
            self._view.start.finish()
        trial = self._trial
        if trial is None:
            return self._poll_stream()
        try:
            has_ended = self._poll_stream()
        except StreamerError as e:
            if self.should_stop():
                raise
            self._exit_error = ""
            self._roll_back(trial, str(e))
            return False
        stream, now = self.stream, time.monotonic()
        delivery = stream.run.delivery
        health = RevisionHealth(
            stream.failures,
            stream.delivered_batches,
            stream.trouble.text,
            rejected=delivery.rejected_batches,
            reason=delivery.rejected_reason,
        )
        reason = trial.probation.failure_reason(health, now)
        if reason:
            self._roll_back(trial, reason)
            return False
        if trial.probation.has_ended(now):
            self._trial = None
        return has_ended

    def _poll_stream(self) -> bool:
        try:
            return self.stream.poll()
        except StreamerError as e:
            self._exit_error = str(e)
            raise

    def _note_arrivals(self, is_behind: bool) -> None:
        batch = self.newest_batch
        if batch != self._arrivals_batch:
            # Not more often: a snapshot adds up all shards and counters.
            self._arrivals_batch = batch
            snapshot = self.stream.snapshot()
            self._messages = snapshot.messages
            self._figures.save(snapshot)
        self._arrivals.update(self._messages, is_behind=is_behind)

    def _roll_back(self, trial: _Trial, reason: str) -> None:
        """Let the former revision take its place again, from the offsets that are committed."""
        self._trial = None
        self._log(
            "ERROR", f"The new revision has failed, and the former one comes back: {reason}", {}
        )
        change = RevisionChange(trial.config, judge(self.config, trial.config), OnReset.DISCARD)
        self._switch(0.0).replace(with_new_run(trial.plan), change)
        self._adopt_revision(trial.config, trial.plan, MarkerKind.ROLLBACK)
        self.on_rollback(trial.config)

    def snapshot(self) -> Snapshot:
        """Return what the stream is doing."""
        return self.stream.snapshot()

    @property
    def rate(self) -> float | None:
        """Messages a second that come in, lately; None when nobody knows."""
        return self._view.figures.rates.rate("in")

    def batch_progress(self) -> BatchProgress | None:
        """Return how far the micro-batch in hand has got; None between two."""
        return self.stream.batch_meter.current_progress()

    def finish_start(self) -> None:
        """End the start, whether or not it has delivered a micro-batch."""
        self._view.start.finish(delivered=self.stream.delivered_batches > 0)

    def stop_gracefully(self, timeout: int | None = None) -> bool:
        """Let the micro-batch in hand finish, and stop; open windows stay in the checkpoint.

        Args:
            timeout: for how long, ns; the config's `shutdown_timeout` when None.

        Returns:
            Whether it finished in time; if not, it is replayed.
        """
        self._is_leaving = True
        wait = self.config.shutdown_timeout if timeout is None else timeout
        finished = self.stream.stop(wait / SECOND)
        self._figures.save(self.stream.snapshot(), at_once=True)
        return finished

    def finish(self) -> bool:
        """After `leave`, at the end of the input: let the next start begin anew if all is written.

        Returns:
            Whether nothing is held.
        """
        whole = not self.snapshot().held
        if whole:
            self.stream.finish()
        return whole

    @property
    def newest_batch(self) -> int:
        """The number of the newest micro-batch; -1 before the first."""
        return self.stream.run.delivery.batch

    def list_windows(self, query: WindowQuery = DEFAULT_QUERY) -> Mapping[str, Any]:
        """Return the open windows; see `list_open_windows`."""
        statuses, session = self.stream.statuses(), self.stream.input
        recent, answer = session.recent, session.window_questions.answer_to(query)
        if self.plan.buffers:
            labels = [one.label for one in self.plan.buffers]
            windows = dict(zip(labels, self.plan.windows, strict=True))
            return list_windows_of_buffers(windows, statuses, recent, query, answer)
        return list_open_windows(self.plan.window, statuses, recent, query, answer)

    def request_windows(self, query: WindowQuery) -> bool:
        """Request an answer of the shards about their windows; see `WindowQuestions.request`."""
        return self.stream.input.window_questions.request(query)

    def tap(self) -> MessageSamples:
        """Return the samples of messages."""
        return self.stream.input.tap

    def set_min_interval(self, seconds: float) -> None:
        """Set the shortest time between two micro-batches, s; see `Stream`."""
        self.stream.set_min_interval(seconds)

    def interrupt(self) -> None:
        """Abandon the wait for what fails, from another thread; `stop` comes next."""
        self._interrupted.set()
        self.stream.interrupt()

    def stop(self, timeout: float | None = None, has_ended: bool = False) -> None:
        """Stop the run, and free its resources.

        Args:
            timeout: seconds for the micro-batch in hand; the config's `shutdown_timeout` when None.
            has_ended: whether its input has ended, so that the next start begins anew.
        """
        try:
            if self.is_opened:
                self._stop_stream(timeout, has_ended)
        finally:
            self.close()

    def _stop_stream(self, timeout: float | None, has_ended: bool) -> None:
        finished = self.stop_gracefully(None if timeout is None else round(timeout * SECOND))
        if finished and has_ended:
            self.finish()
        if not finished:
            text = "The micro-batch in hand did not finish in time; it will be replayed"
            if self.stream.run.is_undelivered:
                text = "The output has not taken the micro-batch in hand; it will be replayed"
            self._log("WARN", text, {})
            self.stream.run.abandon()

    def close(self) -> None:
        """End the run: report it, and release the checkpoint."""
        self.on_close()
        if self.is_opened:
            self._recorder.close()
        self._view.set_ended()
        if self._tracer is not None:
            self._tracer.flush()
        self._topics.close(self._exit_error)
        self.checkpoint.close()
