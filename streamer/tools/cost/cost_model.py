"""The cost of a stream on Spark, by what its stages take and by constants of measured runs.

The constants are of runs on the machine of `machine_speed`, by `tests/spark/test_measured_cost.py`,
which holds the estimates against runs. They are figures of Spark 4, one JVM and two cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamer.core.durations import SECOND
from streamer.plan import Plan
from streamer.plan.plan import count_cores
from streamer.sdk.input.replayable import Limit
from streamer.tools.cost.measure import SampleCost
from streamer.tools.cost.state_model import measure_step

JVM_BYTE_SECONDS: Final = 2.5e-9
"""CPU time of a byte of input: it is read, and cut into messages, beside the stages."""

MESSAGE_SECONDS: Final = 2.5e-6
"""CPU time of a message beside the stages: its share of reports, rows and the shuffle."""

RESULT_BYTE_SECONDS: Final = 10e-9
"""CPU time of a byte of results: it goes through Spark to the driver, which writes it."""

BATCH_SECONDS: Final = 0.2
"""CPU time of a micro-batch without windows, however many messages it has."""

WINDOW_BATCH_SECONDS: Final = 0.2
"""CPU time of a micro-batch with windows, beside its shards."""

SHARD_SECONDS: Final = 0.04
"""CPU time of a shard in each micro-batch: a task, its state server, and a commit of RocksDB."""

BASE_BYTES: Final = 600 << 20
"""Memory of driver, JVM and the server that forks workers, before a message has come."""

WORKER_BYTES: Final = 220 << 20
"""Memory of a Python worker for each core, with its share of the planner."""

MESSAGE_COPIES: Final = 3.0
"""Bytes of memory for each byte of the messages of a micro-batch: text, values, packs."""

STATE_COPIES: Final = 2.0
"""Bytes of memory for each byte of state: RocksDB's write buffer, and what is loaded of it."""

RETAINED_BATCHES: Final = 20
"""Micro-batches whose files Spark keeps: `spark.sql.streaming.minBatchesToRetain`."""

STATE_COPIES_ON_DISK: Final = 2.0
"""Copies of the whole state: the newest snapshot of RocksDB, and the one before."""

SHARD_FILE_BYTES: Final = 900
"""Bytes of a shard's files of one micro-batch beside its writes."""

LOG_BYTES: Final = 1_700
"""Bytes of a micro-batch in the logs of offsets and of commits."""

SHARD_BASE_BYTES: Final = 6_000
"""Bytes of an empty snapshot of a shard."""

_WINDOW_PERIOD: Final = SECOND // 3
_PERIOD: Final = SECOND // 8
"""From one micro-batch to the next of a stream with few messages: `engine/planner/pacing.py`."""

FIRST_BATCH: Final = Limit(messages=100_000, size=16 << 20)
"""Messages of the first micro-batch of a start, at most; as in `spark/query/source.py`."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Micro-batches of a stream.

    Attributes:
        messages: of a micro-batch, on average.
        largest: of the largest one.
        count: micro-batches for a million messages.
        total: messages that there are; None for no end.
    """

    messages: float
    largest: float
    count: float
    total: float | None = None


def pace_live(plan: Plan, rate: float) -> Pace:
    """Return the micro-batches of a stream that keeps up, at so many messages a second."""
    period = plan.interval
    if not plan.is_interval_fixed:
        step = measure_step(plan)
        if plan.window is None:
            period = min(period, _PERIOD)
        elif step is None or plan.window.strategy != "panes":
            period = min(period, _WINDOW_PERIOD)
        else:
            period = min(period, step)
    messages = max(rate * period / SECOND, 1.0)
    return Pace(messages, messages, 1e6 / messages)


def pace_backlog(plan: Plan, backlog: float, size: float) -> Pace:
    """Return the micro-batches of a stream that reads a backlog to its end.

    Args:
        plan: the stream's plan.
        backlog: messages that wait.
        size: bytes of a message.
    """
    each = max(size, 1.0)
    first = min(FIRST_BATCH.messages, FIRST_BATCH.size / each, backlog)
    limit = Limit(size=plan.limit_bytes)
    if plan.window is not None:
        limit = limit.share_of(max(find_cores(plan), 2))
    most = min(limit.messages, limit.size / each)
    rest = backlog - first
    batches = 1 + (-(-rest // most) if rest > 0 else 0)
    largest = max(first, min(rest, most))
    return Pace(backlog / batches, largest, batches / backlog * 1e6, backlog)


def find_cores(plan: Plan) -> int:
    """Return how many workers run at once; two where a cluster does not say it."""
    return count_cores(plan.master) if plan.master.startswith("local") else 2


def estimate_cpu(plan: Plan, whole: SampleCost, cut: SampleCost, pace: Pace, slow: float) -> float:
    """Return the CPU seconds of all processes for a million messages.

    Args:
        plan: the stream's plan.
        whole: the cost of the sample as one micro-batch.
        cut: the cost of the sample in several micro-batches.
        pace: the micro-batches of the stream.
        slow: the factor of this machine to the one of the constants.
    """
    each_batch = max(cut.seconds - whole.seconds, 0.0) / max(cut.batches - 1, 1)
    messages = max(whole.messages, 1)
    stages = max(whole.seconds - each_batch, whole.seconds / 2) / messages
    spark = MESSAGE_SECONDS + JVM_BYTE_SECONDS * whole.size / messages
    spark += RESULT_BYTE_SECONDS * whole.result_bytes / messages
    batch = BATCH_SECONDS
    if plan.window is not None:
        batch = WINDOW_BATCH_SECONDS + SHARD_SECONDS * plan.shard_count
    return (stages + spark * slow) * 1e6 + (batch * slow + each_batch) * pace.count


def estimate_memory(plan: Plan, whole: SampleCost, pace: Pace, state: float) -> float:
    """Return the bytes of all processes at their peak; pages that they share count once."""
    size = whole.size / max(whole.messages, 1)
    messages = pace.largest * size * MESSAGE_COPIES
    return BASE_BYTES + find_cores(plan) * WORKER_BYTES + messages + state * STATE_COPIES


def estimate_checkpoint(plan: Plan, written: float, pace: Pace, state: float) -> float:
    """Return the bytes of Spark's part of the checkpoint at its peak.

    Args:
        plan: the stream's plan.
        written: bytes that a micro-batch writes to the state.
        pace: the micro-batches of the stream.
        state: bytes of the state at its peak, as Spark compresses them, like those written.
    """
    batches = float(RETAINED_BATCHES)
    if pace.total is not None:
        batches = min(batches, pace.total / pace.messages)
    logs = batches * LOG_BYTES
    if plan.window is None:
        return logs
    shards = plan.shard_count
    files = batches * (written + shards * SHARD_FILE_BYTES) + shards * SHARD_BASE_BYTES
    return logs + files + state * STATE_COPIES_ON_DISK
