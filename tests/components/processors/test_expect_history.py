"""A window is compared with the last windows of its key: exact over restarts and replays."""

from __future__ import annotations

from copy import deepcopy
from statistics import fmean, median
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.durations import SECOND
from streamer.core.errors import ConfigError
from streamer.core.message import Message
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.engine.report.component_errors import ComponentFailedError
from streamer.plan import make_plan
from streamer.plan.keyed_state import find_lost_state

CONFIG = """
buffer:
  tumbling_window:
    timestamp_mapping: root = this.t
    key_mapping: root = this.k
    size: 10s
    %s
pipeline:
  processors:
    - label: usual
      expect:
        expectations:
          - name: volume
            per: window
            count: true
            history: { windows: %d, statistic: %s, min_ratio: 0.5, max_ratio: 2, min_windows: 2 }
    - mapping: |
        root = if batch_index() == 0 {
          { "k": this.k, "n": batch_size(), "end": @window_end_unix_ms, "error": error() }
        } else { deleted() }
"""


def make_stream(windows: int = 3, statistic: str = "mean", more: str = "") -> ScriptedStream:
    return ScriptedStream(make_plan(parse_config(CONFIG % (more, windows, statistic))))


def sent(key: str, window: int, count: int) -> list[ScriptedMessage]:
    one = {"k": key, "t": window * 10 + 5}
    return [ScriptedMessage(Message.from_value(one)) for _ in range(count)]


COUNTS = {"a": [4, 5, 4, 1, 9, 4, 4, 12, 3], "b": [1, 1, 1, 1, 5, 5, 5, 5, 5]}


def expected(counts: list[int], windows: int, statistic: str) -> list[bool]:
    """Return by window whether it passes: an oracle of a few lines."""
    of = {"mean": fmean, "median": median}[statistic]
    passed = []
    for number, count in enumerate(counts):
        before = counts[max(0, number - windows) : number]
        usual = of(before) if len(before) >= 2 else None
        passed.append(usual is None or 0.5 * usual <= count <= 2 * usual)
    return passed


def results(batches: list[list[Message]]) -> dict[str, list[tuple[int, Any]]]:
    by_key: dict[str, list[tuple[int, Any]]] = {}
    for batch in batches:
        for one in batch:
            by_key.setdefault(one.doc["k"], []).append((one.doc["end"], one.doc["error"]))
    return by_key


@pytest.mark.parametrize("statistic", ["mean", "median"])
@pytest.mark.parametrize("windows", [2, 3, 100])
@pytest.mark.parametrize("cut", [1, 4, 9])
def test_windows_are_compared_with_the_last_ones_of_their_key(windows, statistic, cut) -> None:
    stream = make_stream(windows, statistic)
    found: list[list[Message]] = []
    for first in range(0, 10, cut):
        batch = [
            one
            for number in range(first, min(first + cut, 9))
            for key, counts in COUNTS.items()
            for one in sent(key, number, counts[number])
        ]
        batch += sent("end", first + cut, 1)
        # The micro-batch fails and comes again: what it kept is not kept twice.
        before = deepcopy(stream.stores)
        lost = stream.run_micro_batch((first + cut) * 10 * SECOND, batch).batches
        stream.stores[:] = before
        stream.restart()
        made = stream.run_micro_batch((first + cut) * 10 * SECOND, batch).batches
        assert [[one.raw for one in some] for some in made] == [
            [one.raw for one in some] for some in lost
        ]
        found += made
        stream.restart()
    for key, counts in COUNTS.items():
        passed = [error is None for _, error in results(found)[key]]
        assert passed == expected(counts, windows, statistic)[: len(passed)] and len(passed) == 9


def test_the_error_says_what_is_usual() -> None:
    stream = make_stream()
    batch = [one for number in range(3) for one in sent("a", number, (4, 6, 11)[number])]
    made = stream.run_micro_batch(40 * SECOND, [*batch, *sent("end", 4, 1)]).batches
    assert results(made)["a"][-1][1] == (
        "expectation volume failed: 11 is more than 10, by the mean 5 of the last 2 windows"
    )


def test_a_window_that_is_emitted_again_counts_once() -> None:
    stream = make_stream(3, "mean", "emit: changes")
    # Its own count grows to 4 in steps: it is not compared with itself.
    for number in range(2):
        for step in range(4):
            stream.run_micro_batch((number * 10 + step) * SECOND, sent("a", number, 1))
    (made,) = stream.run_micro_batch(21 * SECOND, sent("a", 2, 9)).batches
    assert results([made])["a"][0][1] == (
        "expectation volume failed: 9 is more than 8, by the mean 4 of the last 2 windows"
    )


