"""Windows of two revisions are matched, and compared field by field."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from streamer.engine.canary.captured_windows import CapturedWindows
from streamer.engine.canary.emissions import (
    EmissionsByWindow,
    ResultRow,
    WindowIdentity,
    count_emissions,
    read_emissions,
)
from streamer.engine.canary.field_differences import ComparisonRules, compare_emissions
from streamer.engine.canary.window_comparison import MAX_SHOWN_DIFFERENCES, WindowComparison
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.engine.results.rows import encode_rows

SECOND = 10**9


def window(number: int, key: str = "k", emit: str = "final") -> WindowIdentity:
    text = json.dumps(key)
    return WindowIdentity(0, key, text, None, number * SECOND, (number + 1) * SECOND, emit)


def row(value: Any, meta: Any = None, error: str | None = None) -> ResultRow:
    return ResultRow(json.dumps(value).encode(), meta and json.dumps(meta), error)


def emissions(*numbers: int, value: Any = 1) -> EmissionsByWindow:
    return {window(number): [(row({"n": value}),)] for number in numbers}


def paths(old: Any, new: Any, rules: ComparisonRules | None = None) -> list[str]:
    differences = compare_emissions((row(old),), (row(new),), rules or ComparisonRules())
    return [one.path for one in differences]


def frame(shard: int, rows: list[tuple[Any, ...]]) -> Frame:
    body = encode_rows(tuple(zip(*rows, strict=True)))
    return Frame(FrameKind.RESULT, 0, shard, 0, 0, "", body)


def stored(key: str, start: int, ordinal: int, part: int, content: bytes) -> tuple[Any, ...]:
    bounds = start * SECOND, (start + 1) * SECOND
    return (key, json.dumps(key), None, *bounds, "final", ordinal, part, content, None, None)


def test_one_field_in_one_of_a_thousand_windows_is_noticed() -> None:
    changed = random.randrange(1000)
    old = {window(n): [(row({"sum": n, "deep": [{"a": n}]}),)] for n in range(1000)}
    new = {**old, window(changed): [(row({"sum": changed, "deep": [{"a": -1}]}),)]}
    comparison = WindowComparison()
    comparison.compare(old, new)
    assert comparison.counts.windows == 1000 and comparison.counts.changed == 1
    [difference] = comparison.differences
    assert difference.window == window(changed)
    [field] = difference.fields
    assert (field.path, field.old, field.new) == ("deep.0.a", str(changed), "-1")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": 1}, {"a": 1.0}, ["a"]),
        ({"a": None}, {}, ["a"]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 2, 3]}}, ["a.b.2"]),
        ({"a": {"b": 1}}, {"a": 1}, ["a"]),
        ([1, 2], [2, 1], ["0", "1"]),
        ("x", "y", ["content"]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ["content"]),
    ],
)
def test_fields_that_differ_have_their_paths(old: Any, new: Any, expected: list[str]) -> None:
    assert paths(old, new) == expected


def test_fields_that_do_not_matter_are_left_out() -> None:
    old, new = {"at": 1, "items": [{"id": 1, "n": 1}]}, {"at": 2, "items": [{"id": 2, "n": 1}]}
    assert paths(old, new, ComparisonRules(("at", "items.*.id"))) == []
    assert paths(old, new, ComparisonRules(("items",))) == ["at"]


def test_metadata_and_errors_are_compared_as_far_as_anybody_reads_them() -> None:
    old, new = (row(1, {"a": 1, "b": 1}),), (row(1, {"a": 2, "b": 2}, "it failed"),)
    every = [one.path for one in compare_emissions(old, new)]
    assert every == ["@a", "@b", "error"]
    some = [one.path for one in compare_emissions(old, new, ComparisonRules(metadata={"b"}))]
    assert some == ["@b", "error"]


def test_bytes_that_are_no_json_are_compared_as_they_are() -> None:
    old, new = (ResultRow(b"\xff1", None, None),), (ResultRow(b"\xff2", None, None),)
    assert [one.path for one in compare_emissions(old, new)] == ["content"]


def test_another_number_of_messages_is_a_difference() -> None:
    [field] = compare_emissions((row(1), row(2)), (row(1),))
    assert (field.path, field.old, field.new) == ("rows", "2", "1")


def test_a_window_of_one_revision_alone_is_a_difference_at_once() -> None:
    comparison = WindowComparison()
    comparison.compare(emissions(1, 2), emissions(2, 3))
    counts = comparison.counts
    assert (counts.windows, counts.missing, counts.added, counts.differences) == (3, 1, 1, 2)
    assert comparison.waiting == 0


def test_a_window_that_closes_later_waits_for_the_other_revision() -> None:
    comparison = WindowComparison(moves_closes=True)
    comparison.compare(emissions(1, 2), {})
    assert comparison.waiting == 2 and comparison.counts.windows == 0
    comparison.compare(emissions(3), emissions(1))
    assert comparison.waiting == 2 and comparison.counts.differences == 0
    # The third one has come without the second.
    comparison.compare({}, emissions(3))
    assert comparison.counts.missing == 1 and comparison.counts.windows == 3
    assert comparison.waiting == 0


def test_emissions_of_a_window_are_matched_in_their_order() -> None:
    old = {window(1): [(row(1),), (row(2),)]}
    comparison = WindowComparison()
    comparison.compare(old, {window(1): [(row(1),), (row(3),)]})
    assert (comparison.counts.windows, comparison.counts.changed) == (2, 1)


def test_all_differences_are_counted_and_the_first_are_kept() -> None:
    comparison = WindowComparison()
    comparison.compare(emissions(*range(500)), emissions(*range(500), value=2))
    assert comparison.counts.changed == 500
    assert len(comparison.differences) == MAX_SHOWN_DIFFERENCES


def test_results_come_back_from_the_disk_by_window(tmp_path: Path) -> None:
    captured = CapturedWindows(tmp_path / "some")
    frames = [
        frame(0, [stored("a", 1, 0, 0, b"1"), stored("a", 1, 0, 1, b"2")]),
        frame(0, [stored("a", 1, 0, 2, b"3"), stored("a", 1, 1, 0, b"4")]),
        frame(3, [stored("b", 1, 0, 0, b"5")]),
        Frame(FrameKind.STATUS, 0, 0, 0, 0, "", b"{}"),
    ]
    size = captured.add(7, frames)
    portions = captured.read(7)
    found = read_emissions(portions, shards=2)
    by_key = {one.key: (one.buffer, [[r.content for r in e] for e in found[one]]) for one in found}
    assert by_key == {"a": (0, [[b"1", b"2", b"3"], [b"4"]]), "b": (1, [[b"5"]])}
    assert count_emissions(portions) == 3
    assert captured.delete(7) == size
    with pytest.raises(FileNotFoundError):
        captured.read(7)
