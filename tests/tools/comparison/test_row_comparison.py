"""Rows of two programs: multisets, keys, order, ignored fields, and the fields that differ."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest

from streamer.engine.canary.emissions import ResultRow
from streamer.engine.canary.field_differences import ComparisonRules
from streamer.tools.comparison import row_comparison
from streamer.tools.comparison.row_comparison import (
    OutputRow,
    RowComparison,
    RowRules,
    compare_rows,
)

PLAIN = RowRules()


def row(value: Any, output: str = "output", error: str | None = None, **metadata: Any) -> OutputRow:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return OutputRow(output, ResultRow(content, json.dumps(metadata) if metadata else None, error))


def compare(
    other: list[OutputRow], this: list[OutputRow], rules: RowRules = PLAIN
) -> RowComparison:
    return compare_rows(lambda: other, lambda: this, rules)


def fields_of(outcome: RowComparison) -> list[tuple[str, str | None, str | None]]:
    return [(f.path, f.old, f.new) for one in outcome.differences for f in one.fields]


def test_rows_are_equal_in_any_order() -> None:
    rows = [row({"a": number % 7}) for number in range(50)]
    outcome = compare(rows, rows[::-1])
    assert (outcome.equal, outcome.is_equal, outcome.this_rows) == (50, True, 50)
    assert not compare(rows, rows[1:]).is_equal


def test_a_row_too_many_is_of_one_program_alone() -> None:
    outcome = compare([row({"a": 1})], [row({"a": 1}), row({"a": 1})])
    assert (outcome.equal, outcome.missing, outcome.added) == (1, 0, 1)
    assert outcome.differences[0].content == '{"a": 1}'


def test_one_altered_field_of_many_rows_is_paired_by_likeness() -> None:
    seed = random.randrange(1 << 30)
    numbers = list(range(2000))
    other = [row({"id": n, "name": f"n{n}", "group": n % 3, "sum": 2 * n}) for n in numbers]
    altered = random.Random(seed).choice(numbers)
    this = [
        row({"id": n, "name": f"n{n}", "group": n % 3, "sum": 2 * n + (n == altered)})
        for n in numbers
    ]
    random.Random(seed).shuffle(this)
    outcome = compare(other, this)
    assert (outcome.equal, outcome.changed) == (1999, 1), seed
    assert fields_of(outcome) == [("sum", str(2 * altered), str(2 * altered + 1))], seed


def test_a_key_pairs_rows_that_share_nothing_else() -> None:
    other = [row({"k": 1, "v": "a"}), row({"k": 2, "v": "b"})]
    this = [row({"k": 2, "v": "x"}), row({"k": 3, "v": "b"})]
    outcome = compare(other, this, RowRules(keys=("k",)))
    assert (outcome.changed, outcome.missing, outcome.added) == (1, 1, 1)
    assert {one.key for one in outcome.differences} == {"1", "2", "3"}
    by_metadata = compare(
        [row(1, id=1), row(2, id=2)], [row(3, id=2), row(1, id=1)], RowRules(keys=("@id",))
    )
    assert fields_of(by_metadata) == [("content", "2", "3")]


def test_the_order_matters_on_request_alone() -> None:
    rows = [row(1), row(2), row(3)]
    assert compare(rows, rows[::-1]).is_equal
    outcome = compare(rows, [row(1), row(3), row(2), row(4)], RowRules(ordered=True))
    assert (outcome.equal, outcome.changed, outcome.added) == (1, 2, 1)


@pytest.mark.parametrize(
    ("ignored", "is_equal"),
    [(("at",), True), (("items.*.id", "at"), True), (("items",), False), (("@trace", "at"), True)],
)
def test_ignored_fields_make_no_difference(ignored: tuple[str, ...], is_equal: bool) -> None:
    other = [row({"at": 1, "items": [{"id": 1, "n": 2}]}, trace="a")]
    ids = 1 if "items.*.id" not in ignored else 9
    this = [
        row({"at": 2, "items": [{"id": ids, "n": 2}]}, trace="b" if "@trace" in ignored else "a")
    ]
    rules = RowRules(fields=ComparisonRules(ignored))
    assert compare(other, this, rules).is_equal is is_equal


def test_the_text_of_a_value_matters_on_request_alone() -> None:
    other, this = [row(b'{"a": 1, "b": 2}')], [row(b'{"b":2,"a":1}')]
    assert compare(other, this).is_equal
    assert not compare(other, this, RowRules(exact_text=True)).is_equal
    assert not compare([row(b"1")], [row(b"1.0")]).is_equal
    assert not compare([row(b"x")], [row(b"y")]).is_equal


def test_errors_outputs_and_metadata_count() -> None:
    assert fields_of(compare([row(1, error="a")], [row(1, error="b")])) == [("error", '"a"', '"b"')]
    lenient = RowRules(error_texts=False)
    assert compare([row(1, error="a")], [row(1, error="b")], lenient).is_equal
    assert not compare([row(1, error="a")], [row(1)], lenient).is_equal
    outcome = compare([row({"k": 1}, "a")], [row({"k": 1}, "b")], RowRules(keys=("k",)))
    assert fields_of(outcome) == [("output", "a", "b")]
    assert fields_of(compare([row({"k": 1}, m=1)], [row({"k": 1}, m=2)])) == [("@m", "1", "2")]
    rules = RowRules(fields=ComparisonRules(metadata=frozenset({"n"})))
    assert compare([row(1, m=1)], [row(1, m=2)], rules).is_equal


def test_all_is_counted_where_not_all_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_comparison, "MAX_DIFFERENT_ROWS", 10)
    other = [row({"a": n}) for n in range(300)]
    this = [row({"b": n}) for n in range(250)]
    outcome = compare(other, this)
    assert (outcome.missing + outcome.changed, outcome.added + outcome.changed) == (300, 250)


def test_the_counts_are_those_of_multisets() -> None:
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    for _ in range(100):
        one, other = ([chance.randrange(6) for _ in range(chance.randrange(30))] for _ in "ab")
        outcome = compare([row({"v": n}) for n in one], [row({"v": n}) for n in other])
        equal = (Counter(one) & Counter(other)).total()
        assert outcome.equal == equal, seed
        assert outcome.changed + outcome.missing == len(one) - equal, seed
        assert outcome.changed + outcome.added == len(other) - equal, seed
