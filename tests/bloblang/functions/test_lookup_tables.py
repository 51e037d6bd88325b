"""The function `table`: rows of the tables that there are where a mapping runs."""

from __future__ import annotations

import pytest

from streamer.bloblang import BloblangError, compile_interpolation, compile_mapping
from streamer.bloblang.analysis.used_tables import find_used_tables
from streamer.core.errors import StreamerError
from streamer.core.lookup_tables import LookupTable, use_tables
from tests.bloblang.running import run


class Tables:
    def find(self, label: str) -> LookupTable:
        if label != "cities":
            raise StreamerError(f"there is no table {label}")
        return LookupTable({"St. Ives": {"n": {"y": 1}}, "7": {"n": 2}})


@pytest.mark.parametrize(
    ("mapping", "given", "expected"),
    [
        ('root = table("cities").get(this.c)', '{"c":"St. Ives"}', '{"n":{"y":1}}'),
        ('root = table("cities", this.c)', '{"c":"St. Ives"}', '{"n":{"y":1}}'),
        ('root = table(label: "cities", key: this.c).n', '{"c":7}', "2"),
        ('root = table("cities").get("St. Ives").n.y', "{}", "1"),
        ('root.c = table("cities").get(this.c)', "{}", '{"c":null}'),
        ('root = table("cities").get(this.c).n.y | "none"', '{"c":"Rome"}', "none"),
        ('root = table("cities").keys()', "{}", '["7","St. Ives"]'),
        ('root = this.map_each(c -> table("cities").get(c).n)', "[7]", "[2]"),
        ('root = table("cities").get("7")\nroot.n = 3\nroot.m = table("cities").get("7").n', "{}",
         '{"m":2,"n":3}'),
    ],
)  # fmt: skip
def test_rows_are_looked_up(mapping: str, given: str, expected: str) -> None:
    with use_tables(Tables()):
        # Twice: a mapping that has changed what it was given would show it.
        assert [run(mapping, given) for _ in range(2)] == [expected] * 2


def test_a_label_is_a_literal() -> None:
    with pytest.raises(BloblangError, match="param label must not be dynamic"):
        compile_mapping("root = table(this.a)")


def test_a_syntax_error_behind_a_literal_argument_is_found_at_its_place() -> None:
    with pytest.raises(BloblangError, match="line 2 char 7: expected whitespace"):
        compile_mapping('root = table("cities")\nroot.x=9')


def test_without_tables_the_error_says_where_there_are_some() -> None:
    assert "tables are loaded for streams, for tests" in run('root = table("cities").get(1)')
    with use_tables(Tables()):
        assert "there is no table x" in run('root = table("x").get(1)')


def test_the_tables_that_are_used_are_known() -> None:
    mapping = compile_mapping('root.a = 1\nroot.b = this.c.map_each(v -> table("x").get(v))')
    assert [*find_used_tables(mapping)] == [(2, 31, "x")]
    text = compile_interpolation('${! table("y").get(this.a).b }')
    assert [use.label for use in find_used_tables(text)] == ["y"]
    assert mapping.uses.table and not mapping.uses.only_document
