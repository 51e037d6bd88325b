"""Measures a stream on sampled messages: its stages run as in Spark's workers, without Spark.

The sample is cut into micro-batches of one size. Each goes through the stages of the input, and
then through the shards of all buffers, one level after the other.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import orjson

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.engine.stage.clock_sources import name_clock_source
from streamer.engine.stage.pack_stage import PackStage, make_clock_rows, split_task_plan
from streamer.engine.stage.shard_stage import ShardStages
from streamer.engine.stage.stateless_stage import StatelessStage
from streamer.engine.stage.task_input import SourcePiece, TaskPlan
from streamer.plan import Plan
from streamer.plan.buffer_chain import plan_of_buffer
from streamer.plan.component_lookup import WRITER_OUTPUTS
from streamer.plan.component_text import parse_component
from streamer.sdk.input.replayable import Chunk, RawMessages
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.window import DictStore, MicroBatchInfo, ShuffleRow


@dataclass(frozen=True, slots=True)
class SampledInput:
    """The sample of one input.

    Attributes:
        component: the input; with several inputs, the one inside of the plan's.
        batches: its first messages, before its processors.
    """

    component: ParsedComponent
    batches: Sequence[Batch]

    @property
    def count(self) -> int:
        """The number of messages."""
        return sum(map(len, self.batches))


@dataclass(frozen=True, slots=True)
class BufferCost:
    """The cost of one buffer for a sample.

    Attributes:
        plan: the stream's plan as if there were no other buffer.
        label: its label; empty where there is one buffer only.
        taken: messages that went into its windows.
        held: messages in open windows at the end.
        state_bytes: bytes of the state that holds them.
        open_windows: windows that are open at the end; of each key.
        table_rows: rows of the table of a join.
        shards: shards that got messages.
    """

    plan: Plan
    label: str
    taken: int = 0
    held: int = 0
    state_bytes: int = 0
    open_windows: int = 0
    table_rows: int = 0
    shards: int = 0


@dataclass(frozen=True, slots=True)
class SampleCost:
    """The cost of a sample.

    Attributes:
        messages: how many there are.
        size: bytes of their payloads.
        seconds: CPU time of both stages, until all windows are closed.
        batches: how many micro-batches there were.
        batch_messages: messages of a micro-batch.
        result_bytes: bytes that the driver would write.
        written_bytes: bytes that were written to the state in all micro-batches.
        disk_share: bytes of the state on the disk, for each of its bytes: Spark compresses it.
        buffers: the buffers; none without windows.
    """

    messages: int
    size: int
    seconds: float
    batches: int
    batch_messages: int
    result_bytes: int = 0
    written_bytes: int = 0
    disk_share: float = 1.0
    buffers: tuple[BufferCost, ...] = ()

    @property
    def state_bytes(self) -> int:
        """Bytes of the state of all buffers at the end."""
        return sum(one.state_bytes for one in self.buffers)

    @property
    def held(self) -> int:
        """Messages in the open windows of all buffers at the end."""
        return sum(one.held for one in self.buffers)


def measure_sample(plan: Plan, inputs: Sequence[SampledInput], times: Sequence[int]) -> SampleCost:
    """Run a sample through a stream; outputs get nothing.

    The first run of a process takes longer: it loads and compiles.

    Args:
        plan: the stream's plan.
        inputs: the sample of each input. Micro-batches take the same share of each.
        times: the time of each micro-batch, Unix ns; as many as there are to be.
    """
    return _SampleRun(plan, inputs).measure(times)


class _SampleRun:
    """A sample on its way through a stream that has never run."""

    def __init__(self, plan: Plan, inputs: Sequence[SampledInput]) -> None:
        self._plan = plan = _with_encoding_outputs(plan)
        self._task_plan = TaskPlan.of(plan)
        self._sent = [[message for batch in one.batches for message in batch] for one in inputs]
        # The processors of an input inside of the plan's run as those of the plan's own.
        self._task_plans = [TaskPlan.of(replace(plan, input=one.component)) for one in inputs]
        self._stores = [_CountingStore() for _ in range(plan.shard_count)]
        self._statuses: dict[int, dict[str, Any]] = {}
        self._results = self._written = 0
        self._disk_share = 1.0
        self._buffers: tuple[BufferCost, ...] = ()

    def measure(self, times: Sequence[int]) -> SampleCost:
        """Run the micro-batches, and return what they took."""
        count = len(times)
        pieces = [self._cut(number, count) for number in range(count)]
        messages = sum(map(len, self._sent))
        began = time.process_time()
        if self._plan.window is None:
            for one in pieces:
                self._run_directly(one)
        else:
            self._run_windows(pieces, times)
        seconds = time.process_time() - began
        return SampleCost(
            messages=messages,
            size=sum(len(one.raw) for sent in self._sent for one in sent),
            seconds=seconds,
            batches=count,
            batch_messages=-(-messages // count),
            result_bytes=self._results,
            written_bytes=self._written,
            disk_share=self._disk_share,
            buffers=self._buffers,
        )

    def _cut(self, number: int, count: int) -> list[SourcePiece]:
        """Return the pieces of one micro-batch: its share of each input."""
        pieces = []
        for at, (sent, task_plan) in enumerate(zip(self._sent, self._task_plans, strict=True)):
            part = sent[len(sent) * number // count : len(sent) * (number + 1) // count]
            if part:
                label = task_plan.plan.input.label
                content = _make_chunks(part)
                pieces.append(SourcePiece(_SOURCE, at, content, partition=f"{at}", label=label))
        return pieces

    def _run_directly(self, pieces: Sequence[SourcePiece]) -> None:
        for piece in pieces:
            for frame in StatelessStage(self._task_plans[piece.number]).frames(piece):
                self._count_results(frame)

    def _count_results(self, frame: Frame) -> None:
        if frame.kind == FrameKind.DATA:
            self._results += len(frame.body)

    def _run_windows(self, batches: Sequence[Sequence[SourcePiece]], times: Sequence[int]) -> None:
        plan = self._plan
        stages = [PackStage(one) for one in self._task_plans]
        shard_stages = ShardStages(self._task_plan, [()] * max(len(plan.buffers), 1))
        sources = self._list_clock_sources(batches)
        for pieces, now in zip(batches, times, strict=True):
            info = MicroBatchInfo(now, "sample", backlog=True)
            rows = list(make_clock_rows(plan, info, sources))
            for piece in pieces:
                rows += stages[piece.number].rows(piece, now)
            self._run_shards(shard_stages, rows)
        self._buffers = tuple(self._read_buffers())
        self._written = sum(store.written for store in self._stores)
        self._disk_share = _measure_compression(self._stores)
        # Windows that are open cost what their results do, too.
        end = MicroBatchInfo(times[-1], "sample", backlog=True, ended=True)
        self._run_shards(shard_stages, list(make_clock_rows(plan, end, sources)))

    def _run_shards(self, stages: ShardStages, rows: list[ShuffleRow]) -> None:
        by_shard: dict[int, list[ShuffleRow]] = {}
        for row in rows:
            by_shard.setdefault(row.shard, []).append(row)
        for shard in self._order_shards():
            for made in stages.frames(shard, by_shard.get(shard, []), self._stores[shard]):
                if isinstance(made, ShuffleRow):
                    by_shard.setdefault(made.shard, []).append(made)
                elif made.kind == FrameKind.STATUS:
                    self._statuses[shard] = _read_status(made)
                else:
                    self._count_results(made)

    def _order_shards(self) -> Iterator[int]:
        """Yield all shards, in the order in which rows go through them."""
        buffers, shards = self._plan.buffers, self._plan.shards
        levels = sorted(range(len(buffers)), key=lambda number: buffers[number].level) or [0]
        for number in levels:
            yield from range(number * shards, (number + 1) * shards)

    def _list_clock_sources(
        self, batches: Sequence[Sequence[SourcePiece]]
    ) -> dict[int, tuple[str, ...]]:
        pieces = [piece for batch in batches for piece in batch]
        return {
            number: tuple(dict.fromkeys(filter(None, (name_clock_source(one, p) for p in pieces))))
            for number, one in split_task_plan(self._task_plan).items()
        }

    def _read_buffers(self) -> Iterator[BufferCost]:
        plan = self._plan
        for number in range(max(len(plan.buffers), 1)):
            own = range(number * plan.shards, (number + 1) * plan.shards)
            statuses = [self._statuses[shard] for shard in own if shard in self._statuses]
            values = [value for shard in own for value in self._stores[shard].values.values()]
            yield BufferCost(
                plan=plan_of_buffer(plan, number) if plan.buffers else plan,
                label=plan.buffers[number].label if plan.buffers else "",
                taken=sum(one["counters"]["taken"] for one in statuses),
                held=sum(one["held"] for one in statuses),
                state_bytes=sum(map(len, values)),
                open_windows=sum(one["open_windows"] or len(one["open"]) for one in statuses),
                table_rows=sum(one.get("table_rows") or 0 for one in statuses),
                shards=sum(1 for one in statuses if one["counters"]["taken"]),
            )


def _with_encoding_outputs(plan: Plan) -> Plan:
    """Return a plan whose outputs encode for the driver, and so send nothing anywhere."""
    lines = parse_component(Kind.OUTPUT, "stdout: {}")

    def encode(output: ParsedComponent | None) -> ParsedComponent | None:
        if output is None or output.name in WRITER_OUTPUTS:
            return output
        return replace(lines, path=output.path, processors=output.processors)

    output, late = encode(plan.output), encode(plan.late_output)
    assert output is not None
    buffers = tuple(
        replace(one, output=encode(one.output), late_output=encode(one.late_output))
        for one in plan.buffers
    )
    return replace(plan, output=output, late_output=late, buffers=buffers)


def _measure_compression(stores: Sequence[DictStore]) -> float:
    values = [value for store in stores for value in store.values.values()]
    size = sum(map(len, values))
    return sum(len(zlib.compress(value, 1)) for value in values) / size if size else 1.0


def _make_chunks(messages: Sequence[Message]) -> list[Chunk]:
    """Return messages as an input gives them: together where they share their metadata."""
    meta = messages[0].meta
    if all(one.meta is meta or one.meta == meta for one in messages):
        return [RawMessages([one.raw for one in messages], meta)]
    return [[[Message(one.raw, dict(one.meta))] for one in messages]]


def _read_status(frame: Frame) -> dict[str, Any]:
    status: dict[str, Any] = orjson.loads(frame.body)
    return status


class _SampleSource:
    """A source whose pieces are chunks of the sample."""

    has_partitions: ClassVar = False

    def read(self, piece: list[Chunk], ex: Execution) -> Iterator[Chunk]:
        """Give the messages."""
        yield from piece

    def partition_of(self, piece: Any) -> str:
        """Return nothing: the piece names its partition."""
        return ""


_SOURCE: Final = _SampleSource()


class _CountingStore(DictStore):
    """A state in memory that counts the bytes that are written.

    Attributes:
        written: bytes of keys and values, as Spark's log of changes has them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.written = 0

    def put(self, pane: int, seq: int, value: bytes) -> None:
        """Store a value."""
        super().put(pane, seq, value)
        self.written += len(value) + _ROW_BYTES

    def delete(self, pane: int, seq: int) -> None:
        """Remove a value."""
        super().delete(pane, seq)
        self.written += _ROW_BYTES


_ROW_BYTES: Final = 40
"""Bytes of a change beside its value: its key, and lengths."""
