"""Stage 2: a shard keeps what came in, and what is due runs through the pipeline at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

import orjson

from streamer.bloblang import compile_mapping
from streamer.core.execution import Execution, MicroBatch
from streamer.core.timestamps import format_rfc3339
from streamer.engine.report.batch_work import split_work
from streamer.engine.report.component_errors import attribute_errors, attribute_iteration_errors
from streamer.engine.report.result_frame import Frame, FrameKind, Payload, TaskReport, make_frames
from streamer.engine.report.running_clock import RunningClock, Stopwatch
from streamer.engine.stage.crash_search import make_crash_search
from streamer.engine.stage.output_stage import OutputStage, Stage
from streamer.engine.stage.pack_stage import REPORT_ROWS
from streamer.engine.stage.task_input import TaskPlan
from streamer.engine.stage.window_pipeline import WindowPipeline
from streamer.sdk.component_ref import ComponentRef
from streamer.window import Emission, MicroBatchInfo, RowKind, Shard, ShuffleRow, StateStore

if TYPE_CHECKING:
    from streamer.engine.stage.keyed_routes import EmissionKeys
    from streamer.window.state.keyed_values import KeyedValues

_LARGE_BYTES = 256 << 20
"""A quarter of the heap that Spark's JVM has by default."""

_REPORT_FRAMES = {row: frame for frame, row in REPORT_ROWS.items()}


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
    ) -> Iterator[Frame]:
        """Take the rows of one micro-batch into a shard; return what comes out of it.

        Args:
            shard: number of the shard.
            rows: what stage 1 made for it, in any order.
            store: the shard's state.
            micro_batch: which part of which micro-batch this is, where that is known.
        """
        plan = self._task_plan.plan
        kernel_rows: list[ShuffleRow] = []
        ended = False
        for row in rows:
            if row.kind in _REPORT_FRAMES:
                kind = _REPORT_FRAMES[row.kind]
                yield Frame(kind, row.arrival, shard, row.arrival, 0, "", row.body)
                continue
            if row.kind == RowKind.CLOCK:
                ended = ended or MicroBatchInfo.from_rows([row.body]).ended
            kernel_rows.append(row)
        rules = self._task_plan.replay_rules()
        task = self._task_plan.begin_report(plan.buffer, self._now, rules)
        ex = task.execution
        ex.micro_batch = micro_batch
        ex.crashes = make_crash_search(f"shard {shard}")
        step = self._make_shard(store, shard).step(kernel_rows)
        assert plan.window is not None
        watch = None if plan.window.expire_delay is None else Stopwatch(RunningClock())
        outputs = self._outputs or [OutputStage(plan, *one) for one in enumerate(plan.outputs)]
        values = self._open_keyed_values(store)
        keys = self._make_keys(values, kernel_rows)
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
        body = orjson.dumps({**status.as_dict(), **kept, "ended": ended})
        yield Frame(FrameKind.STATUS, 0, shard, 0, 0, "", body)
        if watch is not None:
            work = split_work(watch.work, plan.processors, ex).to_json()
            yield Frame(FrameKind.WORK, status.now, shard, 1 << 30, 0, "", work)
        for kind, report in task.frames():
            yield Frame(kind, status.now, shard, 1 << 30, 0, "", report)

    def _make_shard(self, store: StateStore, shard: int) -> Shard:
        plan = self._task_plan.plan
        assert plan.window is not None
        listed = [key for key in plan.window.listed_keys if crc32(key) % plan.shards == shard]
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

    def _make_keys(
        self, values: KeyedValues | None, rows: Sequence[ShuffleRow]
    ) -> EmissionKeys | None:
        if values is None:
            return None
        from streamer.engine.stage.keyed_routes import EmissionKeys

        clocks = [row.body for row in rows if row.kind == RowKind.CLOCK]
        plan = self._task_plan.plan
        return EmissionKeys(
            values, MicroBatchInfo.from_rows(clocks).batch_time, plan.key is not None
        )

    def _make_pipeline(
        self, outputs: Sequence[Stage], ex: Execution, keys: EmissionKeys | None
    ) -> WindowPipeline:
        plan = self._task_plan.plan
        return WindowPipeline(plan, plan.context().build_all(plan.processors), outputs, ex, keys)


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
