"""Logs changes of a cluster's executors.

A stream goes on without one of them, but slower, and nothing else tells why.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from py4j.protocol import Py4JError
from pyspark import SparkContext

from streamer.core.log_format import LogLine
from streamer.spark.compat import java_spark

_POLL_INTERVAL_S: Final = 5.0
"""Seconds between two looks."""

_DRIVER_ID: Final = "driver"


class Executor(NamedTuple):
    """An executor as Spark describes it.

    Attributes:
        name: Spark's number for it.
        host: where it runs, or ran.
        active: whether it is one of those that work.
        excluded: whether it gets no tasks, because too many have failed there.
        reason: why it is no longer there; empty when nobody has said.
    """

    name: str
    host: str
    active: bool
    excluded: bool
    reason: str = ""


class ExecutorLog:
    """Logs executors that came or went since the last call."""

    def __init__(self, log: LogLine, executors: Iterable[Executor]) -> None:
        """Take the executors that are there at first, which are not logged."""
        self._log = log
        self._known = {one.name: one for one in executors}

    def log_changes(self, executors: Iterable[Executor]) -> None:
        """Log the executors that came or went."""
        for one in executors:
            before = self._known.get(one.name)
            self._known[one.name] = one
            if before == one:
                continue
            fields = {"executor": one.name, "host": one.host}
            if one.active and before is None:
                self._log("INFO", "An executor has come", fields)
            if one.excluded and not (before and before.excluded):
                text = "An executor gets no tasks for a while: too many have failed there"
                self._log("WARN", text, fields)
            if one.active and not one.excluded and before and before.excluded:
                self._log("INFO", "An executor gets tasks again", fields)
            if not one.active and (before is None or before.active):
                why = {"reason": one.reason} if one.reason else {}
                self._log("WARN", "An executor is gone", {**fields, **why})


def watch_executors(context: SparkContext, log: LogLine) -> None:
    """Log executors that come and go, in a thread of its own, until Spark is stopped.

    Args:
        context: a cluster's.
        log: takes lines, with the fields `executor`, `host` and `reason`.
    """
    executor_log = ExecutorLog(log, list_executors(context))
    threading.Thread(
        target=_watch_executors, args=(context, executor_log), daemon=True, name="executors"
    ).start()


def _watch_executors(context: SparkContext, executor_log: ExecutorLog) -> None:
    try:
        while True:
            time.sleep(_POLL_INTERVAL_S)
            current = list_executors(context)
            # Those that go when Spark is stopped are no news.
            if context._jsc is None or java_spark(context).isStopped():
                return
            executor_log.log_changes(current)
    except (Py4JError, OSError, AttributeError):
        return  # Spark was stopped, or its JVM has gone.


def list_executors(context: SparkContext) -> list[Executor]:
    """Return the executors that there are, and those that are gone."""
    listed = java_spark(context).statusStore().executorList(False)
    result = []
    for number in range(listed.size()):
        one = listed.apply(number)
        if one.id() == _DRIVER_ID:
            continue
        reason = one.removeReason()
        result.append(
            Executor(
                name=one.id(),
                host=one.hostPort().rpartition(":")[0],
                active=one.isActive(),
                excluded=one.isExcluded(),
                reason=reason.get() if reason.isDefined() else "",
            )
        )
    return result


def describe_executors(context: SparkContext, limit: int) -> list[dict[str, Any]]:
    """Return the executors that work, for JSON: cores, tasks, and memory in bytes.

    Without a cluster it is the driver that works.

    Args:
        context: Spark's.
        limit: how many at most.
    """
    is_local = context.master.startswith("local[") or context.master == "local"
    listed = java_spark(context).statusStore().executorList(True)
    described = []
    for number in range(min(listed.size(), limit)):
        one = listed.apply(number)
        if one.id() == _DRIVER_ID and not is_local:
            continue
        described.append(
            {
                "name": one.id(),
                "host": one.hostPort().rpartition(":")[0],
                "cores": one.totalCores(),
                "active_tasks": one.activeTasks(),
                "failed_tasks": one.failedTasks(),
                "task_seconds": round(one.totalDuration() / 1e3, 1),
                "memory_used": one.memoryUsed(),
                "memory_max": one.maxMemory(),
                "excluded": one.isExcluded(),
            }
        )
    return described
