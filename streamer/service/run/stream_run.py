"""One run of one stream: from its checkpoint's lock until that is given back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamer.config import Config
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.engine.report.batch_progress import BatchProgress
from streamer.engine.report.snapshot import Snapshot
from streamer.engine.report.start_progress import StartPhase
from streamer.plan import Plan
from streamer.plan.change_impact import ChangeImpact, judge
from streamer.plan.plan import guesses_shards
from streamer.service.monitoring.outage import adjust_counts_in_outage
from streamer.service.monitoring.stream_view import StreamState, StreamView
from streamer.service.monitoring.tracing import make_tracer
from streamer.service.run.probation import Probation, RevisionHealth
from streamer.service.run.revision_switch import (
    DeployResult,
    OnReset,
    RevisionSwitch,
    check_connections,
    finish_drain,
    prepare_start,
    with_new_run,
)

if TYPE_CHECKING:
    from streamer.spark.checkpoint.checkpoint import Checkpoint, RemoteCheckpoint
    from streamer.spark.query.stream import Stream


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
            view: is told when the stream runs, and when it has ended.

        Raises:
            StreamerError: the checkpoint is of no use, or another program has it.
        """
        view.start.begin(StartPhase.CHECKPOINT)
        from streamer.spark.checkpoint.checkpoint import Checkpoint
        from streamer.spark.checkpoint.consistency import check_consistent
        from streamer.spark.checkpoint.generations import delete_used_seed
        from streamer.spark.checkpoint.relocation import update_moved_paths

        self.config = config
        self.should_stop: Callable[[], bool] = lambda: False
        self.on_rollback: Callable[[Config], None] = lambda config: None
        self._log = log
        self._view = view
        self._stream: Stream | None = None
        self._session: Any = None
        self._overlay: Any = None
        self._on_reset: OnReset | None = None
        self._probation: Probation | None = None
        self._previous: tuple[Config, Plan] | None = None
        self._tracer = make_tracer(config.tracer, plan.name)
        self.plan = plan
        self._backlog = 0
        self._is_leaving = self._is_draining = False
        view.unready_reason = self._unready_reason
        self.checkpoint: Checkpoint = Checkpoint(directory)
        try:
            self.is_renewed = self.checkpoint.clear_finished_run()
            check_consistent(self.checkpoint)
            delete_used_seed(self.checkpoint)
            self.is_resumable = self.checkpoint.is_resumable
            if update_moved_paths(self.checkpoint.spark):
                text = "The checkpoint was moved; what Spark notes of its place follows"
                log("INFO", text, {"checkpoint": str(self.checkpoint)})
        except BaseException:
            self.checkpoint.close()
            raise

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
        self._overlay = overlay
        self._on_reset = on_reset
        if on_reset is not None:
            prepare_start(self.checkpoint, self.config, self.plan, on_reset, self._log)
        # What a deploy has begun is finished first, for which Spark is needed.
        if "draining" not in self.checkpoint.read_record():
            self.make_stream(self.plan)
        # Spark may be on its way, and is waited for from now on.
        self._view.start.end(StartPhase.CONNECT)

    def make_stream(
        self, plan: Plan, former: Stream | None = None, drain_limit: Any = None
    ) -> Stream:
        """Make a stream, which is the run's from now on; see `Stream`."""
        from streamer.spark.query.stream import Stream

        self._stream = Stream(
            plan,
            self.checkpoint,
            self._log,
            overlay=self._overlay,
            endpoints=self._view.endpoints,
            former=former,
            drain_limit=drain_limit,
            progress=self._view.start,
        )
        if self._tracer is not None:
            self._stream.set_trace_listener(self._tracer.trace_batch)
        return self._stream

    def start_query(self, stream: Stream) -> None:
        """Start the query of a stream that was made."""
        progress = self._view.start
        progress.begin(StartPhase.QUERY)
        stream.start(self._session)
        progress.begin(StartPhase.FIRST_BATCH)

    @property
    def is_opened(self) -> bool:
        """Whether there is a stream."""
        return self._stream is not None

    @property
    def stream(self) -> Stream:
        """The stream, once it is opened."""
        assert self._stream is not None
        return self._stream

    def start(self, session: Any) -> None:
        """Start the query in a Spark session."""
        self._session = session
        if self._stream is None:
            former = finish_drain(
                self, self.plan, self._stop_timeout_s, lambda: self.should_stop(), self._log
            )
            self.make_stream(self.plan, former)
        self.start_query(self.stream)
        self._save_running()
        self._view.set_running(self._read_state)
        self._view.batch_progress = self.batch_progress

    def _save_running(self) -> None:
        if self._on_reset is not None:
            from streamer.spark.checkpoint.generations import save_running

            save_running(self.checkpoint, self.config, self.plan)

    def replace(
        self,
        config: Config,
        plan: Plan,
        judgement: ChangeImpact,
        on_reset: OnReset | None = None,
        revision: str = "",
        probation: float | None = None,
    ) -> DeployResult:
        """Let another revision take the place of what runs; in the thread that polls.

        Args:
            config: what is to run.
            plan: its plan.
            judgement: of the change from `config` as it is now.
            on_reset: what becomes of open windows, where these must begin anew.
            revision: what the deploy is called; a checkpoint that begins anew remembers it.
            probation: seconds in which the revision may fail, so that what ran before comes back;
                None when it is to stay whatever happens.

        Raises:
            DeployError: it was refused, or did not start; what ran before does so again.
            BrokenOffError: the run is to stop while open windows are let out.
        """
        check_connections(plan, self.plan)
        previous = (self.config, self.plan)
        switch = RevisionSwitch(self, self._log, self._stop_timeout_s, lambda: self.should_stop())
        self._is_draining = bool(judgement.resets) and on_reset == OnReset.DRAIN
        try:
            result = switch.replace(plan, judgement, on_reset, revision)
        finally:
            self._is_draining = False
        self._adopt_revision(config, plan)
        self._probation, self._previous = None, None
        if probation is not None and result.effect is not None:
            self._probation, self._previous = Probation(time.monotonic() + probation), previous
        return result

    def _adopt_revision(self, config: Config, plan: Plan) -> None:
        self.config, self.plan = config, plan
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
                counts, stream.recent.event_time, time.time_ns(), has_outage=stream.has_outage
            )
        figures = stream.snapshot(), counts, trouble.text, times, stream.read_gauges
        return StreamState(
            *(*figures, trouble.place, backlog, stream.last_delivery),
            rejected=stream.rejections.oldest(),
        )

    def poll(self) -> bool:
        """Look after the query, see `Stream.poll`; let a revision that fails go again.

        Raises:
            StreamerError: it failed too often without getting further.
            BrokenPipeError: nobody reads the standard output any more.
        """
        # It is in a file. Who asks about a hundred streams would read a hundred of them, and wait
        # after each for the other threads.
        self._backlog = self.stream.backlog
        if self.stream.delivered_batches:
            self._view.start.finish()
        if self._probation is None:
            return self.stream.poll()
        try:
            has_ended = self.stream.poll()
        except StreamerError as e:
            if self.should_stop():
                raise
            self._roll_back(str(e))
            return False
        stream, now = self.stream, time.monotonic()
        rejected = stream.rejected_batches
        health = RevisionHealth(
            stream.failures, stream.delivered_batches, stream.trouble.text, *rejected
        )
        reason = self._probation.failure_reason(health, now)
        if reason:
            self._roll_back(reason)
            return False
        if self._probation.has_ended(now):
            self._probation, self._previous = None, None
        return has_ended

    def _roll_back(self, reason: str) -> None:
        """Let the former revision take its place again, from the offsets that are committed."""
        assert self._previous is not None
        config, plan = self._previous
        self._probation, self._previous = None, None
        self._log(
            "ERROR", f"The new revision has failed, and the former one comes back: {reason}", {}
        )
        switch = RevisionSwitch(self, self._log, 0.0, lambda: self.should_stop())
        switch.replace(with_new_run(plan), judge(self.config, config), OnReset.DISCARD)
        self._adopt_revision(config, plan)
        self.on_rollback(config)

    def snapshot(self) -> Snapshot:
        """Return what the stream is doing."""
        return self.stream.snapshot()

    def batch_progress(self) -> BatchProgress | None:
        """Return how far the micro-batch in hand has got; None between two."""
        return self.stream.batch_meter.current_progress()

    def finish_start(self) -> None:
        """Say that the start is over, whatever it has come to."""
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
        return self.stream.stop(wait / SECOND)

    def finish(self) -> bool:
        """After `leave`, at the end of the input: let the next start begin anew if all is written.

        Returns:
            Whether nothing is held.
        """
        whole = not self.snapshot().held
        if whole:
            self.stream.finish()
        return whole

    def close(self) -> None:
        """Say that the run is over, and give the checkpoint back."""
        self._view.set_ended()
        if self._tracer is not None:
            self._tracer.flush()
        self.checkpoint.close()
