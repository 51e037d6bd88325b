"""The two stages as Spark runs them: thin shells around `streamer.engine`.

The driver passes the micro-batch's number and instructions to tasks by local properties of Spark's.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from streamer.bloblang import restore_inputs
from streamer.connectors.kafka.input.positions import list_kafka_ends
from streamer.core.execution import MicroBatch
from streamer.core.lookup_tables import set_process_tables
from streamer.core.process_end import mark_worker_process
from streamer.core.time_limit import end_process_when_overdue
from streamer.engine.planner.planner_channels import MicroBatchOffset
from streamer.engine.report.capture_request import CAPTURES_RESULTS
from streamer.engine.report.component_errors import encode_errors
from streamer.engine.report.frame_compression import compress_frames
from streamer.engine.report.message_sampler import SAMPLES_PER_COMPONENT
from streamer.engine.report.reading_reporter import REPORTER, ReadingReporter
from streamer.engine.report.result_frame import Frame
from streamer.engine.stage.clock_sources import list_clock_sources
from streamer.engine.stage.crash_search import (
    CRASH_INSTRUCTIONS,
    CrashInstructions,
    parse_instructions,
)
from streamer.engine.stage.pack_stage import PackStage, make_clock_rows, split_task_plan
from streamer.engine.stage.shard_stage import ShardStages
from streamer.engine.stage.stateless_stage import StatelessStage
from streamer.engine.stage.task_input import SourcePiece, TaskPlan
from streamer.plan import Plan
from streamer.plan.buffer_chain import level_count
from streamer.sdk.input.replayable import ReplayableSource, announce_pieces
from streamer.sdk.worker_resources import resources_of_run
from streamer.spark.tasks.level_rows import (
    LEVEL_ARROW_SCHEMA,
    LEVEL_SCHEMA,
    PASSED_FRAME,
    PASSED_ROW,
    ROW_ARROW_SCHEMA,
    ROW_SCHEMA,
    STAGE_LEVEL_SCHEMA,
    address_row,
    labels_of,
    passes_levels,
    passing_shard,
)
from streamer.spark.tasks.state_mark import add_mark, read_checked_head
from streamer.window import ShuffleRow as PackRow
from streamer.window.inspect.window_query import WINDOW_QUERIES, WindowQuery
from streamer.window.state.layout import HEAD_KEY

FRAME_SCHEMA = "kind int, `order` long, shard int, seq int, output int, route string, body binary"
FRAME_ARROW_SCHEMA = pa.schema(
    [
        ("kind", pa.int32()),
        ("order", pa.int64()),
        ("shard", pa.int32()),
        ("seq", pa.int32()),
        ("output", pa.int32()),
        ("route", pa.string()),
        ("body", pa.binary()),
    ]
)
_PACK_KEY_SCHEMA: Final = StructType(
    [StructField("pane", LongType()), StructField("seq", IntegerType())]
)
_PACK_SCHEMA: Final = StructType([StructField("body", BinaryType())])
"""Types, and no texts, which each task has Java read: four round trips and 2 ms of each shard."""
_MAX_BATCH_BYTES = 16 << 20

_Batches = Iterable[pa.RecordBatch]

_MICRO_BATCH_PROPERTY: Final = "streamer.micro_batch"
_SAMPLES_PROPERTY: Final = "streamer.samples"
_WINDOWS_PROPERTY: Final = "streamer.windows"
_CRASHES_PROPERTY: Final = "streamer.crashes"
_TABLES_PROPERTY: Final = "streamer.tables"
_CAPTURE_PROPERTY: Final = "streamer.capture"


def to_record_batches(
    rows: Iterable[tuple[Any, ...]], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Turn tuples whose last item is bytes into record batches of bounded size."""
    pending: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        pending.append(row)
        size += len(row[-1])
        if size >= _MAX_BATCH_BYTES:
            yield _record_batch(pending, schema)
            pending, size = [], 0
    if pending:
        yield _record_batch(pending, schema)


def _record_batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _read_pieces(
    batches: _Batches, source: ReplayableSource
) -> Iterator[tuple[int, Any, MicroBatchOffset]]:
    """Return number, piece (None for none), and the offset at the micro-batch's end."""
    for batch in batches:
        rows = batch.to_pylist()
        pieces = [None if row["piece"] is None else pickle.loads(row["piece"]) for row in rows]
        announce_pieces(source, [piece for piece in pieces if piece is not None])
        for row, piece in zip(rows, pieces, strict=True):
            yield row["number"], piece, _parse_offset(row["offset"])


