"""The frames of a micro-batch come to the driver as its tasks have made them."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.engine.report.result_frame import Frame
from streamer.spark.compat import Fallback, Fallbacks
from streamer.spark.query.batch_callback import FrameCollection
from streamer.spark.tasks.stages import FRAME_SCHEMA

LIMIT = 1 << 20
"""Bytes up to which Java gives the frames in its answer."""


def as_spark_gives_a_sink(session: Any, rows: list[tuple[Any, ...]], tasks: int) -> Any:
    """Return rows as a query that is planned already, which is what `foreachBatch` gets."""
    from pyspark.sql import DataFrame

    planned = session.createDataFrame(rows, FRAME_SCHEMA).repartition(tasks)._jdf
    rows_made = planned.queryExecution().toRdd()
    java = session._jsparkSession.internalCreateDataFrame(rows_made, planned.schema(), False)
    return DataFrame(java, session)


def make_frames(sizes: list[int]) -> list[Frame]:
    return [
        Frame(
            3, -number, number % 2, -1, number, f"a/ü {number}" if number % 3 else "", b"x" * size
        )
        for number, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("sizes", "tasks"),
    [([], 2), ([0, 1, 5], 1), ([100] * 50, 3), ([LIMIT, 0], 1), ([17 << 20, 3, LIMIT], 2)],
)
def test_all_frames_come_as_they_are(session: Any, sizes: list[int], tasks: int) -> None:
    frames, fallbacks = make_frames(sizes), Fallbacks()
    batch = as_spark_gives_a_sink(session, [tuple(one) for one in frames], tasks)
    found = FrameCollection(session, fallbacks).collect(batch)
    assert sorted(found) == sorted(frames)
    assert fallbacks.counts()[Fallback.PLANNED_FRAMES] == 0
    # As PySpark itself gives them.
    assert sorted(Frame(*row.values()) for row in batch.toArrow().to_pylist()) == sorted(frames)


def test_rows_that_are_still_to_be_planned_are_collected_by_spark(session: Any) -> None:
    frames = make_frames([1, 2])
    batch = session.createDataFrame([tuple(one) for one in frames], FRAME_SCHEMA).repartition(2)
    assert sorted(FrameCollection(session).collect(batch)) == sorted(frames)
