"""Stage 2: a shard keeps what came in, and what is due runs through the pipeline at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from streamer.bloblang import compile_mapping
from streamer.core.durations import MILLISECOND, SECOND
from streamer.core.execution import Execution, MicroBatch
from streamer.core.timestamps import format_rfc3339
from streamer.engine.report.batch_work import split_work
from streamer.engine.report.component_errors import attribute_errors, attribute_iteration_errors
from streamer.engine.report.result_frame import Frame, FrameKind, Payload, TaskReport, make_frames
from streamer.engine.report.running_clock import RunningClock, Stopwatch
from streamer.engine.report.status_json import encode_status
from streamer.engine.stage.crash_search import make_crash_search
from streamer.engine.stage.output_stage import OutputStage, Stage
from streamer.engine.stage.pack_stage import REPORT_ROWS
from streamer.engine.stage.result_rows import ResultRows
from streamer.engine.stage.task_input import TaskPlan
from streamer.engine.stage.window_answers import report_windows
from streamer.engine.stage.window_pipeline import WindowPipeline
from streamer.plan.buffer_chain import find_readers, find_system_due, keeps_at_end
from streamer.sdk.component_ref import ComponentRef
from streamer.window import (
    Emission,
    MicroBatchInfo,
    RowKind,
    Shard,
    ShuffleRow,
    StateStore,
    Status,
)

if TYPE_CHECKING:
    from streamer.engine.stage.keyed_routes import EmissionKeys
    from streamer.window.state.keyed_values import KeyedValues

_LARGE_BYTES = 256 << 20
"""A quarter of the heap that Spark's JVM has by default."""

_NEXT_POLL_NS: Final = 10 * SECOND

_REPORT_FRAMES = {row: frame for frame, row in REPORT_ROWS.items()}


