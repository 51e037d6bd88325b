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

from streamer.answering import Answers
from streamer.caching.shared import Host
from streamer.engine.batch_progress import BatchMeter
from streamer.engine.beside import apart
from streamer.engine.checkpoint_figures import CheckpointFigures
from streamer.engine.delivery import Delivery, DeliveryStoppedError, LogLine
from streamer.engine.frame import Frame
from streamer.engine.keeping import gauges_of, store_of
from streamer.engine.live import Ear
from streamer.engine.meters import Meters
from streamer.engine.outset import look_at_outputs
from streamer.engine.places import Labels, Places
from streamer.engine.recent import LAG, Recent
from streamer.engine.shard_statuses import has_ended, newest_end
from streamer.engine.signals import Signals
from streamer.engine.snapshot import Snapshot
from streamer.engine.spans import BatchTrace
from streamer.engine.start_progress import NO_PROGRESS, StartProgress
from streamer.engine.tapping import Tap
from streamer.engine.ticks import Pace
from streamer.engine.troubles import NO_TROUBLE, Trouble, WaitingInputs, said
from streamer.engine.writers import Overlay, open_writers, writers_of
from streamer.errors import StreamerError, as_passing
from streamer.plan import Plan
from streamer.plan.plan import cores
from streamer.source.replayable import Limit, Replayable
from streamer.spark.checkpoint import Checkpoint
from streamer.spark.cores import Cores
from streamer.spark.crashes import Crashes
from streamer.spark.damage import trouble_at
from streamer.spark.draining import Drains
from streamer.spark.handles import HANDLES
from streamer.spark.input_host import make_input_host
from streamer.spark.kafka_side import KafkaSide
from streamer.spark.micro_batch import tell
from streamer.spark.monitors import end_monitors
from streamer.spark.query import NotStartedError, begin, end
from streamer.spark.redelivery import WAIT_BUDGET_NS, Redelivery
from streamer.spark.replay import rejections_of, replay_in_worker
from streamer.spark.retries import Retries
from streamer.spark.seeds import bring_seed, seed_of
from streamer.spark.source import SourcePlan
from streamer.spark.spools import open_checked
from streamer.spark.staying import say_what_stays

_PLACE = ("label", "path")


