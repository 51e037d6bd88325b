"""Stage 2: a shard keeps what came in, and what is due runs through the pipeline at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import orjson

from streamer.bloblang import compile_mapping
from streamer.core.execution import MicroBatch
from streamer.core.timestamps import format_rfc3339
from streamer.engine.report.batch_work import split_work
from streamer.engine.report.component_errors import attribute_errors, attribute_iteration_errors
from streamer.engine.report.rejected_messages import ReplayRules
from streamer.engine.report.result_frame import Frame, FrameKind, Payload, make_frames
from streamer.engine.report.running_clock import RunningClock, Stopwatch
from streamer.engine.report.spans import TaskTrace
from streamer.engine.report.task_report import TaskReport
from streamer.engine.stage.crash_search import make_crash_search
from streamer.engine.stage.output_stage import OutputStage, Stage
from streamer.engine.stage.pack_stage import REPORT_ROWS
from streamer.engine.stage.window_pipeline import WindowPipeline
from streamer.plan import Plan
from streamer.plan.rejection import replays
from streamer.sdk.component_ref import ComponentRef
from streamer.window import Emission, MicroBatchInfo, RowKind, Shard, ShuffleRow, StateStore
from streamer.window.settings.system_window import SystemWindow

_LARGE_BYTES = 256 << 20
"""A quarter of the heap that Spark's JVM has by default."""

_REPORT_FRAMES = {row: frame for frame, row in REPORT_ROWS.items()}


def run_shard(
    plan: Plan,
    shard: int,
    rows: Iterable[ShuffleRow],
    store: StateStore,
    outputs: Sequence[Stage] = (),
    now: Callable[[], int] = time.time_ns,
    micro_batch: MicroBatch | None = None,
) -> Iterator[Frame]:
    """Take the rows of one micro-batch into a shard; return what comes out of it.

    Args:
        plan: the stream's plan.
        shard: number of the shard.
        rows: what stage 1 made for it, in any order.
        store: the shard's state.
        outputs: take the place of the plan's, by the number of the output.
        now: the clock of the processors, Unix ns.
        micro_batch: which part of which micro-batch this is, where that is known.
    """
    assert plan.window is not None
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
    buffer, output = ComponentRef(plan.buffer).fields, ComponentRef(plan.output).fields
    tracing = TaskTrace("buffer", buffer, time.time_ns()) if plan.traced else None
    task = TaskReport.of(plan, now, tracing, ReplayRules(replays(plan.input, plan.resources)))
    ex = task.execution
    ex.micro_batch = micro_batch
    ex.crashes = make_crash_search(f"shard {shard}")
    having = compile_mapping(plan.having) if plan.having else None
    text = plan.aggregation.text
    shard_ = Shard(
        plan.window, store, plan.late_output is not None, having, text, batch_emissions=True
    )
    step = shard_.step(kernel_rows)
    processors = plan.context().build_all(plan.processors)
    stages = outputs or [OutputStage(plan, n, output) for n, output in enumerate(plan.outputs)]
    pipeline = WindowPipeline(plan, processors, stages, ex)
    watch = Stopwatch(RunningClock()) if isinstance(plan.window, SystemWindow) else None
    with attribute_errors(output):
        emitted = make_frames(
            _run_outputs(pipeline, attribute_iteration_errors(step, buffer), stages, watch), shard
        )
        yield from _weighed(emitted, lambda text: task.log_sender.send_now("WARN", text, buffer))
    status = step.status
    for line in status.log:
        ex.log(line.level, line.text, line.fields)
    body = orjson.dumps({**status.as_dict(), "ended": ended})
    yield Frame(FrameKind.STATUS, 0, shard, 0, 0, "", body)
    if watch is not None:
        work = split_work(watch.work, plan.processors, ex).to_json()
        yield Frame(FrameKind.WORK, status.now, shard, 1 << 30, 0, "", work)
    for kind, report in task.frames():
        yield Frame(kind, status.now, shard, 1 << 30, 0, "", report)


def _weighed(emitted: Iterator[Frame], warn: Callable[[str], None]) -> Iterator[Frame]:
    """Pass frames on, and say of which window they are where they come to very much.

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
    step: Iterator[Emission],
    stages: Sequence[Stage],
    watch: Stopwatch | None,
) -> Iterator[Payload]:
    """Run what the windows give through processors and outputs; time these where that counts."""
    if watch is None:
        yield from pipeline.payloads(step)
        for stage in stages:
            stage.finish()
        return
    with watch.clock.measure():
        yield from watch.time_items(pipeline.payloads(watch.exclude_items(step)))
        with watch.time_block():
            for stage in stages:
                stage.finish()