@lru_cache(maxsize=1)
def _parse_offset(text: str) -> MicroBatchOffset:
    """Read an offset, which is that of all pieces of a micro-batch."""
    return MicroBatchOffset.from_json(text)


def prepare_task(plan: Plan) -> None:
    """Prepare a worker for a task: inputs of mappings, samples, reports, garbage collector.

    It looks for cycles less often: documents have none, and there are many.
    """
    mark_worker_process()
    restore_inputs(plan.captured_inputs)
    if tables_text := current_tables_text():
        # Imported here: not every stream has tables, and every worker waits for its imports.
        from streamer.spark.tasks.worker_tables import tables_of

        set_process_tables(tables_of(tables_text, resources_of_run(plan.run)))
    SAMPLES_PER_COMPONENT.set(requested_samples())
    WINDOW_QUERIES.set(requested_windows())
    CAPTURES_RESULTS.set(should_capture())
    CRASH_INSTRUCTIONS.set(current_crash_order())
    end_process_when_overdue()
    REPORTER.set(make_reading_reporter(plan.task_log_address))
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)


def make_arrow_stage(
    plan: Plan, produce: Callable[[_Batches], Iterator[tuple[Any, ...]]], schema: pa.Schema
) -> Callable[[_Batches], Iterator[pa.RecordBatch]]:
    """Return a function for `mapInArrow` that prepares its task and gives what a stage produces."""

    def stage(batches: _Batches) -> Iterator[pa.RecordBatch]:
        prepare_task(plan)
        yield from to_record_batches(encode_errors(produce(batches)), schema)

    return stage


def make_pack_stage(
    plan: Plan, source: ReplayableSource
) -> Callable[[_Batches], Iterator[pa.RecordBatch]]:
    """Return stage 1 of a stream with windows, for `mapInArrow`."""
    task_plan = TaskPlan.of(plan)

    def level_rows(batches: _Batches) -> Iterator[tuple[Any, ...]]:
        names = labels_of(plan)
        for row in rows(batches):
            yield address_row(plan, row, names.index(row.shard), 0)

    def rows(batches: _Batches) -> Iterator[PackRow]:
        names = labels_of(plan)
        pack_stage = PackStage(task_plan)
        for number, piece, offset in _read_pieces(batches, source):
            packed_rows: Iterator[PackRow] = iter(())
            if piece is not None:
                packed_rows = pack_stage.rows(
                    SourcePiece(source, number, piece, partition=source.partition_of(piece)),
                    offset.batch_time,
                    offset.aggregates_from,
                )
            for row in packed_rows:
                yield row._replace(shard=names[row.shard])
            if number == 0:
                ends = list_kafka_ends(offset.data)
                sources = {
                    at: list_clock_sources(one, source, ends)
                    for at, one in split_task_plan(task_plan).items()
                }
                for row in make_clock_rows(plan, offset.batch_info(ends), sources):
                    yield row._replace(shard=names[row.shard])

    if passes_levels(plan):
        return make_arrow_stage(plan, level_rows, LEVEL_ARROW_SCHEMA)
    return make_arrow_stage(plan, rows, ROW_ARROW_SCHEMA)


def make_direct_stage(
    plan: Plan, source: ReplayableSource
) -> Callable[[_Batches], Iterator[pa.RecordBatch]]:
    """Return the one stage of a stream without windows, for `mapInArrow`."""
    task_plan = TaskPlan.of(plan)

    def produce_frames(batches: _Batches) -> Iterator[Frame]:
        stage = StatelessStage(task_plan, micro_batch=current_micro_batch())
        for number, piece, offset in _read_pieces(batches, source):
            if piece is not None:
                yield from stage.frames(SourcePiece(source, number, piece))
            if number == 0:
                yield stage.status(offset.ended, offset.batch_time)
        stage.finish()

    return make_arrow_stage(plan, produce_frames, FRAME_ARROW_SCHEMA)


class SparkStateStore:
    """A shard's state in Spark's map state, as the kernel's `Store`."""

    def __init__(self, state: Any, batch: int | None = None) -> None:
        """Wrap a map state keyed (pane, seq).

        Args:
            state: the map state.
            batch: the number of the micro-batch; None when nobody has told.
        """
        self._state = state
        self._batch = batch

    def get(self, pane: int, seq: int) -> bytes | None:
        """Return the value, or None."""
        row = self._state.getValue((pane, seq))
        if row is None:
            return None
        value = bytes(row[0])
        if (pane, seq) == HEAD_KEY and self._batch is not None:
            return read_checked_head(value, self._batch)
        return value

    def put(self, pane: int, seq: int, value: bytes) -> None:
        """Store a value."""
        if (pane, seq) == HEAD_KEY and self._batch is not None:
            value = add_mark(value, self._batch)
        self._state.updateValue((pane, seq), (value,))

    def delete(self, pane: int, seq: int) -> None:
        """Remove a value."""
        self._state.removeKey((pane, seq))


