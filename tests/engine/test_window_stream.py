"""A windowed stream from its files to its output, without Spark: intake, release, delivery."""

import math
import random
from collections import Counter, defaultdict
from datetime import UTC, datetime

import pytest

from streamer.core.durations import SECOND
from streamer.sdk.input.replayable import Limit

from .stream import Run, write_lines

T = 1_700_000_000  # seconds; a multiple of 10
CONFIG = """
input:
  file: {paths: [cars.jsonl]}
buffer:
  system_window:
    timestamp_mapping: root = this.ts
    size: 10s
    %s
pipeline:
  processors:
    %s
    - mapping: |
        root = if batch_index() == 0 {
          {
            "light": this.light,
            "end": meta("window_end_timestamp"),
            "cars": json("plate").from_all().unique().length(),
            "passengers": json("passengers").from_all().sum(),
          }
        } else { deleted() }
%s
spark: {shards: 3, master: "local[2]"}
"""
BY_LIGHT = "- group_by_value: {value: '${! json(\"light\") }'}"
LATE = """
output_resources:
  - label: rest
    stdout: {}
    processors:
      - mapping: |
          root.plate = this.plate
          root.reason = meta("window_drop_reason")
"""


def config(window: str = "", processors: str = BY_LIGHT, more: str = "") -> str:
    return CONFIG % (window, processors, more)


