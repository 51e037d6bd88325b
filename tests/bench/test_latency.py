"""What the latency benchmark makes of times: goals, figures of former runs, answers, drawings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.bench.latency import figures, hops, requests, streams, traced
from tests.bench.latency.figures import Goal, Latency
from tests.bench.load import plots
from tests.bench.load.feeder import Pipe

_BARE = Latency("bare Spark", "floor", "a micro-batch", 1, 0.2, 0.2, 0.5, 60)


def test_a_goal_is_no_less_than_bare_spark_allows():
    goal = Goal(0.13, 0.3)
    assert goal.at_least(None) == goal
    assert goal.at_least(_BARE) == Goal(1.3 * 0.2, 0.3)


def test_what_is_measured_again_stands_in_place_of_the_former(tmp_path: Path):
    assert figures.read(tmp_path) == []
    other = replace(_BARE, program="streamer")
    figures.write(tmp_path / "drawings", [_BARE, other])
    again = replace(_BARE, p50=0.1)
    former = figures.read(tmp_path / "drawings")
    assert figures.merge(former, [again]) == [again, other]


def test_single_times_become_quantiles():
    seconds = [0.1] * 98 + [1.0, 2.0]
    one = figures.of_seconds("streamer", "requests", "name", 1, seconds, 0.5)
    assert (one.p50, one.p99, one.count) == (0.1, 1.0, 100)


def test_the_head_of_an_answer_is_read():
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\ncontent-length:  12\r\n\r\n"
    status, headers = requests.parse_head(head)
    assert (status, headers["content-length"]) == (200, "12")


def test_a_named_pipe_does_not_end_with_what_writes(tmp_path: Path):
    with streams._opened(tmp_path / "work" / "events") as reader:
        pipe = Pipe(tmp_path / "work" / "events")
        pipe.send([b"one", b"two"])
        pipe.finish()
        other = Pipe(tmp_path / "work" / "events")
        other.send([b"three"])
        with open(reader, "rb", buffering=0, closefd=False) as file:
            assert file.read(100) == b"one\ntwo\nthree\n"


def test_a_drawing_is_made_of_what_there_is(tmp_path: Path):
    windows = [
        Latency("streamer", "windows", f"windows {kind.name}", 100, 0.2, 0.5, 0.1, 9, size)
        for kind in streams.KINDS
        for size in (1, 10)
    ]
    passing = Latency("Benthos", "stateless", "a mapping", 100, 0.001, 0.002, 0.1, 9)
    plots.draw_latency(tmp_path / "latency.svg", [_BARE, passing, *windows])
    text = (tmp_path / "latency.svg").read_text()
    assert "bare Spark" in text
    assert "Benthos" in text


def test_tables_of_a_page_are_written_anew():
    found = [
        Latency("streamer", "stateless", "a mapping", 1_000, 0.1504, 0.5, 0.25, 9),
        Latency("Benthos", "stateless", "a mapping", 1_000, 0.00123, 0.05, 0.01, 9),
        Latency("streamer", "windows", "windows of 1 s keyed", 100, 0.2, 0.5, 0.1, 9, 1),
    ]
    page = "Text.\n<!-- latency: stateless -->\nold\n<!-- end -->\nMore.\n"
    once = figures.fill_page(page, found)
    assert "| 1,000 | 150 ms | 500 ms | 0.25 | 1.2 ms | 50 ms | 0.01 |\n" in once
    assert "old" not in once
    assert once.startswith("Text.\n") and once.endswith("<!-- end -->\nMore.\n")
    assert figures.fill_page(once, found) == once
    assert "| 1 s keyed | 200 ms | 500 ms | 0.10 |\n" in figures.make_table("windows", found)


def test_hops_are_the_times_from_station_to_station():
    notes = [
        {"station": "received", "at": 10.0, "number": None},
        {"station": "called", "at": 10.1, "number": 6},
        {"station": "spooled", "at": 10.01, "number": None},
        {"station": "called", "at": 10.2, "number": 7},
        {"station": "computed", "at": 10.3, "number": 7},
        {"station": "answered", "at": 10.31, "number": 7},
        {"station": "received", "at": 11.0, "number": None},
        {"station": "answered", "at": 11.5, "number": 8},
    ]
    logs = {7: {"planned": 10.05, "logged": 10.06, "committed": 10.4}}
    took = hops.measure(notes, logs)
    assert [round(took[name][0], 3) for name, _ in hops.STATIONS[1:]] == [
        *(0.01, 0.04, 0.01, 0.14, 0.1, 0.01, 0.09)
    ]
    assert all(len(seconds) == 1 for seconds in took.values())


def test_calls_are_noted_with_the_number_of_their_micro_batch():
    class Called:
        def deliver(self, batch: int, frames: list[str]) -> str:
            return "done"

    noted: list[tuple[str, int | None]] = []
    traced.note_calls(Called, "deliver", "before", "after", lambda *one: noted.append(one))
    assert Called().deliver(3, []) == "done"
    assert noted == [("before", 3), ("after", 3)]
