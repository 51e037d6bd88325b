"""What a query says, and where its mistakes are."""

from __future__ import annotations

import pytest

from streamer.connectors.duckdb.errors import QueryError
from streamer.connectors.duckdb.query_text import MAX_QUERY_CHARS, parse_query


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT k FROM batch", ["batch"]),
        ("FROM Batch", ["batch"]),
        ("SELECT * FROM batch JOIN cities USING (city)", ["batch", "cities"]),
        ("WITH cities AS (FROM batch) FROM cities", ["batch"]),
        ("SELECT (SELECT max(x) FROM prices) FROM batch WHERE k IN (FROM ids)", None),
        ("SELECT 1", []),
    ],
)
def test_tables_of_a_query(sql: str, tables: list[str] | None) -> None:
    names = sorted(table.name for table in parse_query(sql).tables)
    assert names == (["batch", "ids", "prices"] if tables is None else tables)


@pytest.mark.parametrize(
    ("sql", "used", "unused"),
    [
        ("SELECT k, sum(v) FROM batch GROUP BY k", "k V", "w"),
        ("SELECT b.s.x FROM batch b WHERE b.t = 'u'", "s x t", "v"),
        ("SELECT count(*) FROM batch", "", "k v"),
        ("SELECT sum(v) OVER w FROM batch WINDOW w AS (PARTITION BY k)", "v k", "z"),
        ("SELECT max(v) FROM batch JOIN t USING (k)", "v k", "z"),
        ("SELECT list_transform(l, e -> e + d) FROM batch", "l d", "z"),
        # Any column may be meant by these.
        ("SELECT * FROM batch", "any thing", ""),
        ("SELECT * EXCLUDE (k) FROM batch", "any", ""),
        ("SELECT b FROM batch b", "any", ""),
        ("SELECT to_json(batch) FROM batch", "any", ""),
        ("SELECT count(*) FROM batch NATURAL JOIN t", "any", ""),
        ("SELECT COLUMNS('a.*') FROM batch", "any", ""),
        ("SUMMARIZE batch", "any", ""),
        ("SELECT count(*) FROM query_table('batch')", "any", ""),
        ("SELECT n FROM (UNPIVOT batch ON a, b INTO NAME n VALUE v)", "any", ""),
    ],
)
def test_columns_that_a_query_may_use(sql: str, used: str, unused: str) -> None:
    text = parse_query(sql)
    assert [name for name in used.split() if not text.uses_field(name)] == []
    assert [name for name in unused.split() if text.uses_field(name)] == []


@pytest.mark.parametrize(
    ("sql", "problem", "place"),
    [
        ("SELECT 1\n  FROM batch WHERE", 'syntax error at or near "WHERE"', (2, 14)),
        ("SELECT 'é' é FROM FROM batch", 'syntax error at or near "FROM"', (1, 19)),
        ("SELECT 'abc", "unterminated string literal", (1, 8)),
        ("", "the query is empty; expected a SELECT over the table batch", (0, 0)),
        ("-- nothing", "expected one SELECT, found 0 statements", (0, 0)),
        ("SELECT 1; SELECT 2", "expected one SELECT, found 2 statements", (0, 0)),
        ("DROP TABLE batch", "expected one SELECT; the query has another statement", (0, 0)),
        ("PIVOT batch ON k USING sum(v)", "expected one SELECT; the query has another", (0, 0)),
        ("ATTACH 'x.db'", "expected one SELECT; the query has another statement", (0, 0)),
        ("SELECT 1;\nCOPY batch TO 'x'", "expected one SELECT; the query has another", (0, 0)),
        ("FROM main.batch", "the table batch is of the schema main", (1, 6)),
        ("FROM batch,\n read_csv('/etc/passwd')", "read_csv cannot reach files", (2, 2)),
        ("FROM glob('/*')", "glob cannot reach files; name the file in the field files", (1, 6)),
        (f"SELECT '{'x' * MAX_QUERY_CHARS}'", "the query has 65,545 characters", (0, 0)),
        (f"SELECT {'(' * 5000}1{')' * 5000}", "Max expression depth", (0, 0)),
    ],
)
def test_mistakes_have_their_place(sql: str, problem: str, place: tuple[int, int]) -> None:
    with pytest.raises(QueryError, match=problem.replace("(", r"\(")) as raised:
        parse_query(sql)
    assert (raised.value.line, raised.value.column) == place


def test_a_pivot_with_its_values_is_a_select() -> None:
    text = parse_query("PIVOT batch ON light IN ('red', 'green') USING sum(cars)")
    assert [table.name for table in text.tables] == ["batch"]
