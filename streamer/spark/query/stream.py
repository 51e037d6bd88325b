"""Run one stream: start its query, watch it, stop it between two micro-batches.

In one file because all of it is about the life of one query, whose threads share what is kept here.
"""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from streamer.core.errors import StreamerError, as_transient
from streamer.core.log_format import LogLine
from streamer.engine.driver.checkpoint_metrics import CheckpointMetrics
from streamer.engine.driver.delivery import Delivery, DeliveryStoppedError
from streamer.engine.driver.failure_diagnosis import (
    NO_DIAGNOSIS,
    Diagnosis,
    WaitingInputs,
    root_cause_line,
)
from streamer.engine.driver.output_preflight import preflight_outputs
from streamer.engine.driver.results_factory import open_store, store_gauges
from streamer.engine.driver.writers import Overlay, make_writers, open_writers
from streamer.engine.planner.kafka_inputs import split_kafka_inputs
from streamer.engine.planner.planner_channel import PlannerChannel
from streamer.engine.planner.trigger import PollSettings
from streamer.engine.report.batch_progress import BatchMeter
from streamer.engine.report.message_samples import MessageSamples
from streamer.engine.report.metric_labels import EndpointLabels, Labels
from streamer.engine.report.result_frame import Frame
from streamer.engine.report.shard_statuses import has_ended, newest_window_end
from streamer.engine.report.snapshot import Snapshot
from streamer.engine.report.spans import BatchTrace
from streamer.engine.report.start_progress import NO_PROGRESS, StartProgress
from streamer.engine.report.stream_metrics import StreamMetrics
from streamer.engine.report.task_log_channel import TaskLogReceiver
from streamer.engine.report.window_history import LAG_METRIC_KEY, WindowHistory
from streamer.plan import Plan
from streamer.plan.plan import count_cores
from streamer.sdk.cache.shared import CacheServer
from streamer.sdk.input.replayable import Limit, ReplayableSource
from streamer.sdk.sync_response import PendingRequests
from streamer.spark.checkpoint.checkpoint import Checkpoint
from streamer.spark.checkpoint.checkpoint_diagnosis import diagnose_failure
from streamer.spark.checkpoint.initial_state import seed_for_workers, ship_seed
from streamer.spark.checkpoint.local_state_check import check_local_state
from streamer.spark.checkpoint.spool_check import open_checked_input
from streamer.spark.cluster.parallelism import ParallelismReporter
from streamer.spark.compat import FALLBACKS
from streamer.spark.jvm.java_reference_gc import JAVA_REFERENCES
from streamer.spark.kafka.kafka_driver import KafkaDriver
from streamer.spark.query.drain_source import DrainLimit
from streamer.spark.query.idle_worker_monitors import interrupt_monitors
from streamer.spark.query.input_host import make_input_host
from streamer.spark.query.query_lifecycle import NotStartedError, start_query, stop_query
from streamer.spark.query.redelivery import WAIT_BUDGET_NS, Redelivery
from streamer.spark.query.replay import make_rejections, replay_in_worker
from streamer.spark.query.retries import RetryCounter
from streamer.spark.query.source import SourcePlan
from streamer.spark.query.worker_crashes import WorkerCrashes
from streamer.spark.tasks.task_properties import set_micro_batch

_COMPONENT_FIELDS = ("label", "path")