class Stream:
    """One stream. What can be checked without Spark is checked when it is made.

    `start` returns at once; `poll` is called now and then, and says when the stream is over.

    Attributes:
        plan: what runs.
        trouble: why the newest try of a micro-batch failed, and which component it is of; its text
            is empty once one is delivered.
        delivered: micro-batches that were delivered since this was made.
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
        drains: Drains | None = None,
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
            drains: to read no further than this says, and let open windows out.
            progress: hears what is connected to.

        Raises:
            StreamerError: the checkpoint does not fit, or the input's files are missing.
        """
        bound = checkpoint.check(plan.fingerprint)
        self.plan = plan
        if plan.window is not None:
            self.plan = replace(plan, shards=bound["shards"], seed=seed_of(checkpoint))
        self._checkpoint = checkpoint
        self._session: SparkSession | None = None
        self._log = log
        self._stopping = threading.Event()
        self._signals = Signals(checkpoint.directory / "signals")
        self._pace = Pace(self._signals)
        self._cores = Cores(self.plan, self._signals, log)
        self._answers: Answers = Answers() if former is None else former._answers
        self._drains = drains
        self._begun = checkpoint.spark
        self._query: StreamingQuery | None = None
        self._caches: Host | None = None
        self._retries = Retries()
        self._crashes = Crashes(checkpoint.root)
        self._in_hand = -1
        self._places = Places.of(self.plan)
        self._inputs_wait = WaitingInputs(self._places.input)
        writers = writers_of(self.plan, checkpoint.directory, sys.stdout.buffer, overlay)
        results = store_of(self.plan, checkpoint.directory, afresh=checkpoint.is_new, log=log)
        self.rejections = rejections_of(self.plan, checkpoint.rejected, self._signals, log)
        self._delivery = Delivery(
            writers,
            log,
            self._stopping.is_set,
            on_status=self._on_status,
            on_answers=self._answers.answered,
            on_trouble=self._on_trouble,
            places=self._places,
            results=results,
            window=self.plan.window,
            on_samples=lambda body, at: self.tap.hear(body, at),
            rejections=self.rejections,
            resend=lambda *some: Redelivery(self.plan, self._session, self._stopping).send(*some),
            on_work=self._signals.set_work,
            at_once=lambda: self._signals.tasks() or cores(self.plan.master),
        )
        self._results = results
        self._disk = CheckpointFigures(checkpoint.directory, whole=not checkpoint.is_elsewhere)
        self.batch_meter = BatchMeter(self._signals.extent)
        self._broken: Exception | None = None
        self._newest_told, self._unstarted = False, ""
        self.trouble, self.delivered = NO_TROUBLE, 0
        self.last_delivery: float | None = None if former is None else former.last_delivery
        self.tap: Tap = Tap() if former is None else former.tap
        self.recent: Recent = Recent() if former is None else former.recent
        if former is None:
            more = self._count, self._answers, read_stdin, endpoints
            self._house = make_input_host(self.plan, checkpoint, log, *more)
        else:
            self._house = former._house
            self._source: Replayable = former._source
            # What a drain has said of its shards, that all has ended, is about its own only.
            same = drains is None and former._drains is None and former._begun == self._begun
            self._delivery.go_on(former._delivery, same)
        # What listens or writes goes with the stream; inputs may outlive it.
        self._own = self._house.branch("", self._house.directory)
        if results is not None:
            self._own.room.on_stop(results.close)
        try:
            if former is None:
                progress.connect(self.plan.input)
                self._source = self._open_source()
            else:
                self._bind(self._house.remembered)
                self._house.save = self._bind
            look_at_outputs(self.plan, self._log, checkpoint.identity, progress.connect)
            open_writers(writers, self._own.room)
            self._ear = Ear(self._on_live, self.batch_meter.report, local=self._house.local)
        except BaseException:
            # Other streams of the process go on, and so would what this one has begun.
            self._own.stop()
            if former is None:
                self._house.stop()
            raise
        self.plan = replace(self.plan, live=self._ear.address, wait_budget=WAIT_BUDGET_NS)
        self._ours, kafka = apart(self._source)
        hears = self._signals, self._gauge, self._count, self.batch_meter.messages, log
        begins, at = checkpoint.kafka_begins_at, checkpoint.spark
        self._kafka = KafkaSide(kafka, self.plan, at, *hears, begins) if kafka else None

    def _open_source(self) -> Replayable:
        source: Any = self.plan.context().build(self.plan.input)
        house = self._house
        found = open_checked(self._checkpoint, source, house.room(), self._log)
        say_what_stays(self._checkpoint, self.plan, self._log)
        self._bind(house.remembered)
        house.save = self._bind
        return found

    def _bind(self, remembered: Mapping[str, Any]) -> None:
        self._checkpoint.bind(self.plan.fingerprint, remembered)

    def _count(self, name: str, by: int = 1, **labels: str) -> None:
        self.meters.count(name, {**self._places.input, **labels}, by)

    def _gauge(self, name: str, labels: Mapping[str, str], value: float | None) -> None:
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
        self._pace.tell()
        self._cores.tell(session, begins=True)
        self._newest_told = False
        self.meters.count("input_connection_up", self._places.input)
        stopping = self._stopping.is_set
        self.rejections.resend = lambda some: replay_in_worker(session, self.plan, some, stopping)
        try:
            self._checkpoint.forget_unplanned()
            self._query = self._begun_query(session)
        except (Py4JError, PySparkException, OSError) as e:
            raise NotStartedError(self._trouble(str(e)).text, str(e)) from e

    def _begun_query(self, session: SparkSession) -> StreamingQuery:
        kafka = self._kafka
        source_plan = SourcePlan(
            source=self._ours if self._drains is None else self._drains.of(self._ours),
            window=self.plan.window,
            start_id=uuid.uuid4().hex[:12],
            signals=self._signals,
            limit=Limit(size=self.plan.limit_bytes),
            interval=self.plan.interval,
            pieces=cores(self.plan.master),
            folding=self.plan.folding.identity,
            begins_at=self._checkpoint.begins_at,
            kafka=kafka.children if kafka else (),
            limits=self.plan.limits,
            tells_lag=kafka is not None and kafka.wanted.wants("kafka_lag"),
        )
        beside = kafka.frames(session, self.plan) if kafka else []
        at = self._checkpoint.spark
        bring_seed(session, self._checkpoint)
        return begin(session, self.plan, self._ours, source_plan, beside, at, self._deliver)

    def _deliver(self, batch: DataFrame, number: int) -> None:
        began = time.monotonic()
        self._checkpoint.wait_held(self._stopping.is_set)
        at = self._checkpoint.batch(number)
        self.batch_meter.begin(at)
        if self._kafka is not None:
            self._kafka.plans(batch, number)
        self._in_hand = at
        crashes = self._crashes.order(at).text()
        tell(batch, self._checkpoint.identity, at, self.tap.most, crashes)
        table = batch.toArrow()
        frames = [Frame(*row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]
        if self._kafka is not None:
            self._kafka.delivered()
        try:
            self._delivery.deliver(at, frames, began)
            self.trouble = NO_TROUBLE
            self.delivered += 1
            self.last_delivery = round(time.time(), 3)
            self._cores.tell(batch.sparkSession)
            HANDLES.let_go(time.monotonic())
        except (BrokenPipeError, DeliveryStoppedError) as e:
            self._broken = e
            raise
        finally:
            self.batch_meter.end()

    def _on_live(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        """Hear what a task waits for; it is over when a micro-batch is delivered."""
        self._on_trouble(text, fields)
        self._log(level, text, fields)

    def _on_trouble(self, text: str, place: Labels) -> None:
        self.trouble = Trouble(text, {name: place[name] for name in place if name in _PLACE})

    def _on_status(self, statuses: Mapping[int, Mapping[str, Any]]) -> None:
        self.recent.hear(self._delivery.batch, statuses.values(), self.meters.counts.get(LAG))
        self._signals.set_due(self.snapshot().next_close)
        if not self._newest_told and len(statuses) >= self.plan.shards:
            self._signals.set_newest(newest_end([*statuses.values()]))
            self._newest_told = True

    def snapshot(self) -> Snapshot:
        """Return what the stream is doing, as of its newest micro-batch."""
        delivery = self._delivery
        return Snapshot.of(self.statuses(), dict(delivery.meters.counts), delivery.batch)

    def statuses(self) -> list[Mapping[str, Any]]:
        """Return the newest status of each shard."""
        return list(self._delivery.statuses.values())

    @property
    def backlog(self) -> int:
        """How many messages wait at the input."""
        return self._signals.backlog()

    def gauges(self) -> dict[str, float]:
        """Return what is measured when it is asked for: what is kept on the disk."""
        return gauges_of(self._results) | self._disk.gauges()

    @property
    def meters(self) -> Meters:
        """What was counted and timed since the start."""
        return self._delivery.meters

    def trace_by(self, trace: Callable[[BatchTrace], None] | None) -> None:
        """Say who hears of each micro-batch what was done in it and when."""
        self._delivery.trace = trace

    def pace(self, seconds: float, patience: float = 0.0) -> None:
        """Say how often there are looks and micro-batches, where many streams share a machine.

        Args:
            seconds: how long the source rests between two looks that find nothing; 0 for not at
                all. A window that is due ends a rest.
            patience: how long data waits at least, s; windows close on time all the same, and
                whoever waits for an answer gets it as soon as ever.
        """
        self._pace.set(seconds, 0.0 if self.answers else patience)

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
        self._checkpoint.look_held()
        self.rejections.tick()
        try:
            active = self._query.isActive
        except (Py4JError, OSError) as e:
            raise StreamerError(
                "Spark's JVM ended unexpectedly (killed, or out of memory: spark.conf."
                "spark.driver.memory sets its heap); start again to go on from the checkpoint"
            ) from e
        if self._unstarted:
            self._recover(self._unstarted)
            return False
        if not active:
            if isinstance(self._broken, BrokenPipeError):
                raise self._broken
            self._recover(str(self._query.exception() or "Spark ended the query"))
            return False
        if self._kafka is not None:
            self.trouble = self._kafka.look(self.trouble, self._places.input, self.abandon)
        self.trouble = self._inputs_wait.look(self.trouble, self._house.waiting)
        ended = has_ended(self.plan, self.statuses())
        return ended and self.rejections.is_over_at_the_end(str(self._checkpoint))

    @property
    def outage(self) -> bool:
        """Whether the input's server does not answer, so that nobody knows what waits there."""
        return bool(self._kafka and self._kafka.outage)

    def finish(self) -> None:
        """After the end of a bounded input, when all is written: the next start begins anew."""
        self._ear.close()
        self._house.stop()
        self._source.finished()
        self._checkpoint.finish()

    def stop(self, timeout: float) -> bool:
        """Let the micro-batch in hand finish, then stop; open windows stay in the checkpoint.

        Args:
            timeout: seconds to wait for it; then it is abandoned, and replays at the next start.

        Returns:
            Whether it finished in time.
        """
        self._house.stop()
        return self._stop_query(timeout)

    def retire(self, timeout: float) -> None:
        """Let the micro-batch in hand finish, then stop, but keep the input open for a successor.

        Args:
            timeout: seconds to wait for it; then it is abandoned, and the successor replays it.
        """
        if not self._stop_query(timeout):
            self.abandon()

    def let_go(self, timeout: float) -> None:
        """After `stop`: wait until nobody writes any more to what the input keeps on disk.

        Whoever opens the input anew would otherwise write to the same files.

        Args:
            timeout: seconds to wait.

        Raises:
            StreamerError: somebody still does.
        """
        if not self._house.left(timeout):
            raise StreamerError("the input does not close, so it cannot be opened anew")

    @property
    def failures(self) -> int:
        """How often the micro-batch in hand has failed."""
        return self._retries.of(self._delivery.batch)

    @property
    def rejected_alone(self) -> tuple[int, str]:
        """How many micro-batches were rejected while nothing was taken, and why."""
        return self._delivery.rejected_alone, self._delivery.rejected_for

    @property
    def answers(self) -> bool:
        """Whether the input holds requests open until they are answered."""
        return self._house.answers is not None

    def _stop_query(self, timeout: float) -> bool:
        self._stopping.set()
        self.rejections.close()
        self._own.stop()
        self._ear.close()
        self._signals.stop()
        try:
            if self._query is not None and not end(self._query, timeout):
                return False
        except (Py4JError, OSError):
            return False
        finally:
            if self._session is not None:
                end_monitors(self._session)
            if self._kafka is not None:
                self._kafka.close()
            if self._caches is not None:
                self._caches.close()
            self.plan.forget()
        return not self.is_undelivered

    @property
    def is_undelivered(self) -> bool:
        """Whether it was stopped while an output did not take the micro-batch in hand."""
        return isinstance(self._broken, DeliveryStoppedError)

    def abandon(self) -> None:
        """Stop in the middle of a micro-batch, which replays at the next start."""
        try:
            if self._query is not None:
                self._query.stop()
        except (Py4JError, OSError) as e:
            self._log("WARN", f"The query was left behind: {said(str(e))}", {})

    def _trouble(self, error: str) -> Trouble:
        """Return why a micro-batch has failed."""
        return trouble_at(error, self._places, self._checkpoint.root, self._checkpoint.spark)

    def _recover(self, error: str) -> None:
        self.batch_meter.end()
        # A broker that was away says nothing about the micro-batch.
        excused = self._kafka is not None and self._kafka.recovers(error, self._stopping)
        self.trouble = trouble = self._trouble(error)
        excused = self._crashes.look(self._in_hand, error, trouble, self._log) or excused
        retries = self._retries
        retries.failed(self._delivery.batch, excused, trouble.lasts, trouble.overloaded)
        self.meters.count("batch_failed", {})
        self.meters.count("input_connection_lost", self._places.input)
        # All that Spark says, traces and all, is for who looks for a fault in the program.
        self._log("DEBUG", error, {"micro_batch": self._delivery.batch + 1})
        reason = trouble.text + (f" (at {trouble.place['path']})" if trouble.place else "")
        if retries.exhausted or self._stopping.is_set():
            text = f"the stream failed {retries.failures} times at the same micro-batch: {reason}"
            raise as_passing(StreamerError(text), excused or trouble.passing)
        pause = retries.pause
        text = f"The micro-batch failed: {trouble.text}; trying again in {pause:g} s"
        self._log("ERROR", text, {**trouble.place, "micro_batch": self._delivery.batch + 1})
        if not self._stopping.wait(pause):
            assert self._session is not None
            try:
                self.start(self._session)
                self._unstarted = ""
            except NotStartedError as e:
                # What starts the query can be killed as well: it is one more failure.
                self._unstarted = e.said
