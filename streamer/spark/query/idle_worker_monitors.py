"""Ends the threads that Spark leaves behind a stream.

For each query with a source in Python, Spark makes a `PythonWorkerFactory`, and with it a thread
that looks every ten seconds for workers that are idle. It never ends, and such a factory has no
idle workers. But a thread inherits the session of who made it: it keeps the query's, with every
plan of its micro-batches. A service whose streams had started 1,300 times had so filled a heap of
1 GB, and did nothing but clear it.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from streamer.spark.compat import FALLBACKS, Fallback, Fallbacks, is_spark_alive, java_packages

_OUTER_FIELD = (
    "org$apache$spark$api$python$PythonWorkerFactory$MonitorThread$$$outer"  # as Scala names it
)


def thread_name(context: SparkContext) -> str:
    """Return the name of all such threads, of tasks' workers too."""
    return f"Idle Worker Monitor for {context.pythonExec}"


def find_idle_monitors(session: SparkSession) -> list[Any]:
    """Return the threads that look after workers of streams' sources; of tasks' they are left out.

    Args:
        session: any of the program's.
    """
    return [one for one in _find_monitors(session) if not is_of_tasks(one)]


def is_of_tasks(monitor: Any) -> bool:
    """Return whether a thread monitors workers that a daemon forks, which are those of tasks."""
    return bool(getattr(monitor, _OUTER_FIELD)().useDaemonEnabled())


def _find_monitors(session: SparkSession) -> list[Any]:
    context = session.sparkContext
    jvm = java_packages(context)
    # An array, since the end of a Java iterator is an exception: to be told which one costs PySpark
    # a score of calls, for which all streams of a service wait.
    matches = jvm.org.apache.commons.lang3.ThreadUtils.findThreadsByName(
        thread_name(context)
    ).toArray()
    return [matches[number] for number in range(len(matches))]


def interrupt_monitors(
    session: SparkSession, *, tasks_ran: bool = False, fallbacks: Fallbacks = FALLBACKS
) -> None:
    """End those threads; a JVM that ends meanwhile has none.

    Args:
        session: any of the program's.
        tasks_ran: whether tasks ran in Python. On a single machine the driver then has a thread
            for their workers, which stays: where there is none, Spark calls them otherwise.
        fallbacks: counts what is not as it is known.
    """
    context = session.sparkContext
    try:
        monitors = _find_monitors(session)
        if not monitors and tasks_ran and context.master.startswith("local"):
            fallbacks.add(Fallback.UNKNOWN_MONITORS, f"no thread is named {thread_name(context)!r}")
        for monitor in monitors:
            if not is_of_tasks(monitor):
                monitor.interrupt()
    except (Py4JError, OSError) as error:
        if is_spark_alive(context):
            reason = str(error).partition("\n")[0]
            fallbacks.add(Fallback.UNKNOWN_MONITORS, reason)
