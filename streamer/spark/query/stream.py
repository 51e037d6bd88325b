"""Run one stream: start its query, watch it, stop it between two micro-batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from streamer.core.durations import SECOND
from streamer.core.errors import StreamAbortedError, StreamerError, as_transient
from streamer.core.log_format import LogLine
from streamer.engine.driver.failure_diagnosis import Diagnosis, WaitingInputs
from streamer.engine.report.batch_progress import BatchMeter
from streamer.engine.report.start_progress import NO_PROGRESS, StartProgress
from streamer.engine.report.stream_metrics import Snapshot, StreamMetrics, has_ended
from streamer.plan import Plan
from streamer.spark.checkpoint.checkpoint import Checkpoint
from streamer.spark.checkpoint.initial_state import seed_for_workers
from streamer.spark.compat import FALLBACKS
from streamer.spark.query.drain_source import DrainLimit
from streamer.spark.query.input_session import InputSession, ProcessEnds
from streamer.spark.query.query_run import NotStartedError, QueryRun
from streamer.spark.query.retries import RetryCounter

_OWN_ENDS = ProcessEnds()


class Stream:
    """One stream: its input, a run of its query, and how often that is tried again.

    What can be checked without Spark is checked when it is made. `start` returns at once; `poll` is
    called now and then, and returns whether the stream is over.

    Attributes:
        input: the input, which another stream can take over.
        run: the run of the query.
    """

    def __init__(
        self,
        plan: Plan,
        checkpoint: Checkpoint,
        log: LogLine,
        ends: ProcessEnds = _OWN_ENDS,
        input_session: InputSession | None = None,
        drain_limit: DrainLimit | None = None,
        progress: StartProgress = NO_PROGRESS,
    ) -> None:
        """Make a stream ready.

        Args:
            plan: what to run; its number of shards is replaced by the checkpoint's.
            checkpoint: held by this program.
            log: takes log lines.
            ends: of the process.
            input_session: the input of a stream on the same checkpoint, which was retired: it is
                taken over, and what was counted goes on. None to open the plan's.
            drain_limit: to read no further than this says, and let open windows out.
            progress: hears what is connected to.

        Raises:
            StreamerError: the checkpoint does not fit, or the input's files are missing.
        """
        bound = checkpoint.check_fingerprint(plan.fingerprint)
        if plan.window is not None:
            plan = replace(
                plan, shards=bound["shards"], initial_state_dir=seed_for_workers(checkpoint)
            )
        self._checkpoint = checkpoint
        self._log = log
        self._retries = RetryCounter()
        self._start_error = ""
        self.input = input_session or InputSession(plan, checkpoint, log, ends)
        self.run = QueryRun(plan, checkpoint, log, self.input, ends.overlay, drain_limit)
        self._waiting_inputs = WaitingInputs(self.run.labels.input)
        try:
            if input_session is None:
                progress.connect(plan.input)
                self.input.open(plan)
            self.input.bind(plan)
            self.run.open(progress)
        except BaseException:
            # Other streams of the process go on, and so would what this one has begun.
            self.run.close()
            if input_session is None:
                self.input.host.stop()
            raise

    @property
    def plan(self) -> Plan:
        """The plan that runs."""
        return self.run.plan

    @property
    def trouble(self) -> Diagnosis:
        """The reason why the newest try of a micro-batch failed; see `QueryRun`."""
        return self.run.trouble

    @property
    def delivered_batches(self) -> int:
        """Number of micro-batches that were delivered since this was made."""
        return self.run.delivered_batches

    @property
    def batch_meter(self) -> BatchMeter:
        """The progress of the micro-batch in hand."""
        return self.run.batch_meter

    @property
    def meters(self) -> StreamMetrics:
        """The counters and timings since the start."""
        return self.input.meters

    def start(self, session: SparkSession) -> None:
        """Start the query in a Spark session, on the checkpoint's state if it has any.

        Raises:
            NotStartedError: Spark does not take it.
        """
        self.run.start(session)

    def snapshot(self) -> Snapshot:
        """Return what the stream is doing, as of its newest micro-batch."""
        return self.run.snapshot()

    def statuses(self) -> list[Mapping[str, Any]]:
        """Return the newest status of each shard."""
        return self.run.statuses()

    def set_min_interval(self, seconds: float) -> None:
        """Set the shortest time between two micro-batches, on a shared machine.

        Args:
            seconds: 0 for none. Windows close on time all the same, and whoever waits for an answer
                gets it as soon as ever.
        """
        ns = 0 if self.input.holds_requests else round(seconds * SECOND)
        self.run.pace_hints.update(min_interval=ns)

    def interrupt(self) -> None:
        """Give up waiting for what fails, from another thread; `stop` comes next."""
        self.run.stopping.set()

    def poll(self) -> bool:
        """Poll the query; return whether the stream has ended: its input ended, all is done.

        A query that failed is started again from its checkpoint, with growing pauses.

        Raises:
            StreamerError: it failed too often without getting further.
            BrokenPipeError: nobody reads the standard output any more.
        """
        assert self.run.query is not None
        self._checkpoint.check_lease()
        for abort in self.input.host.aborts:
            raise abort_stream(str(abort), abort.path)
        self.run.rejections.tick()
        FALLBACKS.log_new(self._log)
        try:
            active = self.run.query.isActive
        except (Py4JError, OSError) as e:
            raise StreamerError(
                "Spark's JVM ended unexpectedly (killed, or out of memory: spark.conf."
                "spark.driver.memory sets its heap); start again to continue from the checkpoint"
            ) from e
        if self._start_error:
            self._recover(self._start_error)
            return False
        if not active:
            if isinstance(self.run.delivery_error, BrokenPipeError):
                raise self.run.delivery_error
            self._recover(str(self.run.query.exception() or "Spark ended the query"))
            return False
        run = self.run
        if run.kafka is not None:
            run.trouble = run.kafka.check(run.trouble, run.labels.input, run.abandon)
        run.trouble = self._waiting_inputs.update(run.trouble, self.input.host.waiting_text)
        ended = has_ended(self.plan, self.statuses())
        return ended and self.run.rejections.is_finished_at_end(str(self._checkpoint))

    @property
    def has_outage(self) -> bool:
        """Whether the input's server does not answer, so that nobody knows what waits there."""
        return bool(self.run.kafka and self.run.kafka.outage)

    def finish(self) -> None:
        """After the end of a bounded input, when all is written: the next start begins anew."""
        self.run.close()
        self.input.finish()
        self._checkpoint.finish()

    def stop(self, timeout: float) -> bool:
        """Let the micro-batch in hand finish, then stop; open windows stay in the checkpoint.

        Args:
            timeout: seconds to wait for it; then it is abandoned, and replays at the next start.

        Returns:
            Whether it finished in time.
        """
        self.input.host.stop()
        return self.run.stop(timeout)

    def retire(self, timeout: float) -> None:
        """Let the micro-batch in hand finish, then stop, but keep the input open for a successor.

        Args:
            timeout: seconds to wait for it; then it is abandoned, and the successor replays it.
        """
        if not self.run.stop(timeout):
            self.run.abandon()

    def wait_input_closed(self, timeout: float) -> None:
        """After `stop`: wait until nobody writes any more to what the input keeps on disk.

        Whoever opens the input anew would otherwise write to the same files.

        Args:
            timeout: seconds to wait.

        Raises:
            StreamerError: somebody still does.
        """
        if not self.input.host.join(timeout):
            raise StreamerError("the input does not close, so it cannot be opened again")

    @property
    def failures(self) -> int:
        """Number of failures of the running micro-batch."""
        return self._retries.failures_after(self.run.delivery.batch)

    def _recover(self, error: str) -> None:
        self.run.batch_meter.end()
        # A broker that was away says nothing about the micro-batch.
        is_excused = self.run.kafka is not None and self.run.kafka.wait_until_reachable(
            error, self.run.stopping
        )
        self.run.trouble = trouble = self.run.diagnose(error)
        is_excused = (
            self.run.crashes.check_failure(self.run.current_batch, error, trouble, self._log)
            or is_excused
        )
        retries = self._retries
        retries.record_failure(
            self.run.delivery.batch, is_excused, trouble.is_permanent, trouble.is_overloaded
        )
        self.meters.count("batch_failed", {})
        self.meters.count("input_connection_lost", self.run.labels.input)
        # All that Spark says, traces and all, is for who looks for a fault in the program.
        self._log("DEBUG", error, {"micro_batch": self.run.delivery.batch + 1})
        if trouble.is_abort:
            raise abort_stream(trouble.text, trouble.place["path"])
        reason = trouble.text + (f" (at {trouble.place['path']})" if trouble.place else "")
        is_last = retries.is_exhausted or self.run.stopping.is_set()
        self.run.trouble_tracker.note_failure(
            max(retries.failures, retries.overloads, 1), None if is_last else retries.pause
        )
        if is_last:
            text = f"the stream failed {retries.failures} times at the same micro-batch: {reason}"
            raise as_transient(StreamerError(text), is_excused or trouble.is_transient)
        pause = retries.pause
        text = f"The micro-batch failed: {trouble.text}; trying again in {pause:g} s"
        self._log("ERROR", text, {**trouble.place, "micro_batch": self.run.delivery.batch + 1})
        if not self.run.stopping.wait(pause):
            assert self.run.session is not None
            try:
                self.start(self.run.session)
                self._start_error = ""
            except NotStartedError as e:
                # What starts the query can be killed as well: it is one more failure.
                self._start_error = e.spark_error


def abort_stream(text: str, path: str) -> StreamAbortedError:
    """Return the error that ends a stream because a processor wants it.

    Args:
        text: what the processor says.
        path: where it stands.
    """
    return StreamAbortedError(f"the processor at {path} ended the stream: {text}", path=path)
