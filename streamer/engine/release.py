"""Stage 2: a shard keeps what came in, and what is due runs through the pipeline at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import orjson

from streamer.bloblang import compile_mapping
from streamer.engine.blame import blamed, blaming
from streamer.engine.crash_search import piece_crashes
from streamer.engine.encode import OutputStage, Stage
from streamer.engine.frame import Frame, FrameKind, Payload, frames
from streamer.engine.intake import SAID_ROWS
from streamer.engine.leaving import Leaving
from streamer.engine.rejected import Origins
from streamer.engine.running_clock import RunningClock, Stopwatch
from streamer.engine.spans import Tracing
from streamer.engine.task import Task
from streamer.engine.work import work_of
from streamer.failure import Origin
from streamer.message import MicroBatch
from streamer.plan import Plan
from streamer.plan.rejecting import replays
from streamer.timestamps import format_rfc3339
from streamer.window import Emission, Kind, Reading, Row, Shard, Store
from streamer.window.system import SystemWindow

_LARGE_BYTES = 256 << 20
"""A quarter of the heap that Spark's JVM has by default."""

_PASSED_ON = {row: frame for frame, row in SAID_ROWS.items()}


def release(
    plan: Plan,
    shard: int,
    rows: Iterable[Row],
    store: Store,
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
    kernel_rows: list[Row] = []
    ended = False
    for row in rows:
        if row.kind in _PASSED_ON:
            kind = _PASSED_ON[row.kind]
            yield Frame(kind, row.arrival, shard, row.arrival, 0, "", row.body)
            continue
        if row.kind == Kind.CLOCK:
            ended = ended or Reading.of([row.body]).ended
        kernel_rows.append(row)
    buffer, output = Origin(plan.buffer).fields, Origin(plan.output).fields
    tracing = Tracing("buffer", buffer, time.time_ns()) if plan.traced else None
    task = Task.of(plan, now, tracing, Origins(replays(plan.input, plan.resources)))
    ex = task.execution
    ex.micro_batch = micro_batch
    ex.crashes = piece_crashes(f"shard {shard}")
    having = compile_mapping(plan.having) if plan.having else None
    text = plan.folding.text
    shard_ = Shard(plan.window, store, plan.late_output is not None, having, text, together=True)
    step = shard_.step(kernel_rows)
    processors = plan.context().all(plan.processors)
    stages = outputs or [OutputStage(plan, n, output) for n, output in enumerate(plan.outputs)]
    leaving = Leaving(plan, processors, stages, ex)
    watch = Stopwatch(RunningClock()) if isinstance(plan.window, SystemWindow) else None
    with blamed(output):
        emitted = frames(_payloads(leaving, blaming(step, buffer), stages, watch), shard)
        yield from _weighed(emitted, lambda text: task.voice.say("WARN", text, buffer))
    status = step.status
    for line in status.log:
        ex.log(line.level, line.text, line.fields)
    body = orjson.dumps({**status.as_dict(), "ended": ended})
    yield Frame(FrameKind.STATUS, 0, shard, 0, 0, "", body)
    if watch is not None:
        work = work_of(watch.work, plan.processors, ex).body()
        yield Frame(FrameKind.WORK, status.now, shard, 1 << 30, 0, "", work)
    for kind, said in task.said():
        yield Frame(kind, status.now, shard, 1 << 30, 0, "", said)


def _weighed(emitted: Iterator[Frame], warn: Callable[[str], None]) -> Iterator[Frame]:
    """Pass frames on, and say of which window they are where they come to very much.

    Spark's JVM holds them until they are delivered, and may end by that without a word.
    """
    total = of_window = 0
    window, said_at = -1, _LARGE_BYTES
    for frame in emitted:
        if frame.order != window:
            window, of_window = frame.order, 0
        total += len(frame.body)
        of_window += len(frame.body)
        if total >= said_at:
            said_at = 2 * total
            ends = f" that ends at {format_rfc3339(window)}" if window > 0 else ""
            warn(
                f"the window{ends} comes to {of_window:,} bytes so "
                f"far, {total:,} with what was emitted before it in this micro-batch; Spark's JVM "
                "holds them until they are delivered: if it ends, raise "
                "spark.conf.spark.driver.memory, or make windows shorter"
            )
        yield frame


def _payloads(
    leaving: Leaving,
    step: Iterator[Emission],
    stages: Sequence[Stage],
    watch: Stopwatch | None,
) -> Iterator[Payload]:
    """Run what the windows give through processors and outputs; time these where that counts."""
    if watch is None:
        yield from leaving.payloads(step)
        for stage in stages:
            stage.finish()
        return
    with watch.clock.timed():
        yield from watch.working(leaving.payloads(watch.given(step)))
        with watch.at_work():
            for stage in stages:
                stage.finish()
