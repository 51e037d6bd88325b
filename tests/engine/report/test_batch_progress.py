"""How far a micro-batch has got, on a scripted clock: the share of the files and the time left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from streamer.engine.report.batch_progress import BatchMeter, BatchProgress, ProgressLog, ReadingLog
from streamer.sdk.input.replayable import FileExtent

MB = 1_000_000


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Measured:
    """A meter whose micro-batches are in a file of 100 MB, unless it is said otherwise."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.extent: FileExtent | None = FileExtent("cars.jsonl", 0, 100 * MB, 100 * MB)
        self.asked = 0
        self.meter = BatchMeter(self._asked, self.clock)

    def _asked(self) -> FileExtent | None:
        self.asked += 1
        return self.extent

    def now(self) -> BatchProgress:
        found = self.meter.current_progress()
        assert found is not None
        return found


@pytest.fixture
def measured() -> Measured:
    return Measured()


def test_tasks_are_added_up_and_one_that_runs_again_counts_once(measured: Measured) -> None:
    meter = measured.meter
    assert meter.current_progress() is None
    meter.begin(7)
    assert measured.now() == BatchProgress(0.0, 0)
    measured.clock.now += 3
    meter.report(7, 0, 200_000, 20 * MB)
    meter.report(7, 1, 210_000, 21 * MB)
    meter.report(7, 0, 100_000, 10 * MB)
    found = measured.now()
    assert (found.seconds, found.messages, found.name) == (3.0, 310_000, "cars.jsonl")
    assert found.share == pytest.approx(0.31)
    assert measured.asked == 1, "the driver reads a file for it"
    meter.end()
    assert meter.current_progress() is None


def test_what_another_micro_batch_has_read_does_not_count(measured: Measured) -> None:
    measured.meter.begin(7)
    measured.meter.report(6, 0, 5, 5)
    assert measured.now().messages == 0
    measured.meter.end()
    measured.meter.report(7, 0, 5, 5)
    assert measured.meter.current_progress() is None


def test_the_time_left_is_that_of_all_files_by_the_speed_so_far(measured: Measured) -> None:
    measured.meter.begin(0)
    measured.clock.now += 4  # before the workers have begun
    for second in range(5):
        measured.meter.report(0, 0, second * 10_000, second * 5 * MB)
        # What two reports say is a guess.
        assert (measured.now().seconds_left is None) == (second < 2)
        measured.clock.now += 1
    # 20 MB in four seconds, so 16 s for 80 MB, of which one has passed since the last report.
    assert measured.now().seconds_left == pytest.approx(15.0)
    # Who waits for something else reads nothing: 20 MB in eight seconds by now.
    measured.clock.now += 3
    assert measured.now().seconds_left == pytest.approx(32.0)


def test_who_has_read_all_says_nothing_of_the_time_left(measured: Measured) -> None:
    measured.meter.begin(0)
    for size in (0, 60 * MB, 100 * MB):
        measured.meter.report(0, 0, size, size)
        measured.clock.now += 2
    assert measured.now().text == "100 % of cars.jsonl, 100,000,000 messages read"


def test_the_speed_goes_on_from_one_micro_batch_to_the_next(measured: Measured) -> None:
    measured.extent = FileExtent("cars.jsonl", 0, 10 * MB, 100 * MB)
    measured.meter.begin(0)
    measured.meter.report(0, 0, 0, 0)
    measured.clock.now += 2
    measured.meter.report(0, 0, 10_000, 10 * MB)
    measured.meter.end()
    measured.extent = FileExtent("cars.jsonl", 10 * MB, 50 * MB, 100 * MB)
    measured.meter.begin(1)
    measured.clock.now += 2
    measured.meter.report(1, 0, 10_000, 10 * MB)
    found = measured.now()
    # 20 MB in four seconds; that a micro-batch is written and another one begun is part of it.
    assert (found.share, found.seconds_left) == (pytest.approx(0.2), pytest.approx(16.0))


def test_a_speed_of_long_ago_is_forgotten(measured: Measured) -> None:
    measured.meter.begin(0)
    size = 0
    for second in range(100):
        size += 2 * MB if second < 20 else MB // 2
        measured.meter.report(0, 0, second, size)
        measured.clock.now += 1
    left = measured.now().seconds_left
    assert left == pytest.approx((100 * MB - size) / (MB / 2) - 1, abs=1)


def test_a_micro_batch_that_is_read_anew_has_no_estimate_at_first(measured: Measured) -> None:
    for _ in range(2):
        measured.meter.begin(0)
        measured.meter.report(0, 0, 1, MB)
        assert measured.now().seconds_left is None
        measured.clock.now += 2
        measured.meter.report(0, 0, 5, 5 * MB)
        assert measured.now().seconds_left is not None


def test_more_bytes_than_there_are_is_all_of_them(measured: Measured) -> None:
    # What is unpacked is looked at twice.
    measured.extent = FileExtent("cars.csv.gz", 10 * MB, 20 * MB, 40 * MB)
    measured.meter.begin(0)
    measured.meter.report(0, 0, 1, 90 * MB)
    assert measured.now().share == 0.75


def test_without_files_messages_alone_are_said(measured: Measured) -> None:
    measured.extent = None
    measured.meter.begin(0)
    measured.meter.report(0, 0, 1_240_000, 0)
    assert measured.now().text == "1,240,000 messages read"


@pytest.mark.parametrize(
    ("left", "text"),
    [
        (0.2, "about 1 s left"),
        (12.4, "about 12 s left"),
        (59.6, "about 1 min left"),
        (134, "about 2 min 10 s left"),
        (599, "about 10 min left"),
        (1_500, "about 25 min left"),
        (3_598, "about 1 h left"),
        (12_100, "about 3 h 20 min left"),
    ],
)
def test_the_progress_in_words(left: float, text: str) -> None:
    progress = BatchProgress(5.0, 1_240_000, "cars.jsonl", 0.419, left)
    assert progress.text == f"41 % of cars.jsonl, {text}, 1,240,000 messages read"


def test_the_progress_as_fields() -> None:
    assert BatchProgress(20.04, 5, "a.csv", 0.5, 12.4).fields == {
        "seconds": 20.0,
        "messages": 5,
        "share": "50 % of a.csv",
        "seconds_left": 12,
    }
    assert BatchProgress(20.0, 5).fields == {"seconds": 20.0, "messages": 5}


def test_the_log_has_a_line_of_it_ever_more_seldom() -> None:
    log = ProgressLog()
    due = [second for second in range(100) if log.is_due(BatchProgress(second, 0))]
    assert due == [10, 20, 40, 80]


def test_files_that_take_many_micro_batches_have_lines_by_the_time_that_they_all_take() -> None:
    lines: list[tuple[str, str, Mapping[str, Any]]] = []
    now = 100.0
    log = ReadingLog(lambda *line: lines.append(line), lambda: now)
    for second in range(50):
        now = 100.0 + second
        log.log(BatchProgress(0.5, 10, "a.csv", second / 50, 50.0 - second))
        log.log(BatchProgress(0.5, 10))
    log.log(BatchProgress(99.0, 10, "a.csv", 1.0))
    assert [(level, text) for level, text, _ in lines] == [("INFO", "The files are being read")] * 3
    assert [fields["seconds"] for _, _, fields in lines] == [10.0, 20.0, 40.0]
    assert lines[1][2]["share"] == "40 % of a.csv"
    assert lines[1][2]["seconds_left"] == 30
