"""How many cores a cluster gives, which changes with its workers: who has to hear of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark.sql import SparkSession

from streamer.engine.signals import Signals
from streamer.plan import Plan

LogLine = Callable[[str, str, Mapping[str, Any]], None]

_LEAST: Final = 2
"""What Spark says of a cluster with one core as well."""


_LOOK_S: Final = 0.25
_QUIET_S: Final = 2.0
_SETTLE_S: Final = 10.0


def await_cores(
    look: Callable[[], int],
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> int:
    """Return how many cores a cluster gives when its executors have come: they come one by one.

    Args:
        look: returns how many there are now.
        sleep: waits, seconds.
        now: a clock that never runs backwards, seconds.
    """
    began = changed = now()
    found = look()
    while now() - changed < _QUIET_S and now() - began < _SETTLE_S:
        sleep(_LOOK_S)
        if (cores := look()) != found:
            found, changed = cores, now()
    return found


class Cores:
    """Tells what plans micro-batches into how many tasks they are to be cut.

    On this machine the plan knows the number; of a cluster only Spark does.
    """

    def __init__(self, plan: Plan, signals: Signals, log: LogLine) -> None:
        """Take the stream's plan, the way to what plans micro-batches, and the log."""
        self._plan = plan
        self._signals = signals
        self._log = log
        self._advised = False

    def tell(self, session: SparkSession, begins: bool = False) -> None:
        """Look how many there are, and pass it on.

        Args:
            session: the stream's.
            begins: whether the query starts just now: executors may still be on their way.
        """
        if self._plan.master.startswith("local"):
            return
        found = session.sparkContext.defaultParallelism
        self._signals.set_tasks(found)
        shards = self._plan.shards
        more = found > max(shards, _LEAST)
        if not begins and not self._advised and self._plan.key is not None and more:
            self._advised = True
            self._log(
                "WARN",
                f"The cluster gives {found} cores, and windows are cut into {shards} shards: no "
                "more cores than these keep them. Set spark.shards before the first start, or stop "
                "the stream and run `streamer rescale`",
                {},
            )
