"""Rows between the stages of several buffers: each level of them is one operator of Spark's.

Rows and frames that are for a later level pass those before it, by a shard of each.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from streamer.plan import Plan
from streamer.spark.tasks.shard_labels import shard_labels
from streamer.window import ShuffleRow

ROW_SCHEMA = "shard int, kind int, pane long, arrival long, body binary"
LEVEL_SCHEMA = f"{ROW_SCHEMA}, origin int, seq int, output int, route string"
"""Of rows from one level of buffers to the next, and of frames that pass it: `pane` is the order of
these, and `origin` their shard."""
PASSED_FRAME = 1000
"""Is added to the kind of a frame that passes a level; the kinds of rows are below it."""
PASSED_ROW = 2000
"""Is added to the kind of a row that passes a level; `origin` is then the shard that takes it."""
ROW_ARROW_SCHEMA = pa.schema(
    [
        ("shard", pa.int32()),
        ("kind", pa.int32()),
        ("pane", pa.int64()),
        ("arrival", pa.int64()),
        ("body", pa.binary()),
    ]
)
LEVEL_ARROW_SCHEMA = pa.schema(
    [
        *(field for field in ROW_ARROW_SCHEMA if field.name != "body"),
        ("origin", pa.int32()),
        ("seq", pa.int32()),
        ("output", pa.int32()),
        ("route", pa.string()),
        ("body", pa.binary()),
    ]
)
STAGE_LEVEL_SCHEMA = (
    "shard int, kind int, pane long, arrival long, origin int, seq int, output int, route string, "
    "body binary"
)


def labels_of(plan: Plan) -> tuple[int, ...]:
    """Return the labels of a plan's shards, of all its buffers."""
    return shard_labels(plan.shards, max(len(plan.buffers), 1))


def passes_levels(plan: Plan) -> bool:
    """Return whether rows of stage 1 pass a level: a join takes results, and the input too."""
    return any(one.takes_input and one.level for one in plan.buffers)


def address_row(plan: Plan, row: ShuffleRow, shard: int, level: int) -> tuple[Any, ...]:
    """Return a row as it comes to a level: to its shard, or to one that passes it on.

    Args:
        plan: the stream's.
        row: the row.
        shard: the number of the shard that takes it.
        level: the level that it comes to.
    """
    of_level = plan.buffers[shard // plan.shards].level
    if of_level == level:
        return (row.shard, row.kind, row.pane, row.arrival, 0, 0, 0, "", row.body)
    way = passing_shard(plan, shard, level)
    return (way, row.kind + PASSED_ROW, row.pane, row.arrival, shard, 0, 0, "", row.body)


def passing_shard(plan: Plan, shard: int, level: int) -> int:
    """Return the label of a shard of a level, by which rows and frames of others pass it.

    It is one that gets a row in every micro-batch.
    """
    first = next(number for number, one in enumerate(plan.buffers) if one.level == level)
    return labels_of(plan)[first * plan.shards + shard % plan.shards]
