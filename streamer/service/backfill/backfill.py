"""A backfill from its plan to its end: it goes on where it was stopped or killed."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.engine.driver.input_host import InputHost
from streamer.engine.driver.output_preflight import preflight_outputs
from streamer.engine.planner.kafka_inputs import split_kafka_inputs
from streamer.plan import Plan
from streamer.sdk.input.input_context import open_input
from streamer.sdk.input.replayable import Limit, ReplayableSource
from streamer.service.backfill.division import Division, check_backfill, choose_division
from streamer.service.backfill.estimate import CostEstimate, TrialFacts, estimate_cost, try_segment
from streamer.service.backfill.hand_over import open_target, write_checkpoint
from streamer.service.backfill.scan import BackfillJob, scan_segment
from streamer.service.backfill.segments import Segment, SegmentPlan, plan_segments
from streamer.service.backfill.sending import ResultSender
from streamer.service.backfill.tasks import Bounds, SegmentClocks, make_tasks
from streamer.service.backfill.window_run import WindowTask, run_window_task
from streamer.service.backfill.work_files import (
    SegmentFacts,
    TaskFacts,
    WorkDirectory,
    read_facts,
)
from streamer.service.backfill.worker_pool import InlinePool, WorkerPool, make_pool

_RECORD: Final = "backfill.json"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class BackfillOptions:
    """The way of a backfill.

    Attributes:
        bounds: which windows it gives.
        processes: how many processes run at once.
        ranges: how many ranges of the input there are at most.
        micro_batch: messages of a segment, about.
        hand_over: the checkpoint of the live stream behind it; empty for none.
    """

    bounds: Bounds
    processes: int
    ranges: int
    micro_batch: int
    hand_over: str = ""


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a step: segments or tasks, each with its number and a file of results.

    Attributes:
        step: see `BackfillProgress`.
        run: run for each part by a process of the pool.
        items: the parts, in the order of their results.
        merges: whether the results of all are sent together, in the order of micro-batches.
    """

    step: str
    run: Callable[[BackfillJob, Any], object]
    items: Sequence[Segment] | Sequence[WindowTask]
    merges: bool


@dataclass(frozen=True, slots=True)
class BackfillProgress:
    """Progress of a backfill.

    Attributes:
        step: `scan`, `windows` or `done`.
        done: segments, or tasks, that are finished.
        total: how many there are.
        sent: messages that the outputs have got.
    """

    step: str
    done: int
    total: int
    sent: int = 0


@dataclass(frozen=True, slots=True)
class BackfillOutcome:
    """The outcome of a backfill.

    Attributes:
        is_complete: whether it has come to its end; else it was stopped.
        segments: how many segments were read.
        tasks: how many tasks stage 2 had.
        windows: windows emitted, over all runs of it.
        messages: messages that the outputs got in this run.
        dropped: messages that windows dropped, by reason.
        held: messages in windows that are open at the hand-over.
        seconds: how long this run took.
    """

    is_complete: bool
    segments: int = 0
    tasks: int = 0
    windows: int = 0
    messages: int = 0
    dropped: Mapping[str, int] | None = None
    held: int = 0
    seconds: float = 0.0


