"""Number of a cluster's cores, which changes with its workers, for the planner."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from pyspark.sql import SparkSession

from streamer.core.log_format import LogLine
from streamer.engine.planner.planner_channels import PlannerChannel
from streamer.plan import Plan

_MIN_REPORTED_CORES: Final = 2
"""What Spark says of a cluster with one core as well."""


_POLL_INTERVAL_S: Final = 0.25
_STABLE_S: Final = 2.0
_MAX_WAIT_S: Final = 10.0


def wait_for_cores(
    count_cores: Callable[[], int],
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> int:
    """Return how many cores a cluster gives when its executors have come: they come one by one.

    Args:
        count_cores: returns how many there are now.
        sleep: waits, seconds.
        now: a clock that never runs backwards, seconds.
    """
    began = changed = now()
    core_count = count_cores()
    while now() - changed < _STABLE_S and now() - began < _MAX_WAIT_S:
        sleep(_POLL_INTERVAL_S)
        if (cores := count_cores()) != core_count:
            core_count, changed = cores, now()
    return core_count


class ParallelismReporter:
    """Reports to the planner into how many tasks micro-batches are to be cut.

    On this machine the plan knows the number; of a cluster only Spark does.
    """

    def __init__(self, plan: Plan, signals: PlannerChannel, log: LogLine) -> None:
        """Take the stream's plan, the way to what plans micro-batches, and the log."""
        self._plan = plan
        self._signals = signals
        self._log = log
        self._has_warned = False

    def report(self, session: SparkSession, is_start: bool = False) -> None:
        """Pass the number of cores to the planner, and warn when the stream cannot use them all.

        Args:
            session: the stream's.
            is_start: whether the query starts just now: executors may still be on their way.
        """
        if self._plan.master.startswith("local"):
            return
        core_count = session.sparkContext.defaultParallelism
        self._signals.driver.update(tasks=core_count)
        shards = self._plan.shards
        more = core_count > max(shards, _MIN_REPORTED_CORES)
        if not is_start and not self._has_warned and self._plan.key is not None and more:
            self._has_warned = True
            self._log(
                "WARN",
                f"The cluster gives {core_count} cores, and windows are cut into {shards} shards: "
                "no more cores than these keep them. Set spark.shards before the first start, or "
                "stop the stream and run `streamer rescale`",
                {},
            )