class ShardStages:
    """Stage 2 of a stream with one buffer or several, as its tasks run it."""

    def __init__(
        self,
        task_plan: TaskPlan,
        outputs: Sequence[Sequence[Stage]] = (),
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        """Take the plan of a stream with windows.

        Args:
            task_plan: the plan.
            outputs: by buffer, what takes the place of its output and of its `late_output`.
            now: the clock of the processors, Unix ns.
        """
        buffers = task_plan.plan.buffers
        self._shards = max(task_plan.plan.shards, 1)
        self._stages: list[ShardStage] = [
            BufferShardStage(task_plan, number, outputs[number] if outputs else (), now)
            for number in range(len(buffers))
        ] or [ShardStage(task_plan, outputs[0] if outputs else (), now)]

    def frames(
        self,
        shard: int,
        rows: Iterable[ShuffleRow],
        store: StateStore,
        micro_batch: MicroBatch | None = None,
    ) -> Iterator[Frame | ShuffleRow]:
        """Take the rows of one micro-batch into a shard; return what comes out of it.

        Args:
            shard: number of the shard, among those of all buffers.
            rows: what the stage before made for it, in any order.
            store: the shard's state.
            micro_batch: which part of which micro-batch this is, where that is known.

        Returns:
            Frames for the driver, and rows for the shards of the buffers that take the results.
        """
        stage = self._stages[shard // self._shards]
        return stage.frames(shard, rows, store, micro_batch)


class ShardStage:
    """Stage 2 of a stream, as its tasks run it: a task has one shard in one micro-batch."""

    def __init__(
        self,
        task_plan: TaskPlan,
        outputs: Sequence[Stage] = (),
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        """Take the plan of a stream with windows.

        Args:
            task_plan: the plan.
            outputs: take the place of the plan's, by the number of the output.
            now: the clock of the processors, Unix ns.
        """
        self._task_plan = task_plan
        self._outputs = outputs
        self._now = now

    def frames(
        self,
        shard: int,
        rows: Iterable[ShuffleRow],
        store: StateStore,
        micro_batch: MicroBatch | None = None,
    ) -> Iterator[Frame | ShuffleRow]:
        """Take the rows of one micro-batch into a shard; return what comes out of it.

        Args:
            shard: number of the shard.
            rows: what stage 1 made for it, in any order.
            store: the shard's state.
            micro_batch: which part of which micro-batch this is, where that is known.
        """
        plan = self._task_plan.plan
        kernel_rows: list[ShuffleRow] = []
        clock_bodies: list[bytes] = []
        for row in rows:
            if row.kind in _REPORT_FRAMES:
                kind = _REPORT_FRAMES[row.kind]
                yield Frame(kind, row.arrival, shard, row.arrival, 0, "", row.body)
                continue
            if row.kind == RowKind.CLOCK:
                clock_bodies.append(row.body)
            kernel_rows.append(row)
        info = MicroBatchInfo.from_rows(clock_bodies)
        rules = self._task_plan.replay_rules()
        task = self._task_plan.begin_report(plan.buffer, self._now, rules)
        ex = task.execution
        ex.micro_batch = micro_batch
        ex.crashes = make_crash_search(f"shard {shard}")
        step = self._make_shard(store, shard).step(kernel_rows)
        assert plan.window is not None
        watch = None if plan.window.expire_delay is None else Stopwatch(RunningClock())
        outputs = self._make_outputs(shard, info, ex)
        values = self._open_keyed_values(store)
        keys = self._make_keys(values, info.batch_time)
        ex.keyed_state = values
        pipeline = self._make_pipeline(outputs, ex, keys)
        with attribute_errors(ComponentRef(plan.output).fields):
            emissions = attribute_iteration_errors(step, ComponentRef(plan.buffer).fields)
            emitted = make_frames(_run_outputs(pipeline, emissions, outputs, watch), shard)
            yield from _warn_of_large_windows(emitted, partial(self._warn, task))
        kept: dict[str, Any] = {}
        if values is not None:
            values.commit()
            kept = {"state_keys": values.key_count, "state_bytes": values.byte_count}
        status = step.status
        for line in status.log:
            ex.log(line.level, line.text, line.fields)
        windows = report_windows(plan.window, store, status, ex)
        body = encode_status({**self._make_status(status, info), **kept, **windows})
        yield Frame(FrameKind.STATUS, 0, shard, 0, 0, "", body)
        yield from self._result_rows(status)
        if watch is not None:
            work = split_work(watch.work, plan.processors, ex).to_json()
            yield Frame(FrameKind.WORK, status.now, shard, 1 << 30, 0, "", work)
        for kind, report in task.frames():
            yield Frame(kind, status.now, shard, 1 << 30, 0, "", report)

    def _make_outputs(self, shard: int, info: MicroBatchInfo, ex: Execution) -> Sequence[Stage]:
        """Return the outputs of a task."""
        plan = self._task_plan.plan
        return self._outputs or [OutputStage(plan, *one) for one in enumerate(plan.outputs)]

    def _make_status(self, status: Status, info: MicroBatchInfo) -> dict[str, Any]:
        """Return the status that the driver gets."""
        return {**status.as_dict(), "ended": info.ended}

    def _result_rows(self, status: Status) -> Iterator[ShuffleRow]:
        """Return the rows that the results become for other buffers."""
        return iter(())

    def _make_shard(self, store: StateStore, shard: int) -> Shard:
        plan = self._task_plan.plan
        assert plan.window is not None
        own = shard % plan.shards  # Of several buffers, shards are numbered on.
        listed = [key for key in plan.window.listed_keys if crc32(key) % plan.shards == own]
        having = compile_mapping(plan.having) if plan.having else None
        return Shard(
            plan.window,
            store,
            plan.late_output is not None,
            having,
            plan.aggregation.text,
            batch_emissions=True,
            listed_keys=listed,
        )

    def _warn(self, task: TaskReport, text: str) -> None:
        task.log_sender.send_now("WARN", text, ComponentRef(self._task_plan.plan.buffer).fields)

    def _open_keyed_values(self, store: StateStore) -> KeyedValues | None:
        state = self._task_plan.plan.keyed_state
        if not state.users:
            return None
        # Imported here: most streams keep no state by key.
        from streamer.window.state.keyed_values import KeyedValues

        return KeyedValues(store, state.ttl)

    def _make_keys(self, values: KeyedValues | None, batch_time: int) -> EmissionKeys | None:
        if values is None:
            return None
        from streamer.engine.stage.keyed_routes import EmissionKeys

        return EmissionKeys(values, batch_time, self._task_plan.plan.key is not None)

    def _make_pipeline(
        self, outputs: Sequence[Stage], ex: Execution, keys: EmissionKeys | None
    ) -> WindowPipeline:
        plan = self._task_plan.plan
        return WindowPipeline(plan, plan.context().build_all(plan.processors), outputs, ex, keys)


class BufferShardStage(ShardStage):
    """The same for one of several buffers: its results may go to others, too."""

    def __init__(
        self,
        stream: TaskPlan,
        number: int,
        outputs: Sequence[Stage] = (),
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        """Take the plan of the stream, and the number of the buffer; see `ShardStages`."""
        super().__init__(stream.of_buffer(number), outputs, now)
        self._stream = stream
        self._number = number
        self._results: ResultRows | None = None

    def _make_outputs(self, shard: int, info: MicroBatchInfo, ex: Execution) -> Sequence[Stage]:
        plan = self._task_plan.plan
        made: list[Stage | None] = [*self._outputs] or [
            OutputStage(plan, number, component) if number >= 0 else None
            for component, number in zip(plan.outputs, plan.own_output_numbers, strict=True)
        ]
        own = shard - self._stream.plan.shards * self._number
        self._results = ResultRows(self._stream, self._number, own, info, ex)
        return [self._results.take_from(made[0]), *(one for one in made[1:] if one is not None)]

    def _make_status(self, status: Status, info: MicroBatchInfo) -> dict[str, Any]:
        stream, number = self._stream.plan, self._number
        due = status.next_due
        if status.due_clock is not None:
            reached = find_system_due(stream, number, status.due_clock)
            if reached is not None:
                # What is due is closed: one that seems to be will be due a little later.
                reached = -(-reached // MILLISECOND) * MILLISECOND
                reached = reached if reached > status.now else status.now + _NEXT_POLL_NS
                due = reached if due is None else min(due, reached)
        return {
            **status.as_dict(),
            "next_due": due,
            "ended": info.input_ended,
            "buffer": stream.buffers[number].label,
            "takes_input": number == find_readers(stream, None)[0],
            "keeps": keeps_at_end(stream, number),
        }

    def _result_rows(self, status: Status) -> Iterator[ShuffleRow]:
        window = self._task_plan.plan.window
        assert window is not None and self._results is not None
        flushes = window.end_of_input == "flush"
        return self._results.rows(status, flushes)


def _warn_of_large_windows(
    emitted: Iterator[Frame], warn: Callable[[str], None]
) -> Iterator[Frame]:
    """Pass frames on, and warn of a window whose frames come to very much.

    Spark's JVM holds them until they are delivered, and may end by that without a word.
    """
    total = of_window = 0
    window, warn_at = -1, _LARGE_BYTES
    for frame in emitted:
        if frame.order != window:
            window, of_window = frame.order, 0
        total += len(frame.body)
        of_window += len(frame.body)
        if total >= warn_at:
            warn_at = 2 * total
            ends = f" that ends at {format_rfc3339(window)}" if window > 0 else ""
            warn(
                f"the window{ends} comes to {of_window:,} bytes so "
                f"far, {total:,} with what was emitted before it in this micro-batch; Spark's JVM "
                "holds them until they are delivered: if it ends, raise "
                "spark.conf.spark.driver.memory, or make windows shorter"
            )
        yield frame


def _run_outputs(
    pipeline: WindowPipeline,
    emissions: Iterator[Emission],
    outputs: Sequence[Stage],
    watch: Stopwatch | None,
) -> Iterator[Payload]:
    """Run what the windows give through processors and outputs; time these where that counts."""
    if watch is None:
        yield from pipeline.payloads(emissions)
        for output in outputs:
            output.finish()
        return
    with watch.clock.measure():
        yield from watch.time_items(pipeline.payloads(watch.exclude_items(emissions)))
        with watch.time_block():
            for output in outputs:
                output.finish()