class Stream:
    """One stream. What can be checked without Spark is checked when it is made.

    `start` returns at once; `poll` is called now and then, and says when the stream is over.

    Attributes:
        plan: what runs.
        trouble: why the newest try of a micro-batch failed, and which component it is of; its text
            is empty once one is delivered.
        delivered_batches: micro-batches that were delivered since this was made.
        last_delivery: when the newest was, Unix s; None before the first.
        batch_meter: how far the micro-batch in hand has got.
        rejections: what outputs have rejected.
    """

    def __init__(
        self,
        plan: Plan,
        checkpoint: Checkpoint,
        log: LogLine,
        read_stdin: Callable[[int], bytes] | None = None,
        overlay: Overlay | None = None,
        endpoints: Any = None,
        former: Stream | None = None,
        drain_limit: DrainLimit | None = None,
        progress: StartProgress = NO_PROGRESS,
    ) -> None:
        """Make a stream ready.

        Args:
            plan: what to run; its number of shards is replaced by the checkpoint's.
            checkpoint: held by this program.
            log: takes log lines.
            read_stdin: reads up to so many bytes of the standard input, b"" at its end.
            overlay: what shares a terminal with the standard output.
            endpoints: the stream's HTTP server, for components that are served there.
            former: a stream of the same input on the same checkpoint, which was retired: the input
                stays open, and what was counted goes on.
            drain_limit: to read no further than this says, and let open windows out.
            progress: hears what is connected to.

        Raises:
            StreamerError: the checkpoint does not fit, or the input's files are missing.
        """
        bound = checkpoint.check_fingerprint(plan.fingerprint)
        self.plan = plan
        if plan.window is not None:
            self.plan = replace(
                plan, shards=bound["shards"], initial_state_dir=seed_for_workers(checkpoint)
            )
        self._checkpoint = checkpoint
        self._session: SparkSession | None = None
        self._log = log
        self._stopping = threading.Event()
        self._signals = PlannerChannel(checkpoint.directory / "signals")
        self._poll_settings = PollSettings(self._signals)
        self._parallelism = ParallelismReporter(self.plan, self._signals, log)
        self._pending_requests: PendingRequests = (
            PendingRequests() if former is None else former._pending_requests
        )
        self._drain_limit = drain_limit
        self._spark_checkpoint = checkpoint.spark
        self._query: StreamingQuery | None = None
        self._caches: CacheServer | None = None
        self._retries = RetryCounter()
        self._crashes = WorkerCrashes(checkpoint.root)
        self._current_batch = -1
        self._places = EndpointLabels.of(self.plan)
        self._waiting_inputs = WaitingInputs(self._places.input)
        writers = make_writers(self.plan, checkpoint.directory, sys.stdout.buffer, overlay)
        results = open_store(self.plan, checkpoint.directory, afresh=checkpoint.is_new, log=log)
        self.rejections = make_rejections(self.plan, checkpoint.rejected, self._signals, log)
        self._delivery = Delivery(
            writers,
            log,
            self._stopping.is_set,
            on_status=self._on_status,
            on_answers=self._pending_requests.resolve,
            on_trouble=self._on_trouble,
            endpoint_labels=self._places,
            results=results,
            window=self.plan.window,
            on_samples=lambda body, spark_checkpoint: self.tap.record(body, spark_checkpoint),
            rejections=self.rejections,
            resend=lambda *some: Redelivery(self.plan, self._session, self._stopping).send(*some),
            on_work=self._signals.set_work,
            parallel_tasks=lambda: self._signals.tasks() or count_cores(self.plan.master),
        )
        self._results = results
        self._checkpoint_metrics = CheckpointMetrics(
            checkpoint.directory, whole=not checkpoint.is_remote
        )
        self.batch_meter = BatchMeter(self._signals.extent)
        self._delivery_error: Exception | None = None
        self._newest_reported, self._start_error = False, ""
        self.trouble, self.delivered_batches = NO_DIAGNOSIS, 0
        self.last_delivery: float | None = None if former is None else former.last_delivery
        self.tap: MessageSamples = MessageSamples() if former is None else former.tap
        self.recent: WindowHistory = WindowHistory() if former is None else former.recent
        if former is None:
            host_arguments = self._count_input, self._pending_requests, read_stdin, endpoints
            self._input_host = make_input_host(self.plan, checkpoint, log, *host_arguments)
        else:
            self._input_host = former._input_host
            self._source: ReplayableSource = former._source
            # What a drain has said of its shards, that all has ended, is about its own only.
            has_same_state = (
                drain_limit is None
                and former._drain_limit is None
                and former._spark_checkpoint == self._spark_checkpoint
            )
            self._delivery.continue_from(former._delivery, has_same_state)
        # What listens or writes goes with the stream; inputs may outlive it.
        self._stream_context = self._input_host.stoppable_child("", self._input_host.directory)
        if results is not None:
            self._stream_context.context.on_stop(results.close)
        try:
            if former is None:
                progress.connect(self.plan.input)
                self._source = self._open_source()
            else:
                self._bind_checkpoint(self._input_host.remembered)
                self._input_host.save = self._bind_checkpoint
            preflight_outputs(self.plan, self._log, checkpoint.identity, progress.connect)
            open_writers(writers, self._stream_context.context)
            self._task_log = TaskLogReceiver(
                self._on_task_log, self.batch_meter.report, local=self._input_host.local
            )
        except BaseException:
            # Other streams of the process go on, and so would what this one has begun.
            self._stream_context.stop()
            if former is None:
                self._input_host.stop()
            raise
        self.plan = replace(
            self.plan, task_log_address=self._task_log.address, wait_budget=WAIT_BUDGET_NS
        )
        self._own_source, kafka = split_kafka_inputs(self._source)
        listeners = (
            self._signals,
            self._set_input_gauge,
            self._count_input,
            self.batch_meter.count_messages,
            log,
        )
        start_offsets, spark_checkpoint = checkpoint.kafka_start_offsets, checkpoint.spark
        self._kafka = (
            KafkaDriver(kafka, self.plan, spark_checkpoint, *listeners, start_offsets)
            if kafka
            else None
        )

    def _open_source(self) -> ReplayableSource:
        source: Any = self.plan.context().build(self.plan.input)
        input_host = self._input_host
        opened_source = open_checked_input(
            self._checkpoint, source, input_host.root_context(), self._log
        )
        check_local_state(self._checkpoint, self.plan, self._log)
        self._bind_checkpoint(input_host.remembered)
        input_host.save = self._bind_checkpoint
        return opened_source

    def _bind_checkpoint(self, remembered: Mapping[str, Any]) -> None:
        self._checkpoint.bind(self.plan.fingerprint, remembered)

    def _count_input(self, name: str, by: int = 1, **labels: str) -> None:
        self.meters.count(name, {**self._places.input, **labels}, by)

    def _set_input_gauge(self, name: str, labels: Mapping[str, str], value: float | None) -> None:
        self.meters.set(name, {**self._places.input, **labels}, value)

    def start(self, session: SparkSession) -> None:
        """Start the query in a Spark session, on the checkpoint's state if it has any.

        Raises:
            NotStartedError: Spark does not take it.
        """
        # Streams that share a session would change each other's settings.
        session = self._session = session if session is self._session else session.newSession()
        self._caches = self._caches or self.plan.host_caches()
        self._signals.clear()
        self._poll_settings.publish()
        self._parallelism.report(session, is_start=True)
        self._newest_reported = False
        self.meters.count("input_connection_up", self._places.input)
        stopping = self._stopping.is_set
        self.rejections.resend = lambda some: replay_in_worker(session, self.plan, some, stopping)
        try:
            self._checkpoint.forget_unplanned()
            self._query = self._start_query(session)
        except (Py4JError, PySparkException, OSError) as e:
            raise NotStartedError(self._diagnose(str(e)).text, str(e)) from e

    def _start_query(self, session: SparkSession) -> StreamingQuery:
        kafka = self._kafka
        source_plan = SourcePlan(
            source=self._own_source
            if self._drain_limit is None
            else self._drain_limit.apply_to(self._own_source),
            window=self.plan.window,
            start_id=uuid.uuid4().hex[:12],
            signals=self._signals,
            limit=Limit(size=self.plan.limit_bytes),
            interval=self.plan.interval,
            pieces=count_cores(self.plan.master),
            aggregation_id=self.plan.aggregation.identity,
            start_offset=self._checkpoint.start_offset,
            kafka=kafka.children if kafka else (),
            limits=self.plan.limits,
            reports_lag=kafka is not None and kafka.needed_columns.needs("kafka_lag"),
        )
        kafka_rows = kafka.stage_rows(session, self.plan) if kafka else []
        spark_checkpoint = self._checkpoint.spark
        ship_seed(session, self._checkpoint)
        return start_query(
            session,
            self.plan,
            self._own_source,
            source_plan,
            kafka_rows,
            spark_checkpoint,
            self._deliver,
        )

    def _deliver(self, batch: DataFrame, number: int) -> None:
        began = time.monotonic()
        self._checkpoint.wait_lease_valid(self._stopping.is_set)
        at = self._checkpoint.global_batch_number(number)
        self.batch_meter.begin(at)
        if self._kafka is not None:
            self._kafka.batch_started(batch, number)
        self._current_batch = at
        crashes = self._crashes.crash_order(at).to_json()
        set_micro_batch(batch, self._checkpoint.identity, at, self.tap.per_task, crashes)
        table = batch.toArrow()
        frames = [Frame(*row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]
        if self._kafka is not None:
            self._kafka.batch_delivered()
        try:
            self._delivery.deliver(at, frames, began)
            self.trouble = NO_DIAGNOSIS
            self.delivered_batches += 1
            self.last_delivery = round(time.time(), 3)
            self._parallelism.report(batch.sparkSession)
            JAVA_REFERENCES.collect_if_due(time.monotonic())
        except (BrokenPipeError, DeliveryStoppedError) as e:
            self._delivery_error = e
            raise
        finally:
            self.batch_meter.end()

    def _on_task_log(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Hear what a task waits for; it is over when a micro-batch is delivered."""
        self._on_trouble(text, fields)
        self._log(level, text, fields)

    def _on_trouble(self, text: str, place: Labels) -> None:
        self.trouble = Diagnosis(
            text, {name: place[name] for name in place if name in _COMPONENT_FIELDS}
        )

    def _on_status(self, statuses: Mapping[int, Mapping[str, Any]]) -> None:
        self.recent.record(
            self._delivery.batch, statuses.values(), self.meters.counts.get(LAG_METRIC_KEY)
        )
        self._signals.set_due(self.snapshot().next_close)
        if not self._newest_reported and len(statuses) >= self.plan.shards:
            self._signals.set_newest_end(newest_window_end([*statuses.values()]))
            self._newest_reported = True

    def snapshot(self) -> Snapshot:
        """Return what the stream is doing, as of its newest micro-batch."""
        delivery = self._delivery
        return Snapshot.of(self.statuses(), dict(delivery.metrics.counts), delivery.batch)

    def statuses(self) -> list[Mapping[str, Any]]:
        """Return the newest status of each shard."""
        return list(self._delivery.statuses.values())

    @property
    def backlog(self) -> int:
        """Number of messages that wait at the input."""
        return self._signals.backlog()

    def read_gauges(self) -> dict[str, float]:
        """Return what is measured when it is asked for: what is kept on the disk."""
        return store_gauges(self._results) | self._checkpoint_metrics.read_gauges()

    @property
    def meters(self) -> StreamMetrics:
        """The counters and timings since the start."""
        return self._delivery.metrics

    def set_trace_listener(self, trace: Callable[[BatchTrace], None] | None) -> None:
        """Say who hears of each micro-batch what was done in it and when."""
        self._delivery.trace = trace

    def set_poll_settings(self, seconds: float, min_wait: float = 0.0) -> None:
        """Say how often there are looks and micro-batches, where many streams share a machine.

        Args:
            seconds: how long the source rests between two looks that find nothing; 0 for not at
                all. A window that is due ends a rest.
            min_wait: how long data waits at least, s; windows close on time all the same, and
                whoever waits for an answer gets it as soon as ever.
        """
        self._poll_settings.update(seconds, 0.0 if self.holds_requests else min_wait)

    def interrupt(self) -> None:
        """Give up waiting for what fails, from another thread; `stop` comes next."""
        self._stopping.set()

    def poll(self) -> bool:
        """Look after the query; return whether the stream is over: its input ended, all done.

        A query that failed is started again from its checkpoint, with growing pauses.

        Raises:
            StreamerError: it failed too often without getting further.
            BrokenPipeError: nobody reads the standard output any more.
        """
        assert self._query is not None
        self._checkpoint.check_lease()
        self.rejections.tick()
        FALLBACKS.log_new(self._log)
        try:
            active = self._query.isActive
        except (Py4JError, OSError) as e:
            raise StreamerError(
                "Spark's JVM ended unexpectedly (killed, or out of memory: spark.conf."
                "spark.driver.memory sets its heap); start again to go on from the checkpoint"
            ) from e
        if self._start_error:
            self._recover(self._start_error)
            return False
        if not active:
            if isinstance(self._delivery_error, BrokenPipeError):
                raise self._delivery_error
            self._recover(str(self._query.exception() or "Spark ended the query"))
            return False
        if self._kafka is not None:
            self.trouble = self._kafka.check(self.trouble, self._places.input, self.abandon)
        self.trouble = self._waiting_inputs.update(self.trouble, self._input_host.waiting_text)
        ended = has_ended(self.plan, self.statuses())
        return ended and self.rejections.is_finished_at_end(str(self._checkpoint))

    @property
    def has_outage(self) -> bool:
        """Whether the input's server does not answer, so that nobody knows what waits there."""
        return bool(self._kafka and self._kafka.outage)

    def finish(self) -> None:
        """After the end of a bounded input, when all is written: the next start begins anew."""
        self._task_log.close()
        self._input_host.stop()
        self._source.on_finished()
        self._checkpoint.finish()

    def stop(self, timeout: float) -> bool:
        """Let the micro-batch in hand finish, then stop; open windows stay in the checkpoint.

        Args:
            timeout: seconds to wait for it; then it is abandoned, and replays at the next start.

        Returns:
            Whether it finished in time.
        """
        self._input_host.stop()
        return self._stop_query(timeout)

    def retire(self, timeout: float) -> None:
        """Let the micro-batch in hand finish, then stop, but keep the input open for a successor.

        Args:
            timeout: seconds to wait for it; then it is abandoned, and the successor replays it.
        """
        if not self._stop_query(timeout):
            self.abandon()

    def wait_input_closed(self, timeout: float) -> None:
        """After `stop`: wait until nobody writes any more to what the input keeps on disk.

        Whoever opens the input anew would otherwise write to the same files.

        Args:
            timeout: seconds to wait.

        Raises:
            StreamerError: somebody still does.
        """
        if not self._input_host.join(timeout):
            raise StreamerError("the input does not close, so it cannot be opened anew")

    @property
    def failures(self) -> int:
        """Number of failures of the running micro-batch."""
        return self._retries.failures_after(self._delivery.batch)

    @property
    def rejected_batches(self) -> tuple[int, str]:
        """Number of rejected micro-batches while no message was taken, and the reason."""
        return self._delivery.rejected_batches, self._delivery.rejected_reason

    @property
    def holds_requests(self) -> bool:
        """Whether the input holds requests open until they are answered."""
        return self._input_host.answers is not None

    def _stop_query(self, timeout: float) -> bool:
        self._stopping.set()
        self.rejections.close()
        self._stream_context.stop()
        self._task_log.close()
        self._signals.stop()
        try:
            if self._query is not None and not stop_query(self._query, timeout):
                return False
        except (Py4JError, OSError):
            return False
        finally:
            if self._session is not None:
                interrupt_monitors(self._session, tasks_ran=self.delivered_batches > 0)
            if self._kafka is not None:
                self._kafka.close()
            if self._caches is not None:
                self._caches.close()
            self.plan.forget()
        return not self.is_undelivered

    @property
    def is_undelivered(self) -> bool:
        """Whether the stream was stopped while an output did not take the running micro-batch."""
        return isinstance(self._delivery_error, DeliveryStoppedError)

    def abandon(self) -> None:
        """Stop in the middle of a micro-batch, which replays at the next start."""
        try:
            if self._query is not None:
                self._query.stop()
        except (Py4JError, OSError) as e:
            self._log("WARN", f"The query was left behind: {root_cause_line(str(e))}", {})

    def _diagnose(self, error: str) -> Diagnosis:
        """Return why a micro-batch has failed."""
        return diagnose_failure(error, self._places, self._checkpoint.root, self._checkpoint.spark)

    def _recover(self, error: str) -> None:
        self.batch_meter.end()
        # A broker that was away says nothing about the micro-batch.
        is_excused = self._kafka is not None and self._kafka.wait_until_reachable(
            error, self._stopping
        )
        self.trouble = trouble = self._diagnose(error)
        is_excused = (
            self._crashes.check_failure(self._current_batch, error, trouble, self._log)
            or is_excused
        )
        retries = self._retries
        retries.record_failure(
            self._delivery.batch, is_excused, trouble.is_permanent, trouble.is_overloaded
        )
        self.meters.count("batch_failed", {})
        self.meters.count("input_connection_lost", self._places.input)
        # All that Spark says, traces and all, is for who looks for a fault in the program.
        self._log("DEBUG", error, {"micro_batch": self._delivery.batch + 1})
        reason = trouble.text + (f" (at {trouble.place['path']})" if trouble.place else "")
        if retries.is_exhausted or self._stopping.is_set():
            text = f"the stream failed {retries.failures} times at the same micro-batch: {reason}"
            raise as_transient(StreamerError(text), is_excused or trouble.is_transient)
        pause = retries.pause
        text = f"The micro-batch failed: {trouble.text}; trying again in {pause:g} s"
        self._log("ERROR", text, {**trouble.place, "micro_batch": self._delivery.batch + 1})
        if not self._stopping.wait(pause):
            assert self._session is not None
            try:
                self.start(self._session)
                self._start_error = ""
            except NotStartedError as e:
                # What starts the query can be killed as well: it is one more failure.
                self._start_error = e.spark_error
