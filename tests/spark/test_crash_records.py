"""What the driver keeps of messages that end workers, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamer.engine.driver.failure_diagnosis import Diagnosis
from streamer.engine.stage.crash_search import CrashInstructions, WorkerCrashesError
from streamer.sdk.processing.crashes import Crash
from streamer.spark.query.worker_crashes import CRASH_FILE, WorkerCrashes

ENDED = Diagnosis("a Python worker ended", {"label": "", "path": "root.input"}, worker_ended=True)
KILLED = "Python worker exited unexpectedly (crashed)"
SIGNALLED = f"{KILLED}: Fatal Python error: Segmentation fault\n\nCurrent thread"
FIRST = Crash("0", "", 7, "root.pipeline.processors.0", "", 1, "SIGSEGV", 9, "x")
SECOND = FIRST._replace(number=8)


def told(crashes: Crash) -> str:
    return f"py4j: {WorkerCrashesError([crashes]).failure.text}\n at"


class Log:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, Any]] = []

    def __call__(self, *line: Any) -> None:
        self.lines.append(line)


@pytest.mark.parametrize(("errors", "searched"), [([SIGNALLED], 1), ([KILLED, KILLED], 2)])
def test_a_search_begins_when_it_was_hardly_anybody_else(
    errors: list[str], searched: int, tmp_path: Path
) -> None:
    crashes, log = WorkerCrashes(tmp_path), Log()
    for count, error in enumerate(errors, 1):
        assert not crashes.check_failure(3, error, ENDED, log)
        assert crashes.crash_order(3).search == (count == searched)
    assert [level for level, _, _ in log.lines] == ["WARN"]
    # Others are none of its business, nor is what comes after it.
    assert crashes.crash_order(4) == crashes.crash_order(2) == CrashInstructions()


def test_one_end_of_a_worker_at_each_of_two_micro_batches_begins_none(tmp_path: Path) -> None:
    crashes, log = WorkerCrashes(tmp_path), Log()
    crashes.check_failure(3, KILLED, ENDED, log)
    crashes.check_failure(4, KILLED, ENDED, log)
    assert (crashes.crash_order(4).search, log.lines) == (False, [])


def test_another_failure_begins_none(tmp_path: Path) -> None:
    crashes, log = WorkerCrashes(tmp_path), Log()
    for _ in range(3):
        assert not crashes.check_failure(3, "a broker is away", Diagnosis("a broker is away"), log)
    assert (crashes.crash_order(3), log.lines) == (CrashInstructions(), [])


def test_what_was_found_outlives_the_program(tmp_path: Path) -> None:
    crashes, log = WorkerCrashes(tmp_path), Log()
    assert crashes.check_failure(3, told(FIRST), Diagnosis(""), log)
    assert crashes.check_failure(3, told(SECOND), Diagnosis(""), log)
    assert [fields["path"] for _, _, fields in log.lines] == [FIRST.path] * 2
    # Found again, it was not gone past: that is a failure like any other, lest it goes on for ever.
    assert not crashes.check_failure(3, told(SECOND), Diagnosis(""), log)
    again = WorkerCrashes(tmp_path)
    assert again.crash_order(3) == CrashInstructions(True, (FIRST, SECOND))
    assert again.crash_order(4) == CrashInstructions()
    # What comes next begins with nothing, and takes the place of what was kept.
    again.check_failure(4, SIGNALLED, ENDED, log)
    assert WorkerCrashes(tmp_path).crash_order(4) == CrashInstructions(True)
    assert WorkerCrashes(tmp_path).crash_order(3) == CrashInstructions()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"micro_batch": 1, "order": "x"}', b"7"])
def test_a_damaged_record_is_found_anew(body: bytes, tmp_path: Path) -> None:
    (tmp_path / CRASH_FILE).write_bytes(body)
    assert WorkerCrashes(tmp_path).crash_order(1) == CrashInstructions()
