"""What is read from Spark's event log, of lines as Spark writes them."""

import json
from pathlib import Path

from tests.bench import event_log

ENDED = {
    "Event": "SparkListenerTaskEnd",
    "Stage ID": 3,
    "Task Info": {"Launch Time": 1_000, "Finish Time": 3_500},
    "Task Metrics": {
        "Executor Run Time": 2_000,
        "Shuffle Read Metrics": {"Remote Bytes Read": 7, "Local Bytes Read": 5},
        "Shuffle Write Metrics": {"Shuffle Bytes Written": 11},
    },
}


def test_tasks_that_ended_are_found_and_nothing_else(tmp_path: Path) -> None:
    lines = [{"Event": "SparkListenerStageCompleted"}, ENDED, {**ENDED, "Task Metrics": None}]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (tmp_path / "app-1").write_text(text)
    (found,) = event_log.tasks(tmp_path)
    assert found == event_log.Task(3, 1.0, 3.5, 2.0, 11, 12)
    assert event_log.between([found], 1.0, 2.0) == [found]
    assert event_log.between([found], 0.0, 1.0) == []
