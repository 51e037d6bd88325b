"""The query of a stream: what Spark is given to run, what it plans by, what delivers its batches.

In one file because all of it is about one query, whose threads share what is kept here.
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

from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.engine.driver.checkpoint_metrics import CheckpointMetrics
from streamer.engine.driver.delivery import Delivery, DeliveryStoppedError
from streamer.engine.driver.delivery_setup import (
    DeliveredStream,
    DeliveryListeners,
    DeliveryRecord,
    DeliverySinks,
)
from streamer.engine.driver.failure_diagnosis import NO_DIAGNOSIS, Diagnosis, root_cause_line
from streamer.engine.driver.output_preflight import preflight_outputs
from streamer.engine.driver.results_factory import open_store, store_gauges
from streamer.engine.driver.table_commits import describe_tables
from streamer.engine.driver.writers import Overlay, make_writers, open_writers
from streamer.engine.planner.checkpoint_path import Location
from streamer.engine.planner.pacing import PacingSettings
from streamer.engine.planner.planner_channels import PlannerChannel
from streamer.engine.planner.trigger import PaceHints
from streamer.engine.report.batch_progress import BatchMeter
from streamer.engine.report.frame_compression import expand_frame
from streamer.engine.report.metric_labels import EndpointLabels, Labels
from streamer.engine.report.start_progress import StartProgress
from streamer.engine.report.stream_metrics import Snapshot, newest_window_end
from streamer.engine.report.task_log_channel import TaskLogReceiver
from streamer.engine.report.trouble import TroubleTracker
from streamer.engine.report.window_history import LAG_METRIC_KEY
from streamer.plan import Plan
from streamer.plan.plan import count_cores
from streamer.sdk.cache.shared import CacheServer
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.input.replayable import Limit, ReplayableSource
from streamer.spark.checkpoint.checkpoint import Checkpoint
from streamer.spark.checkpoint.checkpoint_diagnosis import diagnose_failure
from streamer.spark.checkpoint.initial_state import ship_seed
from streamer.spark.cluster.parallelism import ParallelismReporter
from streamer.spark.jvm.java_reference_gc import JAVA_REFERENCES
from streamer.spark.query.batch_callback import FrameCollection, call_for_each_batch
from streamer.spark.query.drain_source import DrainLimit
from streamer.spark.query.idle_worker_monitors import interrupt_monitors
from streamer.spark.query.input_session import InputSession
from streamer.spark.query.kafka_driver import InputReport, KafkaDriver
from streamer.spark.query.redelivery import WAIT_BUDGET_NS, Redelivery
from streamer.spark.query.replay import make_rejections, replay_in_worker
from streamer.spark.query.source import SourcePlan, stream_source
from streamer.spark.query.stream_tables import StreamTables
from streamer.spark.query.worker_crashes import WorkerCrashes
from streamer.spark.tasks.stages import build_frames, set_micro_batch

Deliver = Callable[[DataFrame, int], None]
OnDelivered = Callable[[float, float, float], None]

_TRIGGER_INTERVAL = "0 seconds"
"""Spark's trigger. An interval would be waited for by the wall clock: for an hour, when that is set
back by an hour. The source waits itself until a micro-batch is worth it.
"""


class NotStartedError(StreamerError):
    """Spark does not start the query.

    Attributes:
        spark_error: all that Spark said.
    """

    def __init__(self, text: str, spark_error: str) -> None:
        """Take the reason in a sentence, and the whole text of Spark's error."""
        super().__init__(f"Spark does not start the stream: {text}")
        self.spark_error = spark_error


def start_query(
    session: SparkSession,
    plan: Plan,
    source: ReplayableSource,
    source_plan: SourcePlan,
    checkpoint: Location,
    deliver: Deliver,
) -> StreamingQuery:
    """Start a query.

    Args:
        session: the stream's own.
        plan: what runs.
        source: the input.
        source_plan: how it is read.
        checkpoint: Spark's.
        deliver: a method that takes the frames of each micro-batch; it does not keep its object.
    """
    # Of queries that ended by themselves, or are left behind.
    interrupt_monitors(session)
    session.dataSource.register(stream_source(source_plan))
    session.conf.set("spark.sql.shuffle.partitions", str(max(plan.shards, 1)))
    stream = session.readStream.format("streamer").load()
    writer = (
        build_frames(plan, source, stream)
        .writeStream.queryName(plan.name)
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=_TRIGGER_INTERVAL)
    )
    call_for_each_batch(writer, session, deliver)
    return writer.start()


