"""Measures a stream on sampled messages: its stages run as in Spark's workers, without Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import orjson

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.engine.report.result_frame import Frame, FrameKind, Payload
from streamer.engine.stage.pack_stage import PackStage, make_clock_rows
from streamer.engine.stage.shard_stage import ShardStage
from streamer.engine.stage.stateless_stage import StatelessStage
from streamer.engine.stage.task_input import SourcePiece, TaskPlan
from streamer.plan import Plan
from streamer.sdk.input.replayable import Chunk, RawMessages
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.window import DictStore, MicroBatchInfo, RowKind, ShuffleRow

_ROUNDS: Final = 2
"""The first round takes what a process loads and compiles once."""


@dataclass(frozen=True, slots=True)
class SampleCost:
    """The cost of a sample.

    Attributes:
        messages: how many there are.
        size: bytes of their payloads.
        seconds: CPU time of both stages.
        span: from the first event time to the last one, ns; 0 where that is not known.
        held: messages in open windows at the end.
        state_bytes: bytes of the state that holds them.
        open_windows: windows that are open at the end; of each key.
        shards: shards that hold something.
    """

    messages: int
    size: int
    seconds: float
    span: int = 0
    held: int = 0
    state_bytes: int = 0
    open_windows: int = 0
    shards: int = 0


def measure_sample(plan: Plan, sample: Sequence[Batch], now: int) -> SampleCost:
    """Run a sample through a stream, as one micro-batch; outputs get nothing.

    Args:
        plan: the stream's plan, with one buffer or none.
        sample: the messages, as the input gives them before its processors.
        now: the time of the micro-batch, Unix ns.
    """
    cost = SampleCost(0, 0, 0.0)
    for _ in range(_ROUNDS):
        cost = _measure(plan, sample, now)
    return cost


def _measure(plan: Plan, sample: Sequence[Batch], now: int) -> SampleCost:
    messages = [message for batch in sample for message in batch]
    size = sum(len(one.raw) for one in messages)
    chunk = RawMessages([one.raw for one in messages], messages[0].meta if messages else {})
    piece = SourcePiece(_SampleSource(), 0, chunk, partition="sample")
    bare = ParsedComponent(Kind.OUTPUT, "stdout", path="output")
    late = None if plan.late_output is None else replace(bare, path="late_output")
    plan = replace(plan, output=bare, late_output=late)
    task_plan = TaskPlan.of(plan)
    began = time.process_time()
    if plan.window is None:
        for _ in StatelessStage(task_plan, _Drain(), time.time_ns).frames(piece):
            pass
        return SampleCost(len(messages), size, time.process_time() - began)
    rows = [*PackStage(task_plan).rows(piece, now)]
    rows += make_clock_rows(plan, MicroBatchInfo(now, "sample", backlog=True))
    stores = [DictStore() for _ in range(plan.shards)]
    statuses = []
    for shard, store in enumerate(stores):
        stage = ShardStage(task_plan, [_Drain() for _ in plan.outputs])
        mine = [row for row in rows if row.shard == shard]
        statuses += [_read_status(made) for made in stage.frames(shard, mine, store)]
    seconds = time.process_time() - began
    known = [one for one in statuses if one is not None]
    return SampleCost(
        *(len(messages), size, seconds, _span_of(rows)),
        held=sum(one["held"] for one in known),
        state_bytes=sum(len(value) for store in stores for value in store.values.values()),
        open_windows=sum(one["open_windows"] or len(one["open"]) for one in known),
        shards=sum(1 for one in known if one["counters"]["taken"]),
    )


def _read_status(made: Frame | ShuffleRow) -> dict[str, Any] | None:
    if isinstance(made, Frame) and made.kind == FrameKind.STATUS:
        status: dict[str, Any] = orjson.loads(made.body)
        return status
    return None


def _span_of(rows: Sequence[ShuffleRow]) -> int:
    newest = [row.pane for row in rows if row.kind == RowKind.PIECE]
    packs = [row.pane for row in rows if row.kind in (RowKind.PACK, RowKind.DISORDERED)]
    return max(max(newest) - min(packs), 0) if newest and packs else 0


class _SampleSource:
    """A source whose piece is the sample."""

    has_partitions: ClassVar = False

    def read(self, piece: Chunk, ex: Execution) -> Iterator[Chunk]:
        """Give the messages."""
        yield piece

    def partition_of(self, piece: Any) -> str:
        """Return nothing: the piece names its partition."""
        return ""


class _Drain:
    """Takes the place of an output."""

    def payloads(self, batches: Any, order: int, ex: Execution) -> Iterator[Payload]:
        """Take batches; nothing is written."""
        for batch in batches:
            for message in batch:
                _ = message.raw
        yield from ()

    def finish(self) -> None:
        """Nothing is left to do."""
