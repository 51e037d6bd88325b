"""The pieces of a micro-batch as Spark gets them: few tasks, however many pieces there are."""

from __future__ import annotations

import json
import pickle
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.connectors.kafka.input.positions import KafkaPosition, list_kafka_ends
from streamer.core.durations import SECOND
from streamer.engine.planner.pacing import PacingSettings
from streamer.engine.planner.planner_channels import MicroBatchOffset, PlannerChannel
from streamer.engine.planner.trigger import BatchClock
from streamer.engine.report.batch_progress import BatchMeter
from streamer.engine.report.batch_work import BatchWork
from streamer.engine.report.reading_reporter import REPORTER, ReadingReporter
from streamer.engine.report.task_log_channel import TaskLogReceiver
from streamer.engine.stage.stateless_stage import StatelessStage
from streamer.engine.stage.task_input import SourcePiece, TaskPlan
from streamer.plan import make_plan
from streamer.sdk.input.replayable import LatestOffset, Limit, Offset
from streamer.spark.query.source import SourcePlan, StreamReader
from streamer.window import MicroBatchInfo, SystemWindow
from streamer.window.settings.back_pressure import BackPressure
from tests.components.inputs.reading import built
from tests.spark.query.empty_source import EmptySource

PACING = PacingSettings(0)


@pytest.mark.parametrize(("files", "tasks"), [(0, 1), (1, 1), (16, 16), (17, 9), (500, 16)])
def test_many_small_files_share_few_tasks_and_every_piece_is_read_once_in_order(
    files: int, tasks: int, tmp_path: Path
) -> None:
    for number in range(files):
        (tmp_path / f"{number:05d}").write_text("x\n")
    source = built(f"input: {{file: {{paths: ['{tmp_path}/*']}}}}").continue_from([])
    plan = SourcePlan(source, (), "a", PlannerChannel(tmp_path / "signals"), Limit(), PACING, 2)
    reader = StreamReader(plan)
    start: dict[str, Any] = reader.initialOffset()
    end = {**start, "data": source.latest_offset(source.initial_offset(), 0, Limit()).offset}
    partitions = reader.partitions(start, end)
    assert len(partitions) == tasks
    # Those of a single task go to Spark with the plan, once; a look at where it stands takes none.
    taken = reader.getCache(start, end)
    assert (taken is not None) == (tasks == 1 and start != end)
    assert reader.getCache(start, end) is None
    rows = [
        row
        for partition in partitions
        for batch in reader.read(pickle.loads(pickle.dumps(partition)))
        for row in batch.to_pylist()
    ]
    assert [row["number"] for row in rows] == list(range(max(files, 1)))
    assert taken is None or [row for batch in taken for row in batch.to_pylist()] == rows
    pieces = [pickle.loads(row["piece"]) for row in rows if row["piece"] is not None]
    shown = [Path(source.partition_of(piece)).name for piece in pieces]
    assert shown == [f"{number:05d}" for number in range(files)]


