"""What a task says: log lines up to a bound, counts by their labels."""

import orjson
import pytest

from streamer.core.timestamps import Timestamp
from streamer.core.value import Number
from streamer.engine.report.result_frame import MAX_CONFIG_LOG_LINES, MAX_LOG_LINES, TaskReport


def lines(task: TaskReport) -> list[list]:
    return orjson.loads(task.log_body() or b"[]")


def test_nothing_said_is_nothing_sent():
    task = TaskReport("INFO")
    assert task.log_body() is None and task.count_body() is None


@pytest.mark.parametrize(
    ("level", "sent"),
    [
        ("OFF", ""),
        ("NONE", ""),
        ("FATAL", "F"),
        ("ERROR", "FE"),
        ("WARN", "FEW"),
        ("INFO", "FEWI"),
        ("DEBUG", "FEWID"),
        ("TRACE", "FEWIDT"),
        ("ALL", "FEWIDT"),
    ],
)
def test_lines_below_the_level_are_left_out(level, sent):
    task = TaskReport(level)
    for one in ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"):
        task.execution.log(one, "text", {})
    assert "".join(line[0][0] for line in lines(task)) == sent


def test_more_lines_than_the_bound_are_counted_in_a_last_one():
    task = TaskReport("INFO")
    for number in range(MAX_LOG_LINES + 7):
        task.execution.log("ERROR", "a" * number, {"n": number})
    *said, last = lines(task)
    assert said == [["ERROR", "a" * n, {"n": n}] for n in range(MAX_LOG_LINES)]
    assert last == ["WARN", "7 more log lines of this micro-batch are left out", {}]


def test_as_many_lines_as_the_bound_are_all_sent():
    task = TaskReport("INFO")
    for number in range(MAX_LOG_LINES):
        task.execution.log("ERROR", "a" * number, {})
    assert len(lines(task)) == MAX_LOG_LINES


def test_of_lines_of_one_kind_the_first_is_sent_with_the_number_of_the_others():
    task = TaskReport("INFO")
    for number in range(1000):
        task.execution.log("ERROR", f'line {number}: got "{number}"', {"path": "root.a"})
    task.execution.log("ERROR", 'line 7: got "x"', {"path": "root.b"})
    # The config asks for these itself, and INFO is no failure.
    for _ in range(2):
        task.execution.log("ERROR", "asked for", {"custom_source": True})
        task.execution.log("INFO", "begun", {})
    assert lines(task) == [
        ["ERROR", 'line 0: got "0"', {"path": "root.a", "repeated": 999}],
        ["ERROR", 'line 7: got "x"', {"path": "root.b"}],
        *[["ERROR", "asked for", {"custom_source": True}], ["INFO", "begun", {}]] * 2,
    ]


def test_lines_that_the_config_asks_for_have_a_bound_of_their_own():
    task = TaskReport("INFO")
    for _ in range(MAX_CONFIG_LOG_LINES + 1):
        task.execution.log("INFO", "asked for", {"custom_source": True})
    assert len(lines(task)) == MAX_CONFIG_LOG_LINES + 1
    assert "1 more log lines" in lines(task)[-1][1]


def test_lines_below_the_level_do_not_count_as_left_out():
    task = TaskReport("ERROR")
    for _ in range(MAX_LOG_LINES * 2):
        task.execution.log("INFO", "line", {})
    assert task.log_body() is None


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (1 << 70, float(1 << 70)),
        (Number("1.50"), 1.5),
        (b"ab", "YWI="),
        ("lone \udc80", "lone \ufffd"),
        (Timestamp(0), "1970-01-01T00:00:00Z"),
        (float("nan"), None),
        ([{"a": {"b": 1 << 64}}], [{"a": {"b": float(1 << 64)}}]),
    ],
    ids=repr,
)
def test_any_value_of_a_mapping_can_be_a_field(value, sent):
    task = TaskReport("INFO")
    task.execution.log("INFO", "text", {"value": value})
    assert lines(task) == [["INFO", "text", {"value": sent}]]


def test_counts_are_summed_by_name_and_labels():
    task = TaskReport("INFO")
    task.execution.count("dropped", 2, reason="a", path="p")
    task.execution.count("dropped", 3, path="p", reason="a")
    task.execution.count("dropped", 5, reason="b")
    task.execution.count("taken")
    assert orjson.loads(task.count_body() or b"") == [
        ["dropped", 5, {"path": "p", "reason": "a"}],
        ["dropped", 5, {"reason": "b"}],
        ["taken", 1, {}],
    ]


def test_the_clock_is_the_tasks():
    assert TaskReport("INFO", now=lambda: 42).execution.now() == 42
