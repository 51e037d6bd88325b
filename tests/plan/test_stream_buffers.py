"""Several buffers as a plan has them: levels, outputs, clocks, and what their state is bound to."""

from __future__ import annotations

import pytest

from streamer.config import parse_config
from streamer.core.durations import DAY, HOUR, MINUTE, SECOND
from streamer.plan import Plan, make_plan
from streamer.plan.buffer_chain import (
    find_readers,
    find_system_due,
    keeps_at_end,
    level_count,
    plan_of_buffer,
    upstream_time,
)
from streamer.plan.change_impact.judge_changes import judge
from streamer.plan.change_impact.model import Effect
from streamer.plan.explain import explain
from streamer.plan.stream_buffers import extends_state

HOURS = "label: hours, tumbling_window: {size: 1h, timestamp_mapping: root = this.at}"
DAYS = "label: days, from: hours, tumbling_window: {size: 1d}"


def planned(*buffers: str, more: str = "") -> Plan:
    listed = ", ".join(f"{{{one}}}" for one in buffers)
    text = f"buffers: [{listed}]\nspark: {{master: 'local[2]', shards: 2}}\n{more}"
    return make_plan(parse_config(text), name="x")


def test_levels_readers_and_outputs() -> None:
    plan = planned(
        DAYS, HOURS, "label: weeks, from: days, count_window: {count: 7}, output: {drop: {}}"
    )
    assert [one.level for one in plan.buffers] == [1, 0, 2]
    assert level_count(plan) == 3
    assert (find_readers(plan, None), find_readers(plan, 1), find_readers(plan, 2)) == (
        (1,),
        (0,),
        (),
    )
    assert [one.output and one.output.name for one in plan.buffers] == [None, None, "drop"]
    assert [one.name for one in plan.outputs] == ["drop"]
    assert plan.shard_count == 6


def test_buffers_that_share_an_output_write_it_once() -> None:
    plan = planned(
        HOURS,
        "label: quarters, tumbling_window: {size: 15m, late_output: late}",
        more="output_resources: [{label: late, drop: {}}]\noutput: {file: {path: x}}",
    )
    assert [one.name for one in plan.driver_outputs] == ["file", "drop"]
    assert plan_of_buffer(plan, 0).own_output_numbers == (0,)
    assert plan_of_buffer(plan, 1).own_output_numbers == (0, 1)


@pytest.mark.parametrize(
    ("window", "own", "next_end", "time"),
    [
        ("tumbling_window: {size: 1h}", False, HOUR, HOUR - 1),
        ("tumbling_window: {size: 1h}", True, 25 * HOUR, 24 * HOUR),
        ("hopping_window: {size: 1h, every: 10m}", True, HOUR, 0),
        ("system_window: {size: 1h}", False, HOUR, HOUR - 1),
        ("session_window: {gap: 1h}", False, HOUR, HOUR),
        ("session_window: {gap: 1m, max_duration: 10m}", True, HOUR, 40 * MINUTE),
        ("sliding_window: {size: 10m, mode: event}", True, HOUR, 50 * MINUTE),
    ],
)
def test_the_clock_of_a_buffer_is_the_least_time_of_what_is_to_come(
    window: str, own: bool, next_end: int, time: int
) -> None:
    mapping = ", timestamp_mapping: root = @window_start_timestamp" if own else ""
    plan = planned(
        f"label: first, {window}", f"label: b, from: first, tumbling_window: {{size: 1d{mapping}}}"
    )
    assert upstream_time(plan, 1, 0, next_end) == time
    assert upstream_time(plan, 1, 0, None) is None


@pytest.mark.parametrize(
    ("window", "due"),
    [
        ("system_window: {size: 1h, allowed_lateness: 5s}", DAY + 5 * SECOND),
        ("tumbling_window: {size: 1h, clock: system}", DAY),
        ("hopping_window: {size: 1h, every: 1m, clock: system, idle_timeout: 9m}", DAY),
        ("session_window: {gap: 10m, clock: system}", DAY + 10 * MINUTE),
        ("sliding_window: {size: 10m, mode: event, clock: system}", DAY + 999_999),
        ("tumbling_window: {size: 1h}", None),
    ],
)
def test_the_system_clock_of_the_first_closes_what_is_behind(window: str, due: int | None) -> None:
    plan = planned(
        f"label: hours, {window}", DAYS, "label: c, from: days, count_window: {count: 2}"
    )
    assert find_system_due(plan, 1, DAY) == due
    assert find_system_due(plan, 0, DAY) is None


def test_what_is_behind_a_buffer_that_keeps_its_windows_is_kept() -> None:
    plan = planned(
        HOURS.replace("1h", "1h, end_of_input: keep"), DAYS, "label: m, system_window: {size: 1m}"
    )
    assert [keeps_at_end(plan, number) for number in range(3)] == [True, True, False]


def test_only_buffers_at_the_end_and_of_no_new_level_leave_the_others_as_they_are() -> None:
    minutes = "label: minutes, tumbling_window: {size: 1m}"
    weeks = "label: weeks, from: hours, tumbling_window: {size: 7d}"
    months = "label: months, from: days, tumbling_window: {size: 30d}"
    both = planned(HOURS, DAYS)
    for plan, extends in (
        (planned(HOURS, DAYS, minutes), True),
        (planned(HOURS, DAYS, weeks, minutes), True),
        (planned(HOURS, DAYS, months), False),
        (planned(minutes, HOURS, DAYS), False),
        (planned(HOURS), False),
        (planned(HOURS.replace("1h", "2h"), DAYS, minutes), False),
        (both, False),
    ):
        bound, current = both.fingerprint["window"], plan.fingerprint["window"]
        assert extends_state(bound, current) is extends
    assert not extends_state("grid(1h)", "grid(1h) | x")