def stop_query(query: StreamingQuery, timeout: float) -> bool:
    """Let the micro-batch in hand finish, then stop.

    Args:
        query: may have ended by itself.
        timeout: seconds to wait.

    Returns:
        Whether it finished in time; else the query goes on.
    """
    until = time.monotonic() + timeout
    while query.isActive and query.status["isTriggerActive"]:
        if time.monotonic() >= until:
            return False
        time.sleep(0.02)
    if query.isActive:
        query.stop()
    return True


_COMPONENT_FIELDS = ("label", "path")


class QueryRun:
    """The run of a query, which may start several times; it ends with a redeploy.

    Attributes:
        plan: what runs.
        labels: where the ends of the stream stand.
        query: the newest query; None before the first.
        session: the session that it runs in; None before the first.
        stopping: set when the stream is to stop.
        signals: by which the process that plans micro-batches is talked to.
        pace_hints: what that paces the stream by.
        delivery: delivers its micro-batches.
        delivery_error: what has ended the newest delivery; None when nothing has.
        trouble_tracker: since when `trouble` lasts, and how often it was tried.
        delivered_batches: micro-batches that were delivered since this was made.
        batch_meter: how far the micro-batch in hand has got.
        rejections: what outputs have rejected.
        crashes: what is known of workers that a message has ended.
        current_batch: the micro-batch in hand; -1 before the first.
        kafka: looks after the inputs that Spark reads; None without, and before `open`.
        on_delivered: called after each micro-batch with when its tasks began, when they had ended,
            and when it was delivered, Unix s.
    """

    def __init__(
        self,
        plan: Plan,
        checkpoint: Checkpoint,
        log: LogLine,
        input_session: InputSession,
        overlay: Overlay | None = None,
        drain_limit: DrainLimit | None = None,
    ) -> None:
        """Make ready.

        Args:
            plan: what to run.
            checkpoint: held by this program.
            log: takes log lines.
            input_session: the input, which need not be open yet.
            overlay: what shares a terminal with the standard output.
            drain_limit: to read no further than this says.
        """
        self.plan = plan
        self._checkpoint = checkpoint
        self._log = log
        self._input = input_session
        self._drain_limit = drain_limit
        self.stopping = threading.Event()
        self.session: SparkSession | None = None
        self.query: StreamingQuery | None = None
        self.kafka: KafkaDriver | None = None
        self._caches: CacheServer | None = None
        self._task_log: TaskLogReceiver | None = None
        self.signals = PlannerChannel(checkpoint.directory / "signals")
        self.pace_hints = PaceHints(self.signals)
        self.batch_meter = BatchMeter(lambda: self.signals.planner.read().extent)
        self._parallelism = ParallelismReporter(plan, self.signals, log)
        self.crashes, self.current_batch = WorkerCrashes(checkpoint.root), -1
        self.labels = EndpointLabels.of(plan)
        self._writers = make_writers(
            plan, checkpoint.directory, sys.stdout.buffer, overlay, lambda: checkpoint.identity
        )
        self._results = open_store(plan, checkpoint.directory, afresh=checkpoint.is_new, log=log)
        self._tables = StreamTables(plan, checkpoint, log, input_session.meters)
        input_session.window_questions.wake = self._request_micro_batch
        self.rejections = make_rejections(plan, checkpoint.rejected, self.signals, log)
        self.trouble_tracker, self._trouble = TroubleTracker(), NO_DIAGNOSIS
        self.delivery = self._make_delivery()
        self.delivery_error: Exception | None = None
        self._checkpoint_metrics = CheckpointMetrics(
            checkpoint.directory, whole=not checkpoint.is_remote
        )
        self._newest_reported = False
        self._frames: FrameCollection | None = None
        self._thread_properties: dict[str, str] = {}
        self.on_delivered: OnDelivered = lambda began, computed, delivered: None
        self.delivered_batches = 0
        # What listens or writes goes with the query; inputs may outlive it.
        self._context = input_session.host.stoppable_child("", input_session.host.directory)
        if self._results is not None:
            self._context.context.on_stop(self._results.close)

    def describe_tables(self) -> list[dict[str, Any]]:
        """Return the newest commits of the tables that are written; see `describe_tables`."""
        outputs = self.plan.driver_outputs
        return describe_tables(self._writers, ((one.path, one.label) for one in outputs))

    @property
    def trouble(self) -> Diagnosis:
        """The reason why the newest try of a micro-batch failed; an empty text after a delivery."""
        return self._trouble

    @trouble.setter
    def trouble(self, diagnosis: Diagnosis) -> None:
        if diagnosis != self._trouble:
            self._trouble = diagnosis
            self.trouble_tracker.note(diagnosis.text, diagnosis.place)

    def _make_delivery(self) -> Delivery:
        session, master = self._input, self.plan.master
        if self._drain_limit is None:
            record = session.record_of(self._checkpoint.spark)
        else:
            # What a drain reports of its shards, that all has ended, is about its own only.
            record = DeliveryRecord(session.meters)
        return Delivery(
            self._writers,
            self._log,
            self.stopping.is_set,
            stream=DeliveredStream(
                self.labels,
                self.plan.window,
                windows={
                    one.label: one.windows.window
                    for one in self.plan.buffers
                    if one.windows.window is not None
                },
                parallel_tasks=lambda: self.signals.driver.read().tasks or count_cores(master),
            ),
            sinks=DeliverySinks(
                self._results,
                self.rejections,
                resend=lambda *some: Redelivery(self.plan, self.session, self.stopping).send(*some),
            ),
            listeners=DeliveryListeners(
                on_status=self._on_status,
                on_answers=session.pending_requests.resolve,
                on_trouble=self._on_trouble,
                on_wait=self.trouble_tracker.note_wait,
                on_samples=session.tap.record,
                on_failures=session.failed_messages.record,
                on_work=lambda work: self.signals.driver.update(work=work),
            ),
            record=record,
        )

    def open(self, progress: StartProgress) -> None:
        """Open what the query delivers to, once the input is open.

        Args:
            progress: hears what is connected to.

        Raises:
            StreamerError: an output cannot be opened.
        """
        checkpoint, session = self._checkpoint, self._input
        preflight_outputs(self.plan, self._log, checkpoint.identity, progress.connect)
        self._tables.open()
        open_writers(self._writers, self._context.context)
        self._task_log = task_log = TaskLogReceiver(
            self._on_task_log, self.batch_meter.report, local=session.host.local
        )
        self.plan = replace(
            self.plan, task_log_address=task_log.address, wait_budget=WAIT_BUDGET_NS
        )
        if session.kafka_inputs:
            report = InputReport(
                session.set_gauge, session.count, self.batch_meter.count_messages, self._log
            )
            self.kafka = KafkaDriver(
                *(session.kafka_inputs, self.plan, checkpoint.spark, self.signals),
                *(report, checkpoint.kafka_start_offsets),
            )

    def close(self) -> None:
        """Let what listens or writes end."""
        self._context.stop()
        self._tables.close()
        if self._task_log is not None:
            self._task_log.close()

    def start(self, session: SparkSession) -> None:
        """Start the query in a Spark session, on the checkpoint's state if it has any.

        Raises:
            NotStartedError: Spark does not take it.
        """
        # Streams that share a session would change each other's settings.
        session = self.session = session if session is self.session else session.newSession()
        self._caches = self._caches or self.plan.host_caches()
        self.signals.clear()
        self.signals.driver.update(follower=self._input.follower)
        self._input.host.planner_waker.wake = self.signals.wake_planner
        self.pace_hints.publish()
        self._parallelism.report(session, is_start=True)
        self._frames, self._thread_properties = FrameCollection(session), {}
        self._newest_reported = False
        self.delivery.metrics.count("input_connection_up", self.labels.input)
        stopping = self.stopping.is_set
        self.rejections.resend = lambda some: replay_in_worker(session, self.plan, some, stopping)
        try:
            self._checkpoint.forget_unplanned()
            self.query = self._start_query(session)
        except (Py4JError, PySparkException, OSError) as e:
            raise NotStartedError(self.diagnose(str(e)).text, str(e)) from e

    def _start_query(self, session: SparkSession) -> StreamingQuery:
        kafka = self.kafka
        source = self._input.source if kafka is None else kafka.prepare_source(self._input.source)
        source_plan = SourcePlan(
            source=source if self._drain_limit is None else self._drain_limit.apply_to(source),
            windows=self.plan.windows,
            start_id=uuid.uuid4().hex[:12],
            signals=self.signals,
            limit=Limit(size=self.plan.limit_bytes),
            pacing=PacingSettings.of(self.plan, self._input.holds_requests),
            pieces=count_cores(self.plan.master),
            aggregation_id=self.plan.aggregation_identity,
            start_offset=self._checkpoint.start_offset,
            limits=self.plan.limits,
            follows=self._input.follows,
        )
        if kafka is not None:
            kafka.begin_query()
        spark_checkpoint = self._checkpoint.spark
        ship_seed(session, self._checkpoint)
        return start_query(
            session,
            self.plan,
            source,
            source_plan,
            spark_checkpoint,
            self._deliver,
        )

    def _deliver(self, batch: DataFrame, number: int) -> None:
        began, began_at = time.monotonic(), time.time()
        self._checkpoint.wait_lease_valid(self.stopping.is_set)
        at = self._checkpoint.global_batch_number(number)
        self.batch_meter.begin(at)
        if self.kafka is not None:
            self.kafka.batch_started(number)
        self.current_batch = at
        crashes = self.crashes.crash_order(at).to_json()
        samples, windows = self._input.tap.per_task, self._input.window_questions.take()
        if (tap := self.delivery.window_tap) is not None:
            tap.begin_batch(number)
        order = samples, crashes, windows, self._thread_properties, tap is not None
        set_micro_batch(batch, self._checkpoint.identity, at, *order)
        self._tables.prepare(batch, at)
        assert self._frames is not None
        frames = [expand_frame(one) for one in self._frames.collect(batch)]
        if self.kafka is not None:
            self.kafka.batch_delivered()
        computed_at = time.time()
        try:
            self.delivery.deliver(at, frames, began)
            self.trouble = NO_DIAGNOSIS
            self.delivered_batches += 1
            delivered_at = time.time()
            self._input.last_delivery = round(delivered_at, 3)
            self.on_delivered(began_at, computed_at, delivered_at)
            self._parallelism.report(batch.sparkSession)
            JAVA_REFERENCES.collect_if_due(time.monotonic())
        except (BrokenPipeError, DeliveryStoppedError) as e:
            self.delivery_error = e
            raise
        finally:
            self.batch_meter.end()

    def _on_task_log(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Note what a task waits for; it is over when a micro-batch is delivered."""
        self._on_trouble(text, fields)
        self._log(level, text, fields)

    def _on_trouble(self, text: str, place: Labels) -> None:
        known = {name: place[name] for name in place if name in _COMPONENT_FIELDS}
        if not known and text.startswith("Output blocked: ") and len(self.plan.outputs) == 1:
            known = dict(ComponentRef(self.plan.output).fields)
        self.trouble = Diagnosis(text, known)

    def _on_status(self, statuses: Mapping[int, Mapping[str, Any]]) -> None:
        self._input.recent.record(
            self.delivery.batch, statuses.values(), self.delivery.metrics.counts.get(LAG_METRIC_KEY)
        )
        hints: dict[str, Any] = {"due": self.snapshot().next_close}
        if not self._newest_reported and len(statuses) >= self.plan.shard_count:
            hints |= {"newest_end": newest_window_end([*statuses.values()]), "has_newest_end": True}
            self._newest_reported = True
        self.signals.driver.update(**hints)
        self.pace_hints.update_lag(
            self.delivery.metrics.counts.get(LAG_METRIC_KEY), statuses.values(), time.time_ns()
        )
        self._input.window_questions.record(statuses.values())

    def _request_micro_batch(self) -> None:
        """Have a micro-batch run soon, though there may be no message."""
        if not self.stopping.is_set():
            self.signals.driver.update(requested_at=time.time_ns())

    def snapshot(self) -> Snapshot:
        """Return what the stream is doing, as of its newest micro-batch."""
        delivery = self.delivery
        return Snapshot.of(self.statuses(), dict(delivery.metrics.counts), delivery.batch)

    def statuses(self) -> list[Mapping[str, Any]]:
        """Return the newest status of each shard."""
        return list(self.delivery.statuses.values())

    def read_gauges(self) -> dict[str, float]:
        """Return what is measured when it is asked for: what is kept on the disk."""
        stored = store_gauges(self._results) | self._checkpoint_metrics.read_gauges()
        return stored | self._tables.read_gauges()

    def stop(self, timeout: float) -> bool:
        """Let the micro-batch in hand finish, then stop.

        Args:
            timeout: seconds to wait for it.

        Returns:
            Whether it finished in time.
        """
        self.stopping.set()
        self.rejections.close()
        self.close()
        self.signals.stop()
        try:
            if self.query is not None and not stop_query(self.query, timeout):
                return False
        except (Py4JError, OSError):
            return False
        finally:
            if self.session is not None:
                interrupt_monitors(self.session, tasks_ran=self.delivered_batches > 0)
            if self.kafka is not None:
                self.kafka.close()
            if self._caches is not None:
                self._caches.close()
            self.plan.forget()
        return not self.is_undelivered

    @property
    def is_undelivered(self) -> bool:
        """Whether the stream was stopped while an output did not take the running micro-batch."""
        return isinstance(self.delivery_error, DeliveryStoppedError)

    def abandon(self) -> None:
        """Stop in the middle of a micro-batch, which replays at the next start."""
        try:
            if self.query is not None:
                self.query.stop()
        except (Py4JError, OSError) as e:
            self._log("WARN", f"The query was left behind: {root_cause_line(str(e))}", {})

    def diagnose(self, error: str) -> Diagnosis:
        """Return why a micro-batch has failed."""
        return diagnose_failure(error, self.labels, self._checkpoint.root, self._checkpoint.spark)
