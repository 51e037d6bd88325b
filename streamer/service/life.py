"""One run of one stream: from its checkpoint's lock until that is given back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamer.config import Config
from streamer.durations import SECOND
from streamer.engine.batch_progress import BatchProgress
from streamer.engine.delivery import LogLine
from streamer.engine.snapshot import Snapshot
from streamer.engine.start_progress import StartPhase
from streamer.errors import StreamerError
from streamer.plan import Plan
from streamer.plan.judgement import Judgement, judge
from streamer.plan.plan import guesses_shards
from streamer.service.outage import counts_in_trouble
from streamer.service.probation import Probation, Standing
from streamer.service.replacing import (
    Deployed,
    OnReset,
    Replacing,
    again,
    check_ready,
    finish_drain,
    prepare_start,
)
from streamer.service.tracing import tracer_of
from streamer.service.view import Now, StreamView

if TYPE_CHECKING:
    from streamer.spark.checkpoint import Checkpoint, Elsewhere
    from streamer.spark.stream import Stream


class Life:
    """One run of a stream. The steps are taken in order: made, opened, started, polled, left.

    All that a step has begun is undone by `close`, whichever step it was. While it runs, another
    revision can take its place (`replace`).

    Attributes:
        config: what runs.
        plan: its plan.
        checkpoint: held until `close`.
        renewed: whether the earlier run read its input to the end, so that this one begins anew.
        resumes: whether an earlier run left something to go on with.
        stopping: tells whether the run is to stop, while something is waited for.
        changed: hears of the config that runs after one that has failed on probation.
    """

    def __init__(
        self,
        config: Config,
        plan: Plan,
        directory: str | Elsewhere,
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
        from streamer.spark.checkpoint import Checkpoint
        from streamer.spark.consistency import check_consistent
        from streamer.spark.generations import forget_seed
        from streamer.spark.moved import follow_move

        self.config = config
        self.stopping: Callable[[], bool] = lambda: False
        self.changed: Callable[[Config], None] = lambda config: None
        self._log = log
        self._view = view
        self._opened: Stream | None = None
        self._session: Any = None
        self._overlay: Any = None
        self._on_reset: OnReset | None = None
        self._probation: Probation | None = None
        self._former: tuple[Config, Plan] | None = None
        self._tracer = tracer_of(config.tracer, plan.name)
        self.plan = plan
        self._backlog = 0
        self._is_leaving = self._is_draining = False
        view.unready_reason = self._unready_reason
        self.checkpoint: Checkpoint = Checkpoint(directory)
        try:
            self.renewed = self.checkpoint.begin()
            check_consistent(self.checkpoint)
            forget_seed(self.checkpoint)
            self.resumes = self.checkpoint.resumes
            if follow_move(self.checkpoint.spark):
                text = "The checkpoint was moved; what Spark notes of its place follows"
                log("INFO", text, {"checkpoint": str(self.checkpoint)})
        except BaseException:
            self.checkpoint.close()
            raise

    def _unready_reason(self) -> str:
        if self._is_leaving or self.stopping():
            return "the stream is stopping"
        return "a deploy lets the open windows out" if self._is_draining else ""

    @property
    def lacks_shards(self) -> bool:
        """Whether the number of shards is still to be chosen, by the cores of the executors."""
        return self.checkpoint.is_new and guesses_shards(self.config, self.plan)

    def choose_shards(self, session: Any) -> None:
        """Before `open`: let windows have as many shards as the executors have cores.

        The checkpoint keeps the number, so it is said before it does.

        Args:
            session: Spark's, with executors.
        """
        from streamer.spark.cores import await_cores

        shards = await_cores(lambda: int(session.sparkContext.defaultParallelism))
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
        if "draining" not in self.checkpoint.record():
            self.made(self.plan)
        # Spark may be on its way, and is waited for from now on.
        self._view.start.end(StartPhase.CONNECT)

    def made(self, plan: Plan, former: Stream | None = None, drains: Any = None) -> Stream:
        """Make a stream, which is the run's from now on; see `Stream`."""
        from streamer.spark.stream import Stream

        self._opened = Stream(
            plan,
            self.checkpoint,
            self._log,
            overlay=self._overlay,
            endpoints=self._view.endpoints,
            former=former,
            drains=drains,
            progress=self._view.start,
        )
        if self._tracer is not None:
            self._opened.trace_by(self._tracer.batch)
        return self._opened

    def begin(self, stream: Stream) -> None:
        """Start the query of a stream that was made."""
        progress = self._view.start
        progress.begin(StartPhase.QUERY)
        stream.start(self._session)
        progress.begin(StartPhase.FIRST_BATCH)

    @property
    def is_opened(self) -> bool:
        """Whether there is a stream."""
        return self._opened is not None

    @property
    def stream(self) -> Stream:
        """The stream, once it is opened."""
        assert self._opened is not None
        return self._opened

    def start(self, session: Any) -> None:
        """Start the query in a Spark session."""
        self._session = session
        if self._opened is None:
            former = finish_drain(
                self, self.plan, self._patience, lambda: self.stopping(), self._log
            )
            self.made(self.plan, former)
        self.begin(self.stream)
        self._remember()
        self._view.running(self._now)
        self._view.batch_progress = self.batch_progress

    def _remember(self) -> None:
        if self._on_reset is not None:
            from streamer.spark.generations import remember

            remember(self.checkpoint, self.config, self.plan)

    def replace(
        self,
        config: Config,
        plan: Plan,
        judgement: Judgement,
        on_reset: OnReset | None = None,
        revision: str = "",
        probation: float | None = None,
    ) -> Deployed:
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
        check_ready(plan, self.plan)
        former = (self.config, self.plan)
        replacing = Replacing(self, self._log, self._patience, lambda: self.stopping())
        self._is_draining = bool(judgement.resets) and on_reset == OnReset.DRAIN
        try:
            done = replacing.replace(plan, judgement, on_reset, revision)
        finally:
            self._is_draining = False
        self._took(config, plan)
        self._probation, self._former = None, None
        if probation is not None and done.effect is not None:
            self._probation, self._former = Probation(time.monotonic() + probation), former
        return done

    def _took(self, config: Config, plan: Plan) -> None:
        self.config, self.plan = config, plan
        self._remember()
        self._view.replaced(config)

    @property
    def _patience(self) -> float:
        return self.config.shutdown_timeout / SECOND

    def _now(self) -> Now:
        stream = self.stream
        meters = stream.meters
        counts, times = dict(meters.counts), meters.times()
        trouble, backlog = stream.trouble, None if stream.outage else self._backlog
        if trouble.text:
            counts = counts_in_trouble(
                counts, stream.recent.event_time, time.time_ns(), outage=stream.outage
            )
        found = stream.snapshot(), counts, trouble.text, times, stream.gauges
        return Now(
            *(*found, trouble.place, backlog, stream.last_delivery),
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
        if self.stream.delivered:
            self._view.start.finish()
        if self._probation is None:
            return self.stream.poll()
        try:
            over = self.stream.poll()
        except StreamerError as e:
            if self.stopping():
                raise
            self._roll_back(str(e))
            return False
        stream, now = self.stream, time.monotonic()
        rejected = stream.rejected_alone
        standing = Standing(stream.failures, stream.delivered, stream.trouble.text, *rejected)
        why = self._probation.failed(standing, now)
        if why:
            self._roll_back(why)
            return False
        if self._probation.over(now):
            self._probation, self._former = None, None
        return over

    def _roll_back(self, why: str) -> None:
        """Let the former revision take its place again, from the offsets that are committed."""
        assert self._former is not None
        config, plan = self._former
        self._probation, self._former = None, None
        self._log("ERROR", f"The new revision has failed, and the former one comes back: {why}", {})
        replacing = Replacing(self, self._log, 0.0, lambda: self.stopping())
        replacing.replace(again(plan), judge(self.config, config), OnReset.DISCARD)
        self._took(config, plan)
        self.changed(config)

    def snapshot(self) -> Snapshot:
        """Return what the stream is doing."""
        return self.stream.snapshot()

    def batch_progress(self) -> BatchProgress | None:
        """Return how far the micro-batch in hand has got; None between two."""
        return self.stream.batch_meter.current()

    def end_start(self) -> None:
        """Say that the start is over, whatever it has come to."""
        self._view.start.finish(delivered=self.stream.delivered > 0)

    def leave(self, timeout: int | None = None) -> bool:
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
        self._view.ended()
        if self._tracer is not None:
            self._tracer.flush()
        self.checkpoint.close()