@pytest.fixture
def cars(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "cars.jsonl"
    path.touch()
    return path


def car(ts: float, light: str = "a", plate: str = "P", passengers: int = 1) -> dict:
    return {"ts": ts, "light": light, "plate": plate, "passengers": passengers}


def utc(ts: int) -> str:
    return datetime.fromtimestamp(ts, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.mark.parametrize("tries", [1, 2])
def test_every_message_is_in_its_window_exactly_once(cars, tries):
    chance = random.Random(3)
    run = Run(config("allowed_lateness: 5s"))
    expected: dict[tuple[str, str], list[dict]] = defaultdict(list)
    got = []
    for second in range(0, 60, 3):
        made = [
            car(
                T + second + chance.random() * 3,
                chance.choice("abcdef"),
                f"P{chance.randrange(40)}",
                chance.randrange(5),
            )
            for _ in range(chance.randrange(60))
        ]
        write_lines(cars, made)
        for one in made:
            expected[one["light"], utc(math.ceil(one["ts"] / 10) * 10)].append(one)
        ended = False
        while not ended:
            ended = run.step((T + second + 3) * SECOND, Limit(messages=25), tries).ended
            got += run.printed()
    run.step((T + 68) * SECOND, tries=tries)
    got += run.printed()
    assert {(one["light"], one["end"]): (one["cars"], one["passengers"]) for one in got} == {
        key: (len({c["plate"] for c in some}), sum(c["passengers"] for c in some))
        for key, some in expected.items()
    }
    assert len(got) == len(expected)
    assert run.snapshot.held == 0 and run.snapshot.dropped == {}
    assert run.snapshot.messages == sum(map(len, expected.values())) > 400


def test_a_window_comes_out_when_the_clock_has_passed_its_end_and_not_before(cars):
    write_lines(cars, [car(T + 1), car(T + 10), car(T + 10.000001)])
    run = Run(config())
    run.step((T + 5) * SECOND)
    assert run.printed() == [] and run.snapshot.held == 3
    assert run.snapshot.next_close == (T + 10) * SECOND
    run.step((T + 10) * SECOND - 1_000_000)
    assert run.printed() == []
    run.step((T + 10) * SECOND)
    [one] = run.printed()
    assert (one["end"], one["passengers"]) == (utc(T + 10), 2)
    assert (run.snapshot.held, run.snapshot.open_windows) == (1, 1)


def test_windows_that_close_together_come_out_in_their_order(cars):
    run = Run(config("on_expired: keep", processors=""))
    write_lines(cars, [car(T + 25), car(T + 5), car(T + 15)])
    run.step((T + 5) * SECOND)
    run.step((T + 100) * SECOND)
    assert [one["end"] for one in run.printed()] == [utc(T + end) for end in (10, 20, 30)]


def test_a_restart_goes_on_with_what_is_held(cars):
    write_lines(cars, [car(T + 1, plate="A"), car(T + 2, plate="B")])
    first = Run(config())
    first.step((T + 3) * SECOND)
    again = Run(config(), first.state, "second")
    write_lines(cars, [car(T + 9, plate="C")])
    again.step((T + 9) * SECOND)
    again.step((T + 10) * SECOND)
    assert [one["cars"] for one in again.printed()] == [3]


def test_a_micro_batch_that_was_cut_off_by_a_crash_is_replayed_and_gives_the_same(cars):
    write_lines(cars, [car(T + 1, light) for light in "abcdef"])
    first = Run(config())
    first.step((T + 3) * SECOND)
    assert first.state.offset is not None
    batch = first.step((T + 11) * SECOND, tries=3)
    assert batch.start_id == "first"
    assert len(first.printed()) == 6
    # The next start finds it in Spark's log, with the time and the start that it had.
    again = Run(config(), first.state, "second")
    again.step((T + 60) * SECOND)
    assert again.printed() == []


def test_windows_that_fell_due_while_the_program_was_down_come_out(cars):
    write_lines(cars, [car(T + 1), car(T + 11), car(T + 21)])
    first = Run(config())
    first.step((T + 3) * SECOND)
    again = Run(config(), first.state, "second")
    again.step((T + 3600) * SECOND)
    assert [one["passengers"] for one in again.printed()] == [1, 1, 1]
    assert again.snapshot.dropped == {}


def test_windows_overdue_under_back_pressure_are_dropped_counted_and_logged(cars):
    write_lines(cars, [car(T + 1), car(T + 2), car(T + 31)])
    run = Run(config())
    run.step((T + 3) * SECOND)
    run.step((T + 35) * SECOND)
    assert [one["end"] for one in run.printed()] == []
    assert run.snapshot.dropped == {"expired": 2}
    [(level, _, fields)] = run.said("xpired")
    assert level == "ERROR" and fields["messages"] == 2 and fields["cause"] == "output"
    run.step((T + 40) * SECOND)
    assert [one["end"] for one in run.printed()] == [utc(T + 40)]
    assert run.snapshot.messages == 3


def test_late_messages_go_to_the_late_output_with_their_reason(cars):
    run = Run(config("late_output: rest", more=LATE))
    run.step((T + 35) * SECOND)
    write_lines(
        cars, [car(T + 5, plate="L"), car(T + 35, plate="P"), b'{"ts": null, "plate": "N"}']
    )
    run.step((T + 36) * SECOND, tries=2)
    found = sorted((one["plate"], one["reason"]) for one in run.printed(1))
    assert found == [("L", "late"), ("N", "timestamp")]
    assert run.snapshot.dropped == {"late": 1, "timestamp": 1}
    assert (run.snapshot.messages, run.snapshot.held) == (3, 1)
    assert run.printed() == []


def test_bad_messages_are_logged_once_and_harm_no_other(cars):
    write_lines(cars, [b"no json", car(T + 1), b"\xff\xfe", b'{"ts": "yesterday"}', b""])
    run = Run(config())
    run.step((T + 2) * SECOND, tries=2)
    run.step((T + 10) * SECOND)
    assert [one["passengers"] for one in run.printed()] == [1]
    assert run.snapshot.dropped == {"timestamp": 4}
    assert run.said("timestamp_mapping")


def test_a_message_whose_key_fails_is_grouped_by_the_processor_itself(cars):
    write_lines(cars, [car(T + 1), {"ts": T + 2, "plate": "Q", "passengers": 3}])
    run = Run(config(processors="- group_by_value: {value: '${! this.light.uppercase() }'}"))
    run.step((T + 3) * SECOND)
    run.step((T + 10) * SECOND)
    assert sorted(one["passengers"] for one in run.printed()) == [1, 3]
    assert len(run.said("Group value interpolation error")) == 1


def test_a_group_by_is_sharded_by_its_checks_and_runs_its_processors(cars):
    groups = """- group_by:
        - check: this.passengers > 1
          processors: [{mutation: 'root.light = "full"'}]"""
    write_lines(cars, [car(T + 1, passengers=n, plate=str(n)) for n in (0, 1, 2, 3)])
    run = Run(config(processors=groups))
    assert run.plan.key is not None and run.plan.key.kind == "checks"
    run.step((T + 3) * SECOND)
    run.step((T + 10) * SECOND)
    found = {one["light"]: one["passengers"] for one in run.printed()}
    assert found == {"full": 5, "a": 1}


def test_messages_that_failed_before_the_window_pass_by_at_once(cars):
    text = config().replace(
        "  file: {paths: [cars.jsonl]}",
        "  file: {paths: [cars.jsonl]}\n"
        "  processors: [{mutation: root.passengers = this.passengers.number()}]",
    )
    write_lines(cars, [car(T + 1), {**car(T + 2), "passengers": "many"}])
    run = Run(text)
    run.step((T + 3) * SECOND)
    assert run.snapshot.held == 1
    assert run.said("failed assignment")
    assert run.snapshot.messages == 2
    assert len(run.printed()) == 1
    run.step((T + 10) * SECOND)
    assert [one["end"] for one in run.printed()] == [utc(T + 10)]


@pytest.mark.parametrize(
    ("at_end", "printed", "held"), [("wait", 0, 2), ("flush", 2, 0), ("keep", 0, 2)]
)
def test_what_becomes_of_open_windows_when_the_input_ends(cars, at_end, printed, held):
    write_lines(cars, [car(T + 1, "a"), car(T + 1, "b")])
    run = Run(config(f"end_of_input: {at_end}"))
    run.step((T + 3) * SECOND, tries=2)
    assert run.snapshot.ended
    assert (len(run.printed()), run.snapshot.held) == (printed, held)


def test_the_end_is_not_said_before_the_last_message_is_taken(cars):
    write_lines(cars, [car(T + 1, "a")] * 50)
    run = Run(config("end_of_input: flush"))
    run.step((T + 3) * SECOND, Limit(messages=20))
    assert not run.snapshot.ended and run.printed() == []
    run.step((T + 3) * SECOND)
    assert run.snapshot.ended
    assert [one["passengers"] for one in run.printed()] == [50]


def test_a_sliding_window_gives_a_message_to_each_of_its_windows(cars):
    write_lines(cars, [car(T + 1), car(T + 4)])
    run = Run(config("slide: 5s"))
    run.step((T + 4) * SECOND)
    ends = Counter()
    for second in (5, 10, 15, 20):
        run.step((T + second) * SECOND)
        for one in run.printed():
            ends[one["end"]] += one["passengers"]
    assert ends == {utc(T + 5): 2, utc(T + 10): 2}
    assert run.snapshot.held == 0


def test_generated_messages_are_in_the_windows_of_their_moments():
    text = config(processors="").replace(
        "file: {paths: [cars.jsonl]}",
        """generate:
    interval: 1s
    mapping: |
      root.ts = now()
      root.light = "a"
      root.plate = count("n")
      root.passengers = 1
""",
    )
    run = Run(text)
    found = []
    for second in range(1, 30, 4):
        run.step((T + second) * SECOND + 500_000_000, tries=2)
        found += run.printed()
    # The first comes at 1.5 s, then one every second.
    assert [(one["end"], one["cars"]) for one in found] == [(utc(T + 10), 9), (utc(T + 20), 10)]


def test_log_lines_of_both_stages_reach_the_driver(cars):
    text = config(processors="- log: {message: 'of stage 2'}").replace(
        "[cars.jsonl]}", "[cars.jsonl]}\n  processors: [{log: {message: 'of stage 1'}}]"
    )
    write_lines(cars, [car(T + 1)])
    run = Run(text)
    run.step((T + 3) * SECOND)
    assert len(run.said("of stage 1")) == 1 and run.said("of stage 2") == []
    run.step((T + 10) * SECOND)
    [(level, _, fields)] = run.said("of stage 2")
    assert (level, fields["path"]) == ("INFO", "root.pipeline.processors.0")