def test_numbers_that_are_not_finite_fail_and_are_not_kept() -> None:
    text = (CONFIG % ("", 3, "mean")).replace("count: true", "measure: this.m.number()")
    stream = ScriptedStream(make_plan(parse_config(text)))
    values: list[Any] = [4, "NaN", "x", 10**400, 4, 100]
    for number, value in enumerate(values):
        one = {"k": "a", "t": number * 10 + 5, "m": value}
        stream.run_micro_batch(number * 10 * SECOND, [ScriptedMessage(Message.from_value(one))])
    made = stream.run_micro_batch(90 * SECOND, sent("a", 8, 1)).batches
    assert results(made)["a"][0][1] == (
        "expectation volume failed: 100 is more than 8, by the mean 4 of the last 2 windows"
    )


def test_the_state_has_the_name_of_the_expectation_and_a_change_that_loses_it_is_known() -> None:
    text = CONFIG % ("", 3, "mean")
    old, other, same = (
        make_plan(parse_config(one)).keyed_state
        for one in (
            text,
            text.replace("name: volume", "name: sales"),
            text.replace("min_ratio: 0.5", "min_ratio: 0.7"),
        )
    )
    assert [user.names for user in old.users] == [("usual/expect volume",)]
    assert [calls for _, calls in find_lost_state(old, other)] == [["expect volume"]]
    assert find_lost_state(old, same) == []


def test_fail_ends_a_stream_of_windows_with_its_place() -> None:
    text = (CONFIG % ("", 3, "mean")).replace(
        "count: true", "count: true\n            on_fail: fail"
    )
    stream = ScriptedStream(make_plan(parse_config(text)))
    batch = [one for number in range(3) for one in sent("a", number, (4, 6, 11)[number])]
    with pytest.raises(ComponentFailedError) as caught:
        stream.run_micro_batch(40 * SECOND, [*batch, *sent("end", 4, 1)])
    failure = caught.value.failure
    assert failure.is_abort and failure.path == "root.pipeline.processors.0"
    assert failure.text == (
        "expectation volume failed: 11 is more than 10, by the mean 5 of the last 2 windows; "
        'message: {"k":"a","t":25}'
    )


GROUPED = """
buffer: { tumbling_window: { timestamp_mapping: root = this.t, size: 10s } }
pipeline:
  processors:
    - group_by_value: { value: '${! this.k }' }
    - expect:
        expectations:
          - name: volume
            per: window
            count: true
            history: { windows: 3, min_ratio: 0.5, max_ratio: 2, min_windows: 2, group: GROUP }
    - mapping: |
        root = if batch_index() == 0 {
          { "k": this.k, "n": batch_size(), "end": @window_end_unix_ms, "error": error() }
        } else { deleted() }
"""


GROUPS = ("this.k", '[this.k, "x"]', 'if this.k == "a" { null } else { 1 }')


@pytest.mark.parametrize("group", GROUPS)
def test_each_group_is_compared_with_the_same_group_of_the_windows_before(group) -> None:
    text = GROUPED.replace("GROUP", f"'{group}'")
    stream = ScriptedStream(make_plan(parse_config(text)))
    batch = [
        one
        for number in range(9)
        for key, counts in COUNTS.items()
        for one in sent(key, number, counts[number])
    ]
    made = stream.run_micro_batch(100 * SECOND, [*batch, *sent("b", 12, 1)]).batches
    for key, counts in COUNTS.items():
        passed = [error is None for _, error in results(made)[key]]
        assert passed == expected(counts, 3, "mean")


def test_a_group_that_cannot_be_told_fails_with_the_reason() -> None:
    text = GROUPED.replace("GROUP", "'this.k.number()'")
    stream = ScriptedStream(make_plan(parse_config(text)))
    made = stream.run_micro_batch(0, [*sent("a", 0, 1), *sent("a", 3, 1)]).batches
    [(_, error)] = results(made)["a"]
    assert error.startswith("expectation volume failed: ") and 'parsing "a"' in error


@pytest.mark.parametrize(
    ("text", "before"),
    [
        (GROUPED.replace(", group: GROUP", ""), "group_by_value"),
        (
            GROUPED.replace(", group: GROUP", "").replace(
                "group_by_value: { value: '${! this.k }' }",
                "group_by: [ { check: this.k == 1, processors: [] } ]",
            ),
            "group_by",
        ),
        (CONFIG % ("", 3, "mean"), ""),
    ],
)
def test_groups_that_would_mix_are_reported(text: str, before: str) -> None:
    if not before:
        parse_config(text)
        return
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    [lint] = caught.value.lints
    assert lint.code == "mixed_groups" and lint.line == 6
    assert lint.message == (
        f"expect volume compares every group of {before} with all groups of the window"
    )
