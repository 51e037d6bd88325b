"""What a task has read reaches the driver while it runs, and is counted cheaply."""

from __future__ import annotations

import gzip
import queue
import threading
import time
from pathlib import Path

import pytest

from streamer.core.execution import Execution
from streamer.core.message import Message
from streamer.engine.report.reading_reporter import REPORTER, ReadingReporter
from streamer.engine.report.result_frame import TaskReport
from streamer.engine.report.task_log_channel import TaskLogReceiver
from streamer.engine.stage.task_input import run_chunk
from streamer.sdk.input.replayable import Limit, RawMessages
from tests.components.inputs.reading import built

Reports = queue.Queue[tuple[int, int, int, int]]


def test_a_task_reports_when_it_has_run_for_half_a_second_and_then_what_is_new() -> None:
    reports: Reports = queue.Queue()
    ear = TaskLogReceiver(lambda *line: None, lambda *report: reports.put(report))
    now = [0.0]
    reporter = ReadingReporter(ear.address, 7, 3, lambda: now[0])
    try:
        reporter.begin_block(1_000, 100)
        reporter.add(10)
        now[0] = 0.4
        reporter.add(10)
        assert not any(thread.name == "reading" for thread in threading.enumerate())
        now[0] = 0.6
        reporter.add(10)
        assert reports.get(timeout=60) == (7, 3, 30, 300)
        reporter.add(20)
        assert reports.get(timeout=60) == (7, 3, 50, 500)
    finally:
        ear.close()


def test_a_task_that_is_done_ends_its_thread() -> None:
    ear = TaskLogReceiver(lambda *line: None)
    ear.close()
    now = [0.0]
    reporter = ReadingReporter(ear.address, 7, 3, lambda: now[0])
    now[0] = 10.0
    # Nobody listens any more, which holds nobody up.
    reporter.add(1)
    until = time.monotonic() + 60
    while any(thread.name == "reading" for thread in threading.enumerate()):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_of_a_block_that_is_in_hand_the_share_of_its_messages_is_read() -> None:
    reporter = ReadingReporter("", 0, 0, lambda: 0.0)
    assert reporter.size == 0
    reporter.begin_block(1_000, 10)
    assert reporter.size == 0
    reporter.add(5)
    assert reporter.size == 500
    reporter.add(5)
    reporter.begin_block(400, 0)
    assert reporter.size == 1_000
    reporter.begin_block(10, 1)
    assert (reporter.size, reporter.messages) == (1_400, 10)


@pytest.mark.parametrize(
    "scanner", ["lines: {}", "csv: {}", "decompress: {algorithm: gzip, into: {lines: {}}}"]
)
def test_the_bytes_of_a_file_are_counted_while_it_is_read(scanner: str, tmp_path: Path) -> None:
    data = b"a,b\n" + b"".join(b"%d,xyz\n" % number for number in range(400_000))
    path = tmp_path / "in"
    path.write_bytes(gzip.compress(data) if "gzip" in scanner else data)
    size = path.stat().st_size
    source = built(f"input: {{file: {{paths: ['{path}'], scanner: {{{scanner}}}}}}}").continue_from(
        []
    )
    start = source.initial_offset()
    end = source.latest_offset(start, 0, Limit()).offset
    extent = source.extent_between(start, end)
    assert extent == ("in", 0, size, size)
    ex = Execution(lambda: 0)
    ex.read_counter = reporter = ReadingReporter("", 0, 0, lambda: 0.0)
    sizes = []
    for piece in source.split(start, end, 1):
        for chunk in source.read(piece, ex):
            for _ in run_chunk([], chunk, ex):
                pass
            sizes.append(reporter.size)
    assert reporter.messages == (400_000 if "csv" in scanner else 400_001)
    assert sizes == sorted(sizes) and len(set(sizes)) >= 2
    assert reporter.size == size


def test_messages_count_when_the_processors_are_done_with_them() -> None:
    ex = Execution(lambda: 0)
    ex.read_counter = reporter = ReadingReporter("", 0, 0, lambda: 0.0)
    counts = []
    for _ in run_chunk([], RawMessages([b"x"] * 200, {}), ex):
        counts.append(reporter.messages)
    assert sorted(set(counts)) == [0, 64, 128, 192]
    assert reporter.messages == 200
    assert list(run_chunk([], [[Message(b"a", {}), Message(b"b", {})]], ex))
    assert reporter.messages == 202


def test_a_task_has_the_reporter_that_was_made_for_it() -> None:
    assert TaskReport("INFO").execution.read_counter is None
    reporter = ReadingReporter("", 0, 0)
    token = REPORTER.set(reporter)
    try:
        assert TaskReport("INFO").execution.read_counter is reporter
    finally:
        REPORTER.reset(token)