class Backfill:
    """A backfill of one stream. The steps are taken in order: opened, estimated, run, closed.

    Attributes:
        plan: the stream's plan.
        division: how its windows are divided.
        is_resumed: whether it was begun before.
        is_over: whether nothing of its directory is needed any more.
    """

    def __init__(
        self,
        plan: Plan,
        directory: Path,
        options: BackfillOptions,
        identity: str,
        log: LogLine,
    ) -> None:
        """Make ready.

        Args:
            plan: the stream's plan.
            directory: where the work is kept until it is done.
            options: the way of it.
            identity: changes with the config; a directory serves one.
            log: takes log lines.

        Raises:
            StreamerError: this stream cannot be run as a batch.
        """
        check_backfill(plan, options.bounds.from_time, options.bounds.to_time)
        self.plan, self._options, self._log = plan, options, log
        self.division: Division = choose_division(plan)
        self._identity = identity
        self._closing = ExitStack()
        self.work = WorkDirectory(directory)
        self.is_resumed = self.is_over = False

    def open(self) -> None:
        """Take the directory, open the input, check the outputs, and plan the segments.

        Raises:
            StreamerError: that cannot be; the text says why.
        """
        # Imported here: the lock is where the checkpoint's is.
        from streamer.spark.checkpoint.checkpoint import lock_directory

        options = self._options
        lock = lock_directory(self.work.root, 0.0, f"of the backfill {self.work.root}")
        self._closing.callback(lock.close)
        self._target = None
        self.work.make_directories()
        record = self._read_record()
        if options.hand_over and not record.get("handed_over"):
            self._target = open_target(options.hand_over)
            self._closing.callback(self._target.close)
        self.is_resumed = "segments" in record
        self._record = record or {"format": _FORMAT, "config": self._identity}
        self._record.setdefault("name", uuid.uuid4().hex[:16])
        preflight_outputs(self.plan, self._log, self._record["name"])
        source = self._open_input()
        if not self.is_resumed:
            limit = Limit(options.micro_batch, self.plan.limit_bytes)
            planned = plan_segments(source, source.initial_offset(), limit)
            self._record["segments"] = planned.to_fields()
            self._record["inputs"] = self._host.remembered
            self.work.write_json(_RECORD, self._record)
        self._segments = SegmentPlan.from_fields(self._record["segments"])
        bounds = options.bounds
        self._job = BackfillJob(
            *(self.plan, source, self.work, self._segments.batch_time),
            *(self.division.follows_events, bounds.from_time),
            None if bounds.hands_over else bounds.to_time,
        )
        caches = self.plan.host_caches()
        if caches is not None:
            self._closing.callback(caches.close)

    def _read_record(self) -> dict[str, Any]:
        record = self.work.read_json(_RECORD) or {}
        if record and (record.get("format"), record.get("config")) != (_FORMAT, self._identity):
            raise StreamerError(
                f"{self.work.root} has a backfill that was begun with another config, other bounds "
                "or another version: finish it with those, or add --afresh to begin anew"
            )
        return record

    def _open_input(self) -> ReplayableSource:
        host = self._host = InputHost(
            self.work.root / "spool",
            self._record.get("inputs", {}),
            self._log,
            lambda name, by=1, **labels: None,
            threading.Event(),
        )
        host.limits, host.spool_limit = self.plan.limits, 1 << 62
        self._closing.callback(host.stop)
        built: Any = self.plan.context().build(self.plan.input)
        opened = open_input(built, host.root_context())
        source, kafka_inputs = split_kafka_inputs(opened)
        if not kafka_inputs:
            return source
        # Imported here: it needs a client of Kafka.
        from streamer.service.backfill.kafka_bounds import prepare_kafka

        since = self._options.bounds.from_time
        # Where windows may begin at any time, all of the past may matter.
        reads_since = since is not None and self.division.kind == "ranges"
        return prepare_kafka(
            self.plan, source, since - self.division.reach if reads_since and since else None
        )

    def estimate(self) -> CostEstimate | None:
        """Measure the first segment, and return what all of them cost; None without any.

        Raises:
            StreamerError: it cannot be read.
        """
        plan, segments = self._segments, self._segments.segments
        if not segments:
            return None
        trial = self._record.get("trial")
        if trial is None:
            pool = make_pool(self._job, 1)
            try:
                ((_, facts),) = pool.run(try_segment, segments[:1])
            finally:
                pool.close()
            trial = [facts.segment.messages, facts.segment.seconds, facts.segment.size]
            trial.append(facts.window_seconds)
            self._record["trial"] = trial
            self.work.write_json(_RECORD, self._record)
        messages, seconds, size, window_seconds = trial
        facts = TrialFacts(SegmentFacts(None, messages, seconds, size), window_seconds)
        return estimate_cost(
            self.plan, facts, plan.messages, len(segments), self._options.processes
        )

    def run(
        self,
        stdout: BinaryIO,
        on_progress: Callable[[BackfillProgress], None],
        should_stop: Callable[[], bool],
    ) -> BackfillOutcome:
        """Run what is left to the end.

        Args:
            stdout: the standard output.
            on_progress: hears of each step.
            should_stop: finish what is in hand, and stop.

        Raises:
            StreamerError: it cannot go on; what is finished is kept.
        """
        began = time.monotonic()
        name = self._record["name"]
        sender = ResultSender(self.plan, self.work, name, self._log, stdout, should_stop)
        sender.open(self._host)
        # What one process keeps in its memory, the next one would not see.
        processes = 1 if self.division.kind == "whole" else self._options.processes
        pool = make_pool(self._job, processes)
        try:
            if self.plan.window is None:
                tasks = self._run_directly(pool, sender, on_progress, should_stop)
            else:
                tasks = self._run_windows(pool, sender, on_progress, should_stop)
        finally:
            pool.close()
        if tasks is None:
            return BackfillOutcome(False, messages=sender.messages)
        facts = [self._facts(one) for one in tasks]
        self._hand_over(tasks)
        self.is_over = True
        on_progress(BackfillProgress("done", len(tasks), len(tasks), sender.messages))
        dropped: dict[str, int] = {}
        for one in facts:
            for reason, number in one.dropped.items():
                dropped[reason] = dropped.get(reason, 0) + number
        held = sum(one.held for one, task in zip(facts, tasks, strict=True) if task.keeps_state)
        return BackfillOutcome(
            is_complete=True,
            segments=tasks[-1].end if tasks else 0,
            tasks=len(tasks),
            windows=sum(one.windows for one in facts),
            messages=sender.messages,
            dropped=dropped,
            held=held,
            seconds=time.monotonic() - began,
        )

    def _facts(self, task: WindowTask) -> TaskFacts:
        facts: TaskFacts = read_facts(self.work.results_path(task.number))
        return facts

    def _run_directly(
        self,
        pool: WorkerPool | InlinePool,
        sender: ResultSender,
        on_progress: Callable[[BackfillProgress], None],
        should_stop: Callable[[], bool],
    ) -> list[WindowTask] | None:
        """Run a stream without windows; return its segments as tasks, None when it was stopped."""
        segments = self._segments.segments
        parts = _Parts("scan", scan_segment, segments, merges=False)
        if not self._run_parts(parts, pool, sender, on_progress, should_stop):
            return None
        return [WindowTask(one.number, one.number, one.number, one.number + 1) for one in segments]

    def _run_windows(
        self,
        pool: WorkerPool | InlinePool,
        sender: ResultSender,
        on_progress: Callable[[BackfillProgress], None],
        should_stop: Callable[[], bool],
    ) -> list[WindowTask] | None:
        facts = self._scan(pool, on_progress, should_stop)
        if facts is None:
            return None
        plan, options = self._segments, self._options
        is_ended = plan.is_ended and len(facts) == len(plan.segments)
        tasks = make_tasks(
            *(self.plan, self.division, SegmentClocks.of([one.clock for one in facts])),
            *(options.bounds, options.ranges, is_ended),
        )
        merges = self.division.kind == "keys"
        parts = _Parts("windows", run_window_task, tasks, merges)
        is_complete = self._run_parts(parts, pool, sender, on_progress, should_stop)
        return tasks if is_complete else None

    def _run_parts(
        self,
        parts: _Parts,
        pool: WorkerPool | InlinePool,
        sender: ResultSender,
        on_progress: Callable[[BackfillProgress], None],
        should_stop: Callable[[], bool],
    ) -> bool:
        """Run the parts that are left, and send their results in order; return whether all ran."""
        items, results = parts.items, self.work.results_path
        left = [one for one in items if not results(one.number).exists()]
        finished = {one.number for one in items} - {one.number for one in left}
        next_sent = 0

        def send() -> None:
            nonlocal next_sent
            if parts.merges:
                if len(finished) == len(items) and items:
                    sender.send_tasks([results(one.number) for one in items])
            else:
                while next_sent in finished:
                    sender.send_tasks([results(next_sent)])
                    next_sent += 1
            on_progress(BackfillProgress(parts.step, len(finished), len(items), sender.messages))

        send()
        for part, _ in pool.run(parts.run, left, should_stop):
            finished.add(part.number)
            send()
        return len(finished) == len(items)

    def _scan(
        self,
        pool: WorkerPool | InlinePool,
        on_progress: Callable[[BackfillProgress], None],
        should_stop: Callable[[], bool],
    ) -> list[SegmentFacts] | None:
        """Pack segments, from the first on, as far as they are needed; None when it was stopped."""
        segments, last = self._segments.segments, self._options.bounds.last_clock(self.plan)
        facts: dict[int, SegmentFacts] = {}

        def count_needed() -> int | None:
            """Return how many segments are needed, as soon as that is known."""
            clock: int | None = None
            for number in range(len(segments)):
                if number not in facts:
                    return None
                at = facts[number].clock
                clock = at if clock is None else max(clock, at if at is not None else clock)
                if last is not None and clock is not None and clock > last:
                    return number + 1
            return len(segments)

        def has_enough() -> bool:
            return should_stop() or count_needed() is not None

        for one in segments:
            path = self.work.packs_path(one.number)
            if path.exists():
                facts[one.number] = read_facts(path)
        left = [one for one in segments if one.number not in facts]
        on_progress(BackfillProgress("scan", len(facts), len(segments)))
        for segment, done in pool.run(scan_segment, left, has_enough):
            facts[segment.number] = done
            on_progress(BackfillProgress("scan", len(facts), len(segments)))
        needed = count_needed()
        return None if needed is None else [facts[number] for number in range(needed)]

    def _hand_over(self, tasks: list[WindowTask]) -> None:
        """Write the checkpoint of the live stream, once."""
        if self._target is None:
            return
        end = tasks[-1].end if tasks else 0
        states = [
            self.work.state_path(one.number)
            for one in tasks
            if one.keeps_state and self.plan.window is not None
        ]
        write_checkpoint(
            *(self._target, self.plan, self._segments.offsets[end], self._segments.batch_time),
            *(states, self._record["inputs"]),
        )
        self._record["handed_over"] = self._options.hand_over
        self.work.write_json(_RECORD, self._record)

    def close(self) -> None:
        """Close all that was opened, and remove the directory when the backfill is over."""
        if self.is_over:
            remove_work(self.work.root)
        self._closing.close()


def identify(plan: Plan, text: str, options: BackfillOptions) -> str:
    """Return a text that changes with what a backfill gives: config, bounds, segments, ranges.

    Args:
        plan: the stream's plan.
        text: of the config's file.
        options: the way of the backfill.
    """
    parts = [
        json.dumps(plan.fingerprint, sort_keys=True, default=str),
        text,
        repr((options.bounds, options.ranges, options.micro_batch, options.hand_over)),
        repr((plan.output.name, plan.shards)),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def remove_work(directory: Path) -> None:
    """Remove what a backfill has kept, for one that begins anew."""
    shutil.rmtree(directory, ignore_errors=True)
