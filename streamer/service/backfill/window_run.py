"""Stage 2 of a backfill: one task takes a run of segments through some shards of the windows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from streamer.core.execution import Execution
from streamer.engine.driver.shard_state_file import (
    ShardStateFile,
    shard_state_path,
    write_shard_count,
)
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.engine.stage.output_stage import Stage
from streamer.engine.stage.pack_stage import make_clock_rows
from streamer.engine.stage.shard_stage import ShardStage, ShardStages
from streamer.engine.stage.task_input import TaskPlan
from streamer.engine.stage.window_pipeline import WindowPipeline
from streamer.plan import Plan
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.service.backfill.capture import (
    OwnedPipeline,
    OwnedWindows,
    ResultRecorder,
    read_log_lines,
)
from streamer.service.backfill.scan import BackfillJob
from streamer.service.backfill.work_files import (
    BatchResults,
    Result,
    SegmentBatch,
    SegmentFacts,
    TaskFacts,
    read_facts,
    read_items,
    write_items,
)
from streamer.window import DictStore, MicroBatchInfo, RowKind, ShuffleRow

_START_ID: Final = "backfill"
_MAX_END_TICKS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class WindowTask:
    """A task of stage 2.

    Attributes:
        number: its place among the tasks.
        lead_in: the first segment that it reads.
        first: the first segment of its own.
        end: the segment behind its last one.
        shards: the shards that it has; all of them when it is empty.
        clock: the clock before `lead_in`, ns; None at the beginning of the input.
        ends_input: whether the input ends with its last segment.
        keeps_state: whether the state at its end is written down, and windows stay open there.
    """

    number: int
    lead_in: int
    first: int
    end: int
    shards: tuple[int, ...] = ()
    clock: int | None = None
    ends_input: bool = False
    keeps_state: bool = False


def run_window_task(job: BackfillJob, task: WindowTask) -> TaskFacts:
    """Run a task, and write its results, and its state where that is handed over.

    Raises:
        StreamerError: a file of segments cannot be read.
    """
    began = time.process_time()
    run = _WindowRun(job, task)

    def facts() -> TaskFacts:
        return run.facts(time.process_time() - began)

    write_items(job.work.results_path(task.number), facts, run.results())
    return facts()


class _WindowRun:
    """The micro-batches of one task."""

    def __init__(self, job: BackfillJob, task: WindowTask) -> None:
        self._job, self._task = job, task
        plan = self._plan = _with_captured_outputs(job.plan)
        self._shards = task.shards or tuple(_order_shards(plan))
        self._stores = {shard: DictStore() for shard in self._shards}
        self._owned = OwnedWindows(job.from_time, job.to_time)
        self._task_plan = TaskPlan.of(plan)
        self._now = job.batch_time if not job.follows_events else 0
        self._statuses: dict[int, dict[str, Any]] = {}
        self._before: dict[str, int] = {}

    def facts(self, seconds: float) -> TaskFacts:
        """Return what the task has done in so many seconds of CPU."""
        dropped = self._count_dropped()
        own = {reason: n - self._before.get(reason, 0) for reason, n in dropped.items()}
        held = sum(status["held"] for status in self._statuses.values())
        owned = self._owned
        return TaskFacts(owned.windows, owned.messages, _positive(own), seconds, held)

    def results(self) -> Iterator[BatchResults]:
        """Run all micro-batches; give what those of the task's own range emit."""
        task, owned = self._task, self._owned
        if task.clock is not None:
            owned.is_own = False
            # On the wall, the instant of the clock is not over: see `scan`.
            wall = task.clock - 1
            self._run_batch(self._begin_rows(task.clock), SegmentFacts(None, 0, 0.0), wall)
        for number in range(task.lead_in, task.end):
            owned.is_own = number >= task.first
            if number == task.first:
                self._before = self._count_dropped()
            yield from self._run_segment(number)
        if task.ends_input and self._job.follows_events and not task.keeps_state:
            yield from self._run_end()
        if task.keeps_state:
            self._write_state()

    def _begin_rows(self, clock: int) -> list[ShuffleRow]:
        """Return the rows that set the clock of windows by event time."""
        if self._job.follows_events:
            return []
        return [ShuffleRow(shard, RowKind.PIECE, clock, 0, b"") for shard in self._shards]

    def _run_segment(self, number: int) -> Iterator[BatchResults]:
        path = self._job.work.packs_path(number)
        facts = read_facts(path)
        parts: Iterator[SegmentBatch] = read_items(path)
        batch = next(parts)
        for following in parts:
            yield from self._emit(number, batch, facts)
            batch = following
        is_last = self._task.ends_input and number == self._task.end - 1
        yield from self._emit(number, batch, facts, is_last and not self._task.keeps_state)

    def _emit(
        self, number: int, batch: SegmentBatch, facts: SegmentFacts, ended: bool = False
    ) -> Iterator[BatchResults]:
        results, log = self._run_batch(batch.rows, facts, batch.time, ended)
        if self._owned.is_own and (results or log):
            yield BatchResults(number, results, log)

    def _run_end(self) -> Iterator[BatchResults]:
        """Close the windows that wait for their ends when the input has ended."""
        number, none = self._task.end - 1, SegmentFacts(None, 0, 0.0)
        for _ in range(_MAX_END_TICKS):
            due = [one["next_due"] for one in self._statuses.values()]
            waiting = [at for at in due if at is not None and at > self._now]
            if not waiting or not any(one["held"] for one in self._statuses.values()):
                return
            yield from self._emit(number, SegmentBatch(min(waiting), []), none, ended=True)

    def _run_batch(
        self,
        rows: Sequence[ShuffleRow],
        facts: SegmentFacts,
        clock: int | None,
        ended: bool = False,
    ) -> tuple[list[Result], list[tuple[str, str, dict[str, Any]]]]:
        """Run a micro-batch; return what it emits, and what is to be logged."""
        job, plan = self._job, self._plan
        if job.follows_events and clock is not None:
            self._now = max(self._now, clock)
        info = MicroBatchInfo(self._now, _START_ID, backlog=not job.follows_events, ended=ended)
        by_shard: dict[int, list[ShuffleRow]] = {shard: [] for shard in self._shards}
        for row in (*make_clock_rows(plan, info, facts.sources or None), *rows):
            if row.shard in by_shard:
                by_shard[row.shard].append(row)
        results: list[Result] = []
        log: list[tuple[str, str, dict[str, Any]]] = []
        for shard in self._shards:
            recorders = self._make_recorders(shard)
            for made in self._frames(shard, by_shard[shard], recorders):
                if isinstance(made, ShuffleRow):
                    by_shard[made.shard].append(made)
                elif made.kind == FrameKind.STATUS:
                    self._statuses[shard] = orjson.loads(made.body)
                else:
                    log += read_log_lines(made)
            for recorder in recorders:
                results += recorder.take()
        return sorted(results, key=lambda result: result.order), log

    def _make_recorders(self, shard: int) -> list[ResultRecorder]:
        outputs = range(len(self._plan.outputs))
        return [ResultRecorder(shard, number) for number in outputs]

    def _frames(
        self, shard: int, rows: list[ShuffleRow], recorders: Sequence[Stage]
    ) -> Iterator[Frame | ShuffleRow]:
        store, now = self._stores[shard], time.time_ns
        if not self._plan.buffers:
            stage = _OwnedShardStage(self._task_plan, recorders, now)
            stage.owned = self._owned
            return stage.frames(shard, rows, store)
        number = shard // max(self._plan.shards, 1)
        own = self._task_plan.of_buffer(number).plan.own_output_numbers
        mine = [recorders[at] if at >= 0 else _NO_OUTPUT for at in own]
        outputs: list[Sequence[Stage]] = [[] for _ in self._plan.buffers]
        outputs[number] = mine
        return ShardStages(self._task_plan, outputs, now).frames(shard, rows, store)

    def _count_dropped(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for status in self._statuses.values():
            for reason, number in status["counters"]["dropped"].items():
                counts[reason] = counts.get(reason, 0) + number
        return counts

    def _write_state(self) -> None:
        """Write the state of the shards, as the shards of a stream begin with it."""
        directory = self._job.work.state_path(self._task.number)
        directory.mkdir(exist_ok=True, mode=0o700)
        for old in directory.iterdir():
            old.unlink()
        with ExitStack() as files:
            for shard, store in self._stores.items():
                path = shard_state_path(directory, shard)
                file = files.enter_context(ShardStateFile(path, new=True))
                for (pane, seq), value in store.values.items():
                    file.put(pane, seq, value)
        write_shard_count(directory, self._plan.shard_count)


class _OwnedShardStage(ShardStage):
    """Stage 2 of a shard, which passes on what its task owns.

    Attributes:
        owned: says what that is.
    """

    owned: OwnedWindows

    def _make_pipeline(self, outputs: Sequence[Stage], ex: Execution, keys: Any) -> WindowPipeline:
        plan = self._task_plan.plan
        processors = plan.context().build_all(plan.processors)
        return OwnedPipeline(plan, processors, outputs, ex, self.owned, keys)


class _NoOutput:
    """Takes the place of an output that a buffer does not have."""

    def payloads(self, batches: Any, order: int, ex: Execution) -> Iterator[Any]:
        """Take all, so that other buffers get it, and keep nothing."""
        for _ in batches:
            pass
        yield from ()

    def finish(self) -> None:
        """Nothing is left to do."""


_NO_OUTPUT: Final = _NoOutput()


def _with_captured_outputs(plan: Plan) -> Plan:
    """Return a plan whose windows are sorted by their ends, wherever its results go.

    What is kept for queries is left out: a backfill writes to outputs.
    """
    bare = ParsedComponent(Kind.OUTPUT, "stdout")
    if plan.buffers:
        return plan
    late = None if plan.late_output is None else replace(bare, path="late_output")
    return replace(plan, output=replace(bare, path="output"), late_output=late)


def _order_shards(plan: Plan) -> list[int]:
    """Return all shards, in the order in which rows go through them."""
    if not plan.buffers:
        return [*range(plan.shards)]
    levels = sorted(range(len(plan.buffers)), key=lambda number: plan.buffers[number].level)
    return [number * plan.shards + shard for number in levels for shard in range(plan.shards)]


def _positive(counts: dict[str, int]) -> dict[str, int]:
    return {name: number for name, number in counts.items() if number > 0}
