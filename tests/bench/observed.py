"""The program, which writes Spark's progress of its micro-batches to a file when it gets SIGUSR1.

python -m tests.bench.observed FILE [arguments of streamer]
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from streamer.cli.main import main
from streamer.spark.query import query_run

KEPT = 1000
"""Micro-batches that Spark is to remember: `spark.sql.streaming.numRecentProgressUpdates`."""


def _observe(file: Path) -> None:
    start = query_run.start_query
    queries: list[Any] = []

    def start_query(*given: Any, **named: Any) -> Any:
        queries.append(start(*given, **named))
        return queries[-1]

    def write() -> None:
        progress = [json.loads(one.json) for query in queries for one in query.recentProgress]
        draft = file.with_suffix(".draft")
        draft.write_text(json.dumps(progress))
        draft.replace(file)

    query_run.start_query = start_query
    signal.signal(signal.SIGUSR1, lambda *_: threading.Thread(target=write, daemon=True).start())


if __name__ == "__main__":
    _observe(Path(sys.argv[1]))
    sys.argv = ["streamer", *sys.argv[2:]]
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
