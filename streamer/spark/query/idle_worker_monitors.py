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
from pyspark.sql import SparkSession

_OUTER_FIELD = (
    "org$apache$spark$api$python$PythonWorkerFactory$MonitorThread$$$outer"  # as Scala names it
)


def find_idle_monitors(session: SparkSession) -> list[Any]:
    """Return the threads that look after workers of streams' sources; of tasks' they are left out.

    Args:
        session: any of the program's.
    """
    context = session.sparkContext
    thread_name = f"Idle Worker Monitor for {context.pythonExec}"
    jvm: Any = context._jvm
    # An array, since the end of a Java iterator is an exception: to be told which one costs PySpark
    # a score of calls, for which all streams of a service wait.
    matches = jvm.org.apache.commons.lang3.ThreadUtils.findThreadsByName(thread_name).toArray()
    threads = [matches[number] for number in range(len(matches))]
    return [one for one in threads if not getattr(one, _OUTER_FIELD)().useDaemonEnabled()]


def interrupt_monitors(session: SparkSession) -> None:
    """End those threads; a JVM that ends meanwhile has none.

    Args:
        session: any of the program's.
    """
    try:
        for thread in find_idle_monitors(session):
            thread.interrupt()
    except (Py4JError, OSError):
        return
