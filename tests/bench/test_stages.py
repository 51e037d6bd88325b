"""The stages that are measured without Spark say what windows hold, on however many workers."""

import time
from pathlib import Path

from tests.bench import answers, traffic
from tests.bench.stages import AHEAD, staged

EVENTS = 20_000


def test_windows_are_whole_on_one_worker_and_on_many(tmp_path: Path) -> None:
    origin = time.time() // 10 * 10 + AHEAD
    paths = traffic.write(tmp_path, EVENTS, 1, origin, EVENTS / 20)
    want = answers.expected(answers.read(paths), 10, 10)
    for workers in (1, 3, 64):
        found = staged(tmp_path / "*.jsonl", workers, EVENTS)
        assert found.events == EVENTS
        assert answers.differences(want, answers.given(found.out)) == ""
        assert 1 < found.shuffled <= 60
