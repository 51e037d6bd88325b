"""The two stages as Spark runs them: thin shells around `streamer.engine`."""

from __future__ import annotations

import gc
import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from streamer.engine.blame import marking
from streamer.engine.crash_search import CRASH_ORDER
from streamer.engine.direct import DirectStage
from streamer.engine.folding import folded_since
from streamer.engine.frame import Frame
from streamer.engine.intake import clock_rows, pack_piece
from streamer.engine.reading import REPORTER
from streamer.engine.release import release
from streamer.engine.ticks import reading, time_of
from streamer.plan import Plan
from streamer.sampling import WANTED
from streamer.source.replayable import Replayable
from streamer.spark.micro_batch import crash_order, heard, heard_plan, reporter, samples_wanted
from streamer.spark.shards import labels
from streamer.spark.state_mark import checked_head, marked
from streamer.time_limit import end_process_when_overdue
from streamer.window import Row as PackRow
from streamer.window.index import HEAD

ROW_SCHEMA = "shard int, kind int, pane long, arrival long, body binary"
FRAME_SCHEMA = "kind int, `order` long, shard int, seq int, output int, route string, body binary"
ROW = pa.schema(
    [
        ("shard", pa.int32()),
        ("kind", pa.int32()),
        ("pane", pa.int64()),
        ("arrival", pa.int64()),
        ("body", pa.binary()),
    ]
)
FRAME = pa.schema(
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
_BATCH_BYTES = 16 << 20

_Batches = Iterable[pa.RecordBatch]


def arrow(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Turn tuples whose last item is bytes into record batches of bounded size."""
    held: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row[-1])
        if size >= _BATCH_BYTES:
            yield _batch(held, schema)
            held, size = [], 0
    if held:
        yield _batch(held, schema)


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _pieces(batches: _Batches) -> Iterator[tuple[int, bytes | None, dict[str, Any]]]:
    """Return number, piece, and the offset at the micro-batch's end."""
    for batch in batches:
        for row in batch.to_pylist():
            offset = json.loads(row["offset"])
            yield row["number"], row["piece"], offset


def begin_task(plan: Plan) -> None:
    """Make a worker ready for a task: hear whether somebody watches, and calm the collector.

    It looks for cycles less often: documents have none, and there are many.
    """
    WANTED.set(samples_wanted())
    CRASH_ORDER.set(crash_order())
    end_process_when_overdue()
    REPORTER.set(reporter(plan.live))
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)


def pack_stage(plan: Plan, source: Replayable) -> Callable[[_Batches], Iterator[pa.RecordBatch]]:
    """Return stage 1 of a stream with windows, for `mapInArrow`."""

    def rows(batches: _Batches) -> Iterator[PackRow]:
        names = labels(plan.shards)
        for number, piece, offset in _pieces(batches):
            made: Iterator[PackRow] = iter(())
            if piece is not None:
                since = folded_since(offset)
                read = pickle.loads(piece)
                partition = source.partition(read)
                made = pack_piece(plan, source, number, read, time_of(offset), since, partition)
            for row in made:
                yield row._replace(shard=names[row.shard])
            if number == 0:
                planned = heard_plan()
                ends = planned.ends if planned is not None else ()
                for row in clock_rows(plan, reading(offset, ends)):
                    yield row._replace(shard=names[row.shard])

    def stage(batches: _Batches) -> Iterator[pa.RecordBatch]:
        begin_task(plan)
        yield from arrow(marking(rows(batches)), ROW)

    return stage


def direct_stage(plan: Plan, source: Replayable) -> Callable[[_Batches], Iterator[pa.RecordBatch]]:
    """Return the one stage of a stream without windows, for `mapInArrow`."""

    def produced(batches: _Batches) -> Iterator[Frame]:
        stage = DirectStage(plan, micro_batch=heard())
        for number, piece, offset in _pieces(batches):
            if piece is not None:
                yield from stage.frames(source, number, pickle.loads(piece))
            if number == 0:
                yield stage.status(offset["ended"])
        stage.finish()

    def stage(batches: _Batches) -> Iterator[pa.RecordBatch]:
        begin_task(plan)
        yield from arrow(marking(produced(batches)), FRAME)

    return stage


class SparkStore:
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
        found = self._state.getValue((pane, seq))
        if found is None:
            return None
        value = bytes(found[0])
        if (pane, seq) == (0, HEAD) and self._batch is not None:
            return checked_head(value, self._batch)
        return value

    def put(self, pane: int, seq: int, value: bytes) -> None:
        """Store a value."""
        if (pane, seq) == (0, HEAD) and self._batch is not None:
            value = marked(value, self._batch)
        self._state.updateValue((pane, seq), (value,))

    def delete(self, pane: int, seq: int) -> None:
        """Remove a value."""
        self._state.removeKey((pane, seq))


class ShardProcessor(StatefulProcessor):
    """Stage 2 of a stream with windows: one call per shard and micro-batch."""

    def __init__(self, plan: Plan) -> None:
        """Take the plan."""
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the shard's state."""
        begin_task(self._plan)
        self._packs = handle.getMapState("packs", "pane long, seq int", "body binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Keep what came in and release what is due."""
        shard = labels(self._plan.shards).index(key[0])
        incoming = (PackRow(shard, r.kind, r.pane, r.arrival, bytes(r.body)) for r in rows)
        part = heard(f"s{shard}")
        store = SparkStore(self._packs, part.number if part is not None else None)
        if self._plan.seed:
            # Imported here: hardly a stream begins so, and every worker waits for its imports.
            from pyspark import SparkFiles

            from streamer.engine.shard_files import seed, shard_file

            directory = Path(self._plan.seed)
            if not directory.is_absolute():
                directory = SparkFiles.getRootDirectory() / directory
            seed(store, shard_file(directory, shard))
        frames = release(self._plan, shard, incoming, store, micro_batch=part)
        for frame in marking(frames):
            yield Row(**frame._asdict())

    def close(self) -> None:
        """Nothing is held between micro-batches."""


def frames_of(
    plan: Plan,
    source: Replayable,
    stream: DataFrame,
    beside: Sequence[DataFrame] = (),
) -> DataFrame:
    """Return the frames of a stream, from the rows of its source.

    Args:
        plan: the stream's plan.
        source: reads the pieces that the rows name.
        stream: the rows.
        beside: what stage 1 makes of other sources. They come after ours, which Spark so asks first
            whether a micro-batch is worth it.
    """
    if plan.window is None:
        staged = stream.mapInArrow(direct_stage(plan, source), FRAME_SCHEMA)
        return reduce(DataFrame.union, beside, staged)
    staged = stream.mapInArrow(pack_stage(plan, source), ROW_SCHEMA)
    return (
        reduce(DataFrame.union, beside, staged)
        .groupBy("shard")
        .transformWithState(ShardProcessor(plan), FRAME_SCHEMA, "append", "None")
    )
