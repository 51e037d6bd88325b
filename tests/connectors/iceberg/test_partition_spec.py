"""The text of partition specs, and the fields of catalogs."""

from __future__ import annotations

import pytest

from streamer.connectors.iceberg.partition_spec import parse_partition_spec


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
