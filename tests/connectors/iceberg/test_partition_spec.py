"""The text of partition specs, and the fields of catalogs."""

from __future__ import annotations

import pytest

from streamer.connectors.iceberg.partition_spec import parse_partition_spec, parse_sort_order


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("()", []),
        ("(light)", [("light", "identity")]),
        (
            " ( day(at) , bucket(16, id),truncate(4,name), hour( t ) ) ",
            [("at", "day"), ("id", "bucket[16]"), ("name", "truncate[4]"), ("t", "hour")],
        ),
    ],
)
def test_a_partition_spec_is_read(text: str, terms: list[tuple[str, str]]) -> None:
    assert parse_partition_spec(text) == terms


@pytest.mark.parametrize(
    "text", ["", "day(at)", "(week(at))", "(bucket(x, id))", "(a b)", "(a,,b)"]
)
def test_a_text_that_is_no_spec_is_explained(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_partition_spec(text)


def test_a_sort_order_is_read() -> None:
    text = "( day(at) DESC nulls first, light asc ,bucket(4, id) nulls last)"
    assert parse_sort_order(text) == [
        (("at", "day"), True, True),
        (("light", "identity"), False, True),
        (("id", "bucket[4]"), False, False),
    ]
    assert parse_sort_order("(a desc)") == [(("a", "identity"), True, False)]


@pytest.mark.parametrize("text", ["light", "(light up)", "(light desc desc)", "(a nulls)", "(a b)"])
def test_a_text_that_is_no_order_is_explained(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_sort_order(text)
