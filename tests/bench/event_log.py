"""What Spark's event log says of tasks: the bytes that they shuffled, and how long they took.

The log is written by the driver (`spark.eventLog.enabled`), a JSON object a line. Every task that
ended is in it, so the sums are exact, and no page of Spark has to be asked while it runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Task:
    """A task that ended.

    Attributes:
        stage: the stage's number.
        began: Unix seconds.
        ended: Unix seconds.
        ran: seconds in the executor, without what it waited for being sent.
        written: bytes that it wrote for the shuffle.
        fetched: bytes that it read from the shuffle.
    """

    stage: int
    began: float
    ended: float
    ran: float
    written: int
    fetched: int


def settings(directory: Path) -> dict[str, str]:
    """Return Spark's settings for a log in a directory, which has to exist."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": directory.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }


def tasks(directory: Path) -> list[Task]:
    """Read the tasks of the one program that has logged into a directory."""
    (path,) = directory.iterdir()
    found = []
    with path.open() as lines:
        for line in lines:
            if line.startswith('{"Event":"SparkListenerTaskEnd"'):
                event = json.loads(line)
                info, metrics = event["Task Info"], event.get("Task Metrics")
                if metrics:
                    read = metrics["Shuffle Read Metrics"]
                    found.append(
                        Task(
                            event["Stage ID"],
                            info["Launch Time"] / 1e3,
                            info["Finish Time"] / 1e3,
                            metrics["Executor Run Time"] / 1e3,
                            metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"],
                            read["Remote Bytes Read"] + read["Local Bytes Read"],
                        )
                    )
    return found


def between(found: Sequence[Task], first: float, last: float) -> list[Task]:
    """Return the tasks that began in a stretch of time."""
    return [task for task in found if first <= task.began < last]