class ShardProcessor(StatefulProcessor):
    """Stage 2 of a stream with windows: one call per shard and micro-batch."""

    def __init__(self, plan: Plan) -> None:
        """Take the plan."""
        self._plan = plan
        self._stage = ShardStages(TaskPlan.of(plan))

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the shard's state."""
        prepare_task(self._plan)
        self._packs = handle.getMapState("packs", _PACK_KEY_SCHEMA, _PACK_SCHEMA)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Keep what came in and release what is due."""
        shard = labels_of(self._plan).index(key[0])
        incoming = (PackRow(shard, r.kind, r.pane, r.arrival, bytes(r.body)) for r in rows)
        for frame in encode_errors(self._run_shard(shard, incoming)):
            yield Row(**frame._asdict())

    def _run_shard(self, shard: int, incoming: Iterator[PackRow]) -> Iterator[Any]:
        """Take the rows of a shard; return frames, and rows for buffers behind this one."""
        micro_batch = current_micro_batch(f"s{shard}")
        store = SparkStateStore(
            self._packs, micro_batch.number if micro_batch is not None else None
        )
        if self._plan.initial_state_dir:
            # Imported here: hardly a stream begins so, and every worker waits for its imports.
            from pyspark import SparkFiles

            from streamer.engine.driver.shard_state_file import load_initial_state, shard_state_path

            directory = Path(self._plan.initial_state_dir)
            if not directory.is_absolute():
                directory = SparkFiles.getRootDirectory() / directory
            load_initial_state(store, shard_state_path(directory, shard))
        return compress_frames(self._stage.frames(shard, incoming, store, micro_batch))

    def close(self) -> None:
        """Nothing is held between micro-batches."""


class LevelProcessor(ShardProcessor):
    """The same where buffers take the results of others: one operator for each level of them.

    Between the levels rows and frames have one shape; frames pass the levels that are left.
    """

    def __init__(self, plan: Plan, level: int) -> None:
        """Take the plan, and the number of the level."""
        super().__init__(plan)
        self._level = level
        self._is_last = level == level_count(plan) - 1

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Keep what came in and release what is due; pass on what earlier levels have made."""
        labels = labels_of(self._plan)
        shard = labels.index(key[0])
        way = 0 if self._is_last else passing_shard(self._plan, shard, self._level + 1)
        incoming: list[PackRow] = []
        for r in rows:
            if r.kind < PASSED_FRAME:
                incoming.append(PackRow(shard, r.kind, r.pane, r.arrival, bytes(r.body)))
                continue
            if r.kind >= PASSED_ROW:
                kind, target = r.kind - PASSED_ROW, r.origin
                passed = PackRow(labels[target], kind, r.pane, r.arrival, bytes(r.body))
                yield self._make_level_row(passed, target)
                continue
            frame = Frame(
                r.kind - PASSED_FRAME, r.pane, r.origin, r.seq, r.output, r.route, bytes(r.body)
            )
            yield self._make_row(frame, way)
        for made in encode_errors(self._run_shard(shard, iter(incoming))):
            if isinstance(made, PackRow):
                row = made._replace(shard=labels[made.shard])
                yield self._make_level_row(row, made.shard)
            else:
                yield self._make_row(made, way)

    def _make_level_row(self, row: PackRow, shard: int) -> Row:
        """Return a row as it leaves the level, for a shard of a later one."""
        label, kind, pane, arrival, origin, *_, body = address_row(
            self._plan, row, shard, self._level + 1
        )
        return Row(
            shard=label,
            kind=kind,
            pane=pane,
            arrival=arrival,
            body=body,
            origin=origin,
            seq=0,
            output=0,
            route="",
        )

    def _make_row(self, frame: Frame, way: int) -> Row:
        """Return a frame as it leaves the level."""
        if self._is_last:
            return Row(**frame._asdict())
        return Row(
            shard=way,
            kind=frame.kind + PASSED_FRAME,
            pane=frame.order,
            arrival=0,
            body=frame.body,
            origin=frame.shard,
            seq=frame.seq,
            output=frame.output,
            route=frame.route,
        )


