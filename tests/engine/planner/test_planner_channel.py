"""The two documents of hints: whole, of one start, written by one process each."""

import json
import pickle
import threading

import pytest

from streamer.engine.planner.planner_channels import DriverHints, PlannerChannel, PlannerHints
from streamer.engine.report.batch_work import BatchWork
from streamer.sdk.input.replayable import FileExtent

DRIVER = DriverHints(7, True, 5, 2, 3, 9, 4, BatchWork(1, 2, 3, 4, 5), True)
PLANNER = PlannerHints("no broker answers", True, 40, True, FileExtent("2 files", 0, 8, 10), 7)


@pytest.fixture
def channel(tmp_path):
    made = PlannerChannel(tmp_path / "signals")
    made.clear()
    return made


@pytest.mark.parametrize(("side", "hints"), [("driver", DRIVER), ("planner", PLANNER)])
def test_the_other_process_reads_what_was_written_at_once(channel, side, hints):
    planner = pickle.loads(pickle.dumps(channel))
    assert getattr(planner, side).read() == type(hints)()
    getattr(channel, side).update(**vars(hints))
    assert getattr(planner, side).read() == getattr(channel, side).read() == hints


def test_each_process_writes_its_own_document_and_keeps_what_it_has_written(channel, tmp_path):
    planner = pickle.loads(pickle.dumps(channel))
    planner.planner.update(backlog=40)
    channel.driver.update(due=5)
    planner.planner.update(trouble="away")
    channel.driver.update(tasks=8)
    assert channel.planner.read() == PlannerHints("away", backlog=40)
    assert planner.driver.read() == DriverHints(due=5, tasks=8)
    assert sorted(path.name for path in (tmp_path / "signals").iterdir()) == [
        "driver.json",
        "planner.json",
    ]


def test_hints_that_are_the_same_are_not_written_again(channel, tmp_path):
    channel.driver.update(due=None)
    assert not (tmp_path / "signals" / "driver.json").exists()
    channel.driver.update(due=5)
    (tmp_path / "signals" / "driver.json").unlink()
    channel.driver.update(due=5)
    assert not (tmp_path / "signals" / "driver.json").exists()


def test_hints_of_another_start_are_not_read(channel, tmp_path):
    former_planner = pickle.loads(pickle.dumps(channel))
    channel.driver.update(due=5)
    # The next start after a `kill -9`, and a planner that outlives its driver for a moment.
    other = PlannerChannel(tmp_path / "signals")
    assert other.driver.read() == DriverHints(), "before it begins"
    other.clear()
    former_planner.planner.update(trouble="gone for good", is_lost=True)
    assert other.planner.read() == PlannerHints()
    other.driver.update(due=9)
    assert former_planner.driver.read() == DriverHints()


def test_files_of_any_other_form_are_deleted_at_a_start(channel, tmp_path):
    (tmp_path / "signals" / "known").write_text("[]")
    (tmp_path / "signals" / "stop").touch()
    channel.clear()
    assert list((tmp_path / "signals").iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", '{"start":'])
def test_a_file_that_was_cut_short_is_none(channel, tmp_path, text):
    (tmp_path / "signals" / "planner.json").write_text(text)
    assert channel.planner.read() == PlannerHints()


def test_a_stream_that_has_stopped_or_not_begun_writes_nothing_over_its_successors_hints(
    channel, tmp_path
):
    channel.stop()
    successor = PlannerChannel(tmp_path / "signals")
    successor.driver.update(min_interval=3)
    assert channel.driver.read() == DriverHints(is_stopping=True)
    successor.clear()
    successor.driver.update(due=5)
    channel.driver.update(min_interval=3)
    channel.stop()
    assert successor.driver.read() == DriverHints(due=5)


def test_threads_of_a_process_do_not_lose_each_others_hints(channel, tmp_path):
    def publish(name):
        for number in range(1, 101):
            channel.driver.update(**{name: number})
            assert json.loads((tmp_path / "signals" / "driver.json").read_text())

    threads = [threading.Thread(target=publish, args=(name,)) for name in ("due", "tasks")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hints = channel.driver.read()
    assert (hints.due, hints.tasks) == (100, 100)