@pytest.mark.parametrize(
    ("after", "effect", "path"),
    [
        (
            [HOURS, f"{DAYS}, pipeline: {{processors: [noop: {{}}]}}"],
            "in place",
            "buffers.1.pipeline.processors.0",
        ),
        ([HOURS, f"{DAYS}, output: {{drop: {{}}}}"], "in place", "buffers.1.output"),
        (
            [HOURS, DAYS.replace("1d", "1d, allowed_lateness: 1h")],
            "migrate",
            "buffers.1.tumbling_window.allowed_lateness",
        ),
        ([HOURS, DAYS.replace("1d", "2d")], "reset", "buffers.1.tumbling_window.size"),
        ([HOURS, DAYS, "label: m, tumbling_window: {size: 1m}"], "migrate", "buffers.2"),
        ([HOURS, DAYS, "label: m, from: days, tumbling_window: {size: 30d}"], "reset", "buffers.2"),
        ([HOURS, DAYS.replace("from: hours, ", "")], "reset", "buffers.1.from"),
        ([HOURS], "reset", "buffers.1"),
        (
            [HOURS.replace("hours", "hour"), DAYS.replace("hours", "hour")],
            "reset",
            "buffers.0.label",
        ),
    ],
)
def test_changes_are_judged_buffer_by_buffer(after: list[str], effect: str, path: str) -> None:
    def config(buffers: list[str]) -> str:
        return f"buffers: [{', '.join(f'{{{one}}}' for one in buffers)}]"

    impact = judge(parse_config(config([HOURS, DAYS])), parse_config(config(after)), {})
    assert str(impact.effect) == effect
    assert path in [one.path for one in impact.changes]
    assert impact.resets is (impact.effect == Effect.RESET) is bool(impact.losses)


def test_one_buffer_and_a_list_of_one_are_not_the_same_state() -> None:
    one = parse_config("buffer: {tumbling_window: {size: 1h}}")
    impact = judge(one, parse_config("buffers: [{label: a, tumbling_window: {size: 1h}}]"), {})
    assert impact.resets
    assert [one.path for one in impact.changes] == ["buffers.0"]


EXPLAINED = """\
stream x
  master      local[2] (2 cores)
  checkpoint  /state
  buffer      hours: from the input to days
  window      tumbling_window: size 1h, [start, start + size)
              closes by the largest event time at its end + 0s
              when the input ends: emits open windows at once
  shards      2 shards, of which one is used: a window is one batch, unless the first processor is a group_by_value or group_by that looks at one message
  keeps       messages whole; there is no mapping that makes one of many
  buffer      days: from hours to output
  window      tumbling_window: size 24h, [start, start + size)
              closes by the earliest result that hours may yet give at its end + 0s
              when the input ends: emits open windows at once
  shards      2 shards, of which one is used: a window is one batch, unless the first processor is a group_by_value or group_by that looks at one message
  keeps       messages whole; there is no mapping that makes one of many
  times       of results: the last instant of the window of hours
  data        waits 2s at most for a micro-batch; windows close on time anyway

stage 1 (workers): read stdin, pack by buffer, shard and pane
    input stdin
    buffers.0 [hours] timestamp_mapping, once per message
shuffle: a few rows of packed messages per micro-batch
stage 2 (workers, 2 shards each): keep packs, release windows of hours
shuffle: a few rows of packed results, and the clock of the windows before, per micro-batch
stage 3 (workers, 2 shards each): keep packs, release windows of days
    output stdout: encode
driver
    output stdout: prints; a micro-batch may repeat after a crash"""  # noqa: E501


def test_explain_shows_each_buffer_and_each_level() -> None:
    assert explain(planned(HOURS, DAYS), "/state") == EXPLAINED


def _join(label: str, left: str, right: str, more: str = "") -> str:
    return (
        f"{{ label: {label}, output: {{ drop: {{}} }}, "
        f"window_join: {{ left: {left}, right: {right}, before: 2s, after: 5s{more} }} }}"
    )


def _plan_of_joins(*joins: str) -> Plan:
    inputs = ", ".join(
        f"{{ label: {name}, generate: {{ mapping: 'root = {{}}' }} }}" for name in "abcd"
    )
    text = f"input: {{ broker: {{ inputs: [ {inputs} ] }} }}\nbuffers: [ {', '.join(joins)} ]"
    return make_plan(parse_config(text))


def test_a_join_is_of_the_level_after_both_of_its_sides() -> None:
    plan = _plan_of_joins(
        _join("last", "ab", "abc"),
        _join("abc", "ab", "c"),
        _join("ab", "a", "b"),
        _join("cd", "c", "d"),
    )
    levels = {one.label: (one.level, one.takes_input) for one in plan.buffers}
    assert levels == {"ab": (0, True), "cd": (0, True), "abc": (1, True), "last": (2, False)}
    assert find_readers(plan, None) == (2, 3, 1)
    assert find_readers(plan, 2) == (1, 0)


@pytest.mark.parametrize(
    ("kind", "reach"), [("inner", 0), ("left", 5 * SECOND), ("outer", 5 * SECOND)]
)
def test_a_message_alone_is_as_old_as_a_partner_may_be_late(kind: str, reach: int) -> None:
    first = _join("ab", "a", "b", f", type: {kind}")
    plan = _plan_of_joins(first, _join("abc", "ab", "c"), _join("abcd", "abc", "d"))
    assert upstream_time(plan, 1, 0, 60 * SECOND) == 60 * SECOND - reach