def build_frames(
    plan: Plan,
    source: ReplayableSource,
    stream: DataFrame,
) -> DataFrame:
    """Return the frames of a stream, from the rows of its source.

    Args:
        plan: the stream's plan.
        source: reads the pieces that the rows name.
        stream: the rows.
    """
    if plan.window is None:
        return stream.mapInArrow(make_direct_stage(plan, source), FRAME_SCHEMA)
    stage_schema = STAGE_LEVEL_SCHEMA if passes_levels(plan) else ROW_SCHEMA
    rows = stream.mapInArrow(make_pack_stage(plan, source), stage_schema)
    levels = level_count(plan)
    for level in range(levels):
        is_last = level == levels - 1
        processor = ShardProcessor(plan) if levels == 1 else LevelProcessor(plan, level)
        schema = FRAME_SCHEMA if is_last else LEVEL_SCHEMA
        rows = rows.groupBy("shard").transformWithState(processor, schema, "append", "None")
    return rows


def set_micro_batch(
    batch: DataFrame,
    stream: str,
    number: int,
    samples: int = 0,
    crashes: str = "",
    windows: str = "",
    known: dict[str, str] | None = None,
    captures: bool = False,
) -> None:
    """Set the properties of a micro-batch's tasks, from the thread that is about to run them.

    Args:
        batch: the micro-batch.
        stream: names the checkpoint; without blanks.
        number: the micro-batch's.
        samples: how many samples tasks take of each component's messages.
        crashes: what is known of messages that end a worker (`CrashInstructions.text`).
        windows: what is asked about open windows (`WindowQuestions.take`).
        known: the properties that the thread was given before, which are not given again; it is
            changed. Each is a call of Java.
        captures: whether the results of windows come to the driver too.
    """
    context = batch.sparkSession.sparkContext
    known = {} if known is None else known
    properties = {
        _MICRO_BATCH_PROPERTY: f"{stream} {number}",
        _SAMPLES_PROPERTY: str(samples),
        _CRASHES_PROPERTY: crashes,
        _WINDOWS_PROPERTY: windows,
        _CAPTURE_PROPERTY: "yes" if captures else "",
    }
    for name, text in properties.items() - known.items():
        context.setLocalProperty(name, text)
    known.update(properties)


def current_micro_batch(part: str = "") -> MicroBatch | None:
    """Return which micro-batch the task works on; None where no property is set.

    Args:
        part: names the part of it; without one it is the task itself, whose number is the same
            when the micro-batch comes again.
    """
    context = TaskContext.get()
    text = context.getLocalProperty(_MICRO_BATCH_PROPERTY) if context else None
    if context is None or not text:
        return None
    stream, number = text.split(" ")
    return MicroBatch(stream, int(number), part or str(context.partitionId()))


def set_tables(batch: DataFrame, text: str) -> None:
    """Set which versions of lookup tables a micro-batch's tasks look up, as `set_micro_batch` does.

    Args:
        batch: the micro-batch.
        text: see `worker_tables.describe_versions`.
    """
    batch.sparkSession.sparkContext.setLocalProperty(_TABLES_PROPERTY, text)


def current_tables_text() -> str:
    """Return the versions of lookup tables that the task looks up; empty without tables."""
    context = TaskContext.get()
    return (context.getLocalProperty(_TABLES_PROPERTY) if context else None) or ""


def requested_samples() -> int:
    """Return how many samples the task is to take of each component's messages."""
    context = TaskContext.get()
    text = context.getLocalProperty(_SAMPLES_PROPERTY) if context else None
    return int(text or 0)


def should_capture() -> bool:
    """Return whether the task sends the results of its windows to the driver too."""
    context = TaskContext.get()
    return bool(context and context.getLocalProperty(_CAPTURE_PROPERTY))


def requested_windows() -> tuple[WindowQuery, ...]:
    """Return what the task is asked about the open windows of its shards."""
    context = TaskContext.get()
    text = context.getLocalProperty(_WINDOWS_PROPERTY) if context else None
    return tuple(map(WindowQuery.from_json, text.splitlines())) if text else ()


def current_crash_order() -> CrashInstructions | None:
    """Return what the task must know of messages that end a worker; None where none has died."""
    context = TaskContext.get()
    return parse_instructions(context.getLocalProperty(_CRASHES_PROPERTY)) if context else None


def make_reading_reporter(address: str) -> ReadingReporter | None:
    """Return what counts and reports what the task reads; None where nobody listens.

    Args:
        address: where the driver listens; empty where it does not.
    """
    context, micro_batch = TaskContext.get(), current_micro_batch()
    if context is None or micro_batch is None or not address:
        return None
    return ReadingReporter(address, micro_batch.number, context.partitionId())
