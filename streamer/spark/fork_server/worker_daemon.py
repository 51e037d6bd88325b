"""Spark's Python daemon, with what every worker needs imported before it forks.

A stream has half a dozen workers, and each would spend half a CPU second on the same imports.
Nothing here starts a thread, which a fork would not survive: OpenBLAS is told so by
`OPENBLAS_NUM_THREADS` in the session's settings.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterable

from streamer.spark.fork_server.parent_watch import end_children_with_this_process

WORKER_MODULES = (
    "orjson",
    "numpy",
    "pyarrow",
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "pyspark.sql.streaming.stateful_processor_api_client",
    "pyspark.sql.worker.plan_data_source_read",
    "streamer.spark.tasks.stages",
)
"""What workers import; none of it starts a thread."""


def import_modules(names: Iterable[str]) -> None:
    """Import modules ahead; the driver warns of those that are missing when it starts Spark."""
    for name in names:
        # A worker that needs it will meet the error again and report it through Spark.
        try:
            importlib.import_module(name)
        except ImportError:
            continue


def main() -> None:
    """Import, then serve forks as Spark's own daemon does."""
    import_modules(WORKER_MODULES)
    gc.collect()
    gc.freeze()
    from pyspark.daemon import manager

    end_children_with_this_process()
    manager()


if __name__ == "__main__":
    main()