def test_a_look_says_how_many_messages_wait(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("x\n" * 40)
    source = built(f"input: {{file: {{paths: ['{tmp_path}/in']}}}}").continue_from([])
    signals = PlannerChannel(tmp_path / "signals")
    signals.clear()
    assert signals.planner.read().backlog == 0
    reader = StreamReader(SourcePlan(source, (), "a", signals, Limit(), PACING, 2))
    end = reader.latestOffset(reader.initialOffset(), None)  # type: ignore[arg-type]
    assert signals.planner.read().backlog == 40
    # What was taken waits no more.
    StreamReader(reader._plan, answer_after=0).latestOffset(end, None)  # type: ignore[arg-type]
    assert signals.planner.read().backlog == 0


def test_a_micro_batch_is_cut_for_the_cores_that_there_are_when_it_is_planned(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").write_text(("x" * 99 + "\n") * 90_000)
    source = built(f"input: {{file: {{paths: ['{tmp_path}/in']}}}}").continue_from([])
    signals = PlannerChannel(tmp_path / "signals")
    signals.clear()
    reader = StreamReader(SourcePlan(source, (), "a", signals, Limit(), PACING, 2))
    start = reader.initialOffset()
    here = reader.latestOffset(start, None)  # type: ignore[arg-type]
    signals.driver.update(tasks=8)
    there = reader.latestOffset(start, None)  # type: ignore[arg-type]
    assert [here["pieces"], there["pieces"]] == [2, 8]
    # One that is replayed is cut as it was before.
    signals.driver.update(tasks=4)
    assert len(reader.partitions(start, there)) == 8


def test_the_first_micro_batch_of_a_start_is_small_so_that_results_come_soon(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").write_text("x\n" * 1_000_000)
    (tmp_path / "long").write_text(("x" * 999 + "\n") * 40_000)
    for name, line, first, whole in (("in", 2, 100_000, 900_000), ("long", 1_000, 16_778, 23_222)):
        source = built(f"input: {{file: {{paths: ['{tmp_path}/{name}']}}}}").continue_from([])
        signals = PlannerChannel(tmp_path / "signals")
        signals.clear()
        reader = StreamReader(SourcePlan(source, (), "a", signals, Limit(), PACING, 2))
        ends = [reader.initialOffset()]
        for _ in range(2):
            ends.append(reader.latestOffset(ends[-1], None))  # type: ignore[arg-type]
        taken = [end["data"]["pos"] // line for end in ends]
        assert [taken[1], taken[2] - taken[1]] == [first, whole]
        assert (ends[1]["lag"], ends[1]["ended"]) == (True, False)
    # What a config wants to be smaller is.
    reader = StreamReader(SourcePlan(source, (), "a", signals, Limit(10, 5_000), PACING, 2))
    end = reader.latestOffset(reader.initialOffset(), None)  # type: ignore[arg-type]
    assert end["data"]["pos"] == 5_000


def test_it_is_said_where_in_its_files_a_micro_batch_is(tmp_path: Path) -> None:
    for name, lines in (("a", 30_000), ("b", 20_000)):
        (tmp_path / name).write_text("x\n" * lines)
    source = built(f"input: {{file: {{paths: ['{tmp_path}/*']}}}}").continue_from([])
    signals = PlannerChannel(tmp_path / "signals")
    reader = StreamReader(SourcePlan(source, (), "a", signals, Limit(40_000), PACING, 2))
    start = reader.initialOffset()
    reader.partitions(start, start)  # there is no directory, which does not matter
    signals.clear()
    assert signals.planner.read().extent is None
    for extent in ((0, 80_000), (80_000, 20_000)):
        end = reader.latestOffset(start, None)  # type: ignore[arg-type]
        reader.partitions(start, end)
        assert signals.planner.read().extent == ("2 files", *extent, 100_000)
        start = end


def test_a_file_of_many_lines_shows_its_share_as_its_tasks_read_it(tmp_path: Path) -> None:
    (tmp_path / "cars.jsonl").write_text('{"speed":1}\n' * 400_000)
    text = f"input: {{file: {{paths: ['{tmp_path}/cars.jsonl']}}}}\noutput: {{drop: {{}}}}"
    source = built(text).continue_from([])
    signals = PlannerChannel(tmp_path / "signals")
    signals.clear()
    reader = StreamReader(SourcePlan(source, (), "a", signals, Limit(), PACING, 2))
    meter = BatchMeter(lambda: signals.planner.read().extent)
    ear = TaskLogReceiver(lambda *line: None, meter.report)
    plan = make_plan(parse_config(text))
    start, shown = reader.initialOffset(), []
    try:
        for batch in range(2):
            end = reader.latestOffset(start, None)  # type: ignore[arg-type]
            lines = (end["data"]["pos"] - start["data"]["pos"]) // len('{"speed":1}\n')
            meter.begin(batch)
            partitions = reader.partitions(start, end)
            for task, partition in enumerate(partitions):
                REPORTER.set(ReadingReporter(ear.address, batch, task, iter(range(10**9)).__next__))
                stage = StatelessStage(TaskPlan.of(plan))
                for rows in reader.read(partition):
                    for row in rows.to_pylist():
                        piece = pickle.loads(row["piece"])
                        assert list(stage.frames(SourcePiece(source, row["number"], piece)))
            until = time.monotonic() + 60
            while (found := meter.current_progress()) is None or found.messages < lines:
                assert time.monotonic() < until, found
                time.sleep(0.01)
            assert found.messages == lines
            shown.append(found.text.split(", ")[0])
            meter.end()
            start = end
    finally:
        REPORTER.set(None)
        ear.close()
    assert shown == ["25 % of cars.jsonl", "100 % of cars.jsonl"]


def test_a_micro_batch_has_more_where_more_cores_share_it(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("x\n" * 10_000)
    source = built(f"input: {{file: {{paths: ['{tmp_path}/in']}}}}").continue_from([])
    signals = PlannerChannel(tmp_path / "signals")
    signals.clear()
    window = SystemWindow(size=10 * SECOND)
    more = [1_000, 1_000, 2_000, 3_000, 4_000, 8_000]
    for windows, expected in (((window,), more), ((), [1_000] * 6)):
        signals.clear()
        reader = StreamReader(SourcePlan(source, windows, "a", signals, Limit(1_000), PACING, 2))
        start = reader.initialOffset()
        taken = []
        for tasks in (None, 1, 2, 3, 4, 8):
            if tasks is not None:
                signals.driver.update(tasks=tasks)
            end = reader.latestOffset(start, None)  # type: ignore[arg-type]
            taken.append(end["data"]["pos"] // 2)
        assert taken == expected
    assert Limit(1_000).share_of(8) == (8_000, 8 * Limit().size)
    assert Limit(1_000, 5_000).share_of(8) == (8_000, 5_000), (
        "a buffer of the config's has no more room"
    )


def info_of(offset: dict[str, Any]) -> MicroBatchInfo:
    return MicroBatchOffset.from_fields(offset).batch_info()


class Asked(EmptySource):
    """An input that notes until when it was asked what there is."""

    def __init__(self) -> None:
        self.until: list[int] = []
        self.quiet = False

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        if self.quiet:
            return LatestOffset(start, 0, is_ended=False)
        self.until.append(now)
        return LatestOffset({"n": len(self.until)}, 1, is_ended=False)


def test_a_micro_batch_has_all_that_came_before_its_time(tmp_path: Path) -> None:
    # By the time that Spark records, a little later, a window could end whose last events come with
    # the next micro-batch: they were late.
    signals, asked = PlannerChannel(tmp_path / "signals"), Asked()
    signals.clear()
    reader = StreamReader(
        SourcePlan(asked, (SystemWindow(size=10 * SECOND),), "a", signals, Limit(), PACING, 2)
    )
    at = reader.latestOffset(reader.initialOffset(), None)
    assert info_of(at).batch_time == asked.until[0]
    at = reader.latestOffset(at, None)  # type: ignore[arg-type]
    assert info_of(at).batch_time == asked.until[1] > asked.until[0]


class Machine:
    """A machine's clock, which can be set, and its steady one."""

    def __init__(self) -> None:
        self.wall, self.steady = 1628330400 * SECOND, 50 * SECOND

    def go_on(self, seconds: float) -> None:
        self.wall += round(seconds * SECOND)
        self.steady += round(seconds * SECOND)

    def clock(self) -> BatchClock:
        return BatchClock(lambda: self.wall, lambda: self.steady)


def test_where_the_machines_clock_is_set_back_a_stream_goes_on(tmp_path: Path) -> None:
    signals, asked, machine = PlannerChannel(tmp_path / "signals"), Asked(), Machine()
    signals.clear()
    plan = SourcePlan(asked, (SystemWindow(size=10 * SECOND),), "a", signals, Limit(), PACING, 2)
    reader = StreamReader(plan, machine.clock(), answer_after=0)
    at = reader.latestOffset(reader.initialOffset(), None)
    begun = info_of(at).batch_time
    assert begun == machine.wall
    machine.wall -= 3600 * SECOND
    machine.go_on(20)
    at = reader.latestOffset(at, None)  # type: ignore[arg-type]
    assert info_of(at).batch_time == begun + 10 * SECOND == asked.until[-1]
    # A window that is due by the stream's time closes though the machine's clock is behind.
    asked.quiet = True
    signals.driver.update(due=begun + 15 * SECOND)
    machine.go_on(9.9)
    assert reader.latestOffset(at, None) is at  # type: ignore[arg-type]
    machine.go_on(0.2)
    ticked = reader.latestOffset(at, None)  # type: ignore[arg-type]
    assert ticked["tick"] > at["tick"] and info_of(ticked).batch_time >= begun + 15 * SECOND
    # Another process plans: it goes on from what is in the log.
    other = StreamReader(plan, machine.clock())
    machine.go_on(2)
    asked.quiet = False
    again = other.latestOffset(ticked, None)  # type: ignore[arg-type]
    assert info_of(again).batch_time == ticked["time"]
    machine.go_on(2)
    later = other.latestOffset(again, None)  # type: ignore[arg-type]
    assert info_of(later).batch_time == ticked["time"] + SECOND


def test_an_offset_says_by_how_much_the_clock_was_set_forward(tmp_path: Path) -> None:
    signals, machine = PlannerChannel(tmp_path / "signals"), Machine()
    signals.clear()
    plan = SourcePlan(Asked(), (SystemWindow(size=10 * SECOND),), "a", signals, Limit(), PACING, 2)
    reader = StreamReader(plan, machine.clock())
    at, stood = reader.initialOffset(), []
    for step in (0, 0, 3600, 0):
        machine.go_on(20)
        machine.wall += step * SECOND
        at = reader.latestOffset(at, None)  # type: ignore[arg-type]
        stood.append(info_of(at).suspended)
    assert stood == [0, 0, 3600 * SECOND, 0]


def test_an_offset_says_how_long_the_stream_itself_had_the_micro_batch_before_in_hand(
    tmp_path: Path,
) -> None:
    signals, machine = PlannerChannel(tmp_path / "signals"), Machine()
    signals.clear()
    plan = SourcePlan(Asked(), (SystemWindow(size=10 * SECOND),), "a", signals, Limit(), PACING, 2)
    reader = StreamReader(plan, machine.clock())
    first = reader.latestOffset(reader.initialOffset(), None)
    t = first["time"]
    # Its tasks waited for a core for a minute, and its delivery took 15 s.
    machine.go_on(75)
    signals.driver.update(work=BatchWork(t, machine.steady - 15 * SECOND, 0, 0, 15 * SECOND))
    second = reader.latestOffset(first, None)  # type: ignore[arg-type]
    pressure = info_of(second).pressure
    assert pressure == BackPressure(((t + 60 * SECOND, t + 75 * SECOND),), 0, 15 * SECOND)
    assert info_of(json.loads(json.dumps(second))).pressure == pressure, "a replay decides the same"
    # It is about that micro-batch alone: the next one waited for something else.
    machine.go_on(75)
    third = reader.latestOffset(second, None)  # type: ignore[arg-type]
    assert info_of(third).pressure is None
    # Another start, or another process that plans, has not seen when it began.
    signals.driver.update(work=BatchWork(third["time"], machine.steady, 0, 0, 15 * SECOND))
    for name in ("a", "b"):
        other = StreamReader(replace(plan, start_id=name), machine.clock())
        assert info_of(other.latestOffset(third, None)).pressure is None  # type: ignore[arg-type]


class Topic(EmptySource):
    """A Kafka input of one partition that ends where it is told to."""

    has_partitions = True

    def __init__(self, end: int) -> None:
        self.end = end
        self.most = 100

    @property
    def newest_ends(self) -> Offsets:
        return {"cars": {"0": self.end}}

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        at = list_kafka_ends(start)[0]["cars"]["0"] if start else 0
        until = min(self.end, at + self.most)
        position = KafkaPosition({("cars", 0): until}).to_offset()
        return LatestOffset(position, self.end - at, has_more=self.end > until)


def test_where_kafka_ended_at_the_start_stands_in_offsets_until_it_is_reached(
    tmp_path: Path,
) -> None:
    signals, topic = PlannerChannel(tmp_path / "signals"), Topic(250)
    signals.clear()

    def look(start: dict[str, Any], name: str, window: SystemWindow | None) -> dict[str, Any]:
        windows = () if window is None else (window,)
        plan = SourcePlan(topic, windows, name, signals, Limit(), PACING, 2)
        return StreamReader(plan).latestOffset(start, None)  # type: ignore[arg-type]

    window = SystemWindow(size=10 * SECOND)
    first: dict[str, Any] = {"data": {}, "tick": 0, "start": "", "ended": False}
    stood = [{"cars": {"0": 250}}]
    assert "backlog_ends" not in look(first, "a", None), "nothing closes"
    at = look(first, "a", window)
    assert at["backlog_ends"] == stood and list_kafka_ends(at["data"]) == [{"cars": {"0": 100}}]
    # What comes meanwhile is not of the backlog.
    topic.end = 600
    at = look(at, "a", window)
    assert at["backlog_ends"] == stood
    # The process that plans may be another one now: what it needs is in the log.
    at = look(at, "a", window)
    assert at["backlog_ends"] == stood
    at = look(at, "a", window)
    assert "backlog_ends" not in at
    # Another start has its own, unless nothing waits.
    assert look(at, "b", window)["backlog_ends"] == [{"cars": {"0": 600}}]
    topic.most = 1000
    at = look(at, "b", window)
    signals.driver.update(due=1)
    assert "backlog_ends" not in look(at, "c", window)
