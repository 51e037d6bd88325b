"""A session by itself: what a query reaches, answers, and in which order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from streamer.connectors.duckdb.errors import QueryError
from streamer.connectors.duckdb.session import QuerySession, SessionSettings, TableFile
from streamer.connectors.tables.batch_table import make_row_documents

MEMORY = 64 << 20
ROWS = pa.table({"k": ["b", "a", "b"], "v": [1, 2, 3]})


def run(sql: str, rows: pa.Table = ROWS, seconds: float = 10.0, **more: Any) -> list[Any]:
    session = QuerySession(SessionSettings(sql, MEMORY, **more))
    answer = session.run(rows, "batch", seconds)
    table = pa.ipc.open_stream(answer.body).read_all()
    documents: list[Any] = make_row_documents(table)
    for at in answer.json_columns:
        for document in documents:
            name = table.schema.names[at]
            document[name] = json.loads(document[name]) if document[name] is not None else None
    return documents


def test_a_query_gives_rows() -> None:
    sql = "SELECT k, sum(v) AS v FROM batch GROUP BY k ORDER BY k"
    assert run(sql) == [{"k": "a", "v": 2}, {"k": "b", "v": 4}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM '/etc/passwd'",
        'SELECT * FROM "/etc/passwd"',
        "FROM read_text('/etc/passwd')",
        "FROM read_csv('/etc/passwd')",
        "FROM read_blob('/proc/self/environ')",
        "FROM query('FROM read_text(''/etc/passwd'')')",
        "FROM read_parquet('https://127.0.0.1:9/x.parquet')",
        "FROM parquet_metadata('s3://bucket/x')",
        "FROM glob('/etc/*')",
        "FROM sniff_csv('/etc/passwd')",
        "SELECT getenv('PATH')",
        "SELECT getvariable('x') FROM read_json('/etc/passwd')",
        "FROM sqlite_scan('/tmp/x.db', 't')",
        "FROM duckdb_extensions()",
    ],
)
def test_a_query_reaches_nothing(sql: str) -> None:
    with pytest.raises(QueryError, match="Permission Error|Catalog Error|Binder Error"):
        run(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "INSTALL httpfs",
        "LOAD httpfs",
        "ATTACH '/tmp/x.db'",
        "COPY batch TO '/tmp/x.csv'",
        "EXPORT DATABASE '/tmp/x'",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        "RESET lock_configuration",
        "PRAGMA enable_profiling",
        "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    ],
)
def test_other_statements_change_nothing(sql: str) -> None:
    # No query is such a statement; but if the parser took one, the session would not.
    with pytest.raises(QueryError):
        run(sql)


def test_files_by_their_names_alone(tmp_path: Path) -> None:
    prices, odd = tmp_path / "prices.parquet", tmp_path / "a'b[1]*\".csv"
    parquet.write_table(pa.table({"k": ["a", "b"], "price": [1.5, 2.5]}), prices)
    odd.write_text("k,name\na,Ann\n")
    (tmp_path / "a'b1x\".csv").write_text("k,name\na,wrong\n")
    lines = tmp_path / "more.jsonl"
    lines.write_text('{"k":"a","n":1}\n{"k":"b","n":2}\n')
    files = (
        TableFile("prices", str(prices), "parquet"),
        TableFile('we"ird', str(odd), "csv"),
        TableFile("more", str(lines), "json"),
    )
    sql = (
        'SELECT k, price, name, n FROM batch JOIN prices USING (k) LEFT JOIN "we""ird" USING (k) '
        "JOIN more USING (k) WHERE v > 1 ORDER BY k"
    )
    expected = [
        {"k": "a", "price": 1.5, "name": "Ann", "n": 1},
        {"k": "b", "price": 2.5, "name": None, "n": 2},
    ]
    assert run(sql, files=files) == expected
    beside = tmp_path / "beside.csv"
    beside.write_text("secret\n1\n")
    with pytest.raises(QueryError, match="Permission Error"):
        run(f"FROM read_csv('{beside}')", files=files)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    files = (TableFile("prices", str(tmp_path / "no.parquet"), "parquet"),)
    with pytest.raises(QueryError, match=r"no\.parquet"):
        run("FROM prices", files=files)


def test_a_file_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "n.csv"
    path.write_text("n\n1\n")
    files = (TableFile("numbers", str(path), "csv"),)
    session = QuerySession(SessionSettings("SELECT n FROM numbers", MEMORY, files=files))
    seen = []
    for text in ("n\n1\n", "n,m\n2,x\n"):
        path.write_text(text)
        body = session.run(ROWS, "batch", 5).body
        seen.append(pa.ipc.open_stream(body).read_all().to_pydict())
    assert seen == [{"n": [1]}, {"n": [2]}]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 9223372036854775807 AS v", 2**63 - 1),
        ("SELECT -9223372036854775808 AS v", -(2**63)),
        ("SELECT 18446744073709551615::UBIGINT AS v", 2**64 - 1),
        ("SELECT sum(x) AS v FROM (VALUES (9223372036854775807), (1)) t(x)", 2**63),
        ("SELECT 'nan'::DOUBLE AS v", None),
        ("SELECT 'inf'::DOUBLE AS v", None),
        ("SELECT 1.5::FLOAT AS v", 1.5),
        (
            "SELECT TIMESTAMP_NS '2026-01-01 00:00:00.123456789' AS v",
            "2026-01-01T00:00:00.123456789Z",
        ),
        ("SELECT TIMESTAMP '2026-01-01 00:00:00' AS v", "2026-01-01T00:00:00Z"),
        ("SELECT TIMESTAMPTZ '2026-01-01 01:00:00+01' AS v", "2026-01-01T00:00:00Z"),
        ("SELECT DATE '2026-01-01' AS v", "2026-01-01"),
        ("SELECT TIME '12:00:00.5' AS v", "12:00:00.5"),
        ("SELECT INTERVAL '1 month 2 days' AS v", "1 month 2 days"),
        ("SELECT [INTERVAL '1 day'] AS v", ["1 day"]),
        ("SELECT '101'::BIT AS v", "101"),
        ("SELECT 'a'::ENUM('a', 'b') AS v", "a"),
        ("SELECT NULL AS v", None),
        ("SELECT {'a': [1, NULL], 'b': {'c': 'x'}} AS v", {"a": [1, None], "b": {"c": "x"}}),
        ("SELECT MAP {'a': 1, 'b': 2} AS v", {"a": 1, "b": 2}),
        ("SELECT '{\"a\": [1, 2.5]}'::JSON AS v", {"a": [1, 2.5]}),
        ("SELECT 7::VARIANT AS v", 7),
        ("SELECT union_value(a := 1) AS v", {"a": 1}),
        (
            "SELECT '550e8400-e29b-41d4-a716-446655440000'::UUID AS v",
            "550e8400-e29b-41d4-a716-446655440000",
        ),
        ("SELECT [1, 2]::INTEGER[2] AS v", [1, 2]),
        ("SELECT ''::VARCHAR AS v", ""),
        ("SELECT 'a' || chr(0) || 'é' AS v", "a\0é"),
    ],
)
def test_values_of_rows_at_their_ends(sql: str, expected: Any) -> None:
    assert run(sql) == [{"v": expected}]


def test_digits_of_decimals_are_kept() -> None:
    (row,) = run("SELECT 12.50::DECIMAL(10,2) AS v")
    assert row["v"].text == "12.50"


def test_names_of_fields_are_names_only() -> None:
    names = ['a"b', "a'b", "a;DROP TABLE batch;--", "a\nb", "\x01", "é", "select"]
    rows = pa.table([pa.array([at]) for at in range(len(names))], names=names)
    assert run("FROM batch", rows) == [dict(zip(names, range(len(names)), strict=True))]


def test_rows_come_in_the_order_of_messages() -> None:
    numbers = pa.table({"n": list(range(50_000))})
    made = run("SELECT n FROM batch WHERE n % 3 = 0", numbers)
    assert [row["n"] for row in made] == list(range(0, 50_000, 3))
    grouped = "SELECT n % 7 AS g, count(*) AS c FROM batch GROUP BY g"
    assert run(grouped, numbers) == run(grouped, numbers)


@pytest.mark.parametrize(
    ("sql", "seconds", "text"),
    [
        ("SELECT count(*) FROM range(10000000000000)", 0.3, "took longer than 0.3 s"),
        (
            "WITH RECURSIVE t AS (SELECT 1 a UNION ALL SELECT a + 1 FROM t) SELECT max(a) FROM t",
            0.3,
            "took longer than 0.3 s",
        ),
        (
            "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range = 7",
            0.3,
            "took longer than 0.3 s",
        ),
        ("SELECT len(list(range)) FROM range(100000000)", 10, "more memory than its memory_limit"),
        (
            "WITH RECURSIVE t AS (SELECT 'aaaa' a UNION ALL SELECT a || a FROM t) "
            "SELECT max(length(a)) FROM t",
            10,
            "more memory than its memory_limit",
        ),
        ("SELECT range FROM range(100000000)", 10, "over 1,000 rows"),
        ("SELECT repeat('x', 100000) AS x FROM range(900)", 10, "over 1,000,000 bytes"),
    ],
)
def test_bounds(sql: str, seconds: float, text: str) -> None:
    with pytest.raises(QueryError, match=text):
        run(sql, seconds=seconds, max_rows=1_000, max_bytes=1_000_000)


def test_what_does_not_fit_into_memory_is_written_where_that_is_named(tmp_path: Path) -> None:
    sql = "SELECT count(*) AS n FROM (SELECT range, hash(range) h FROM range(1000000) ORDER BY h)"
    sql = sql.replace("ORDER BY h)", "ORDER BY h, md5(range::VARCHAR))")
    settings = SessionSettings(sql, 32 << 20, str(tmp_path))
    with pytest.raises(QueryError, match="more memory than its memory_limit"):
        QuerySession(settings._replace(temp_directory="")).run(ROWS, "batch", 60)
    answer = QuerySession(settings).run(ROWS, "batch", 60)
    assert pa.ipc.open_stream(answer.body).read_all().to_pydict() == {"n": [1_000_000]}


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("SELECT k,\n  w\nFROM batch", (2, 3)),
        ("SELECT smu(v) FROM batch", (1, 8)),
        ("SELECT k FROM batch WHERE\n v = 'x'", (2, 6)),
        ("SELECT 'é', nix.k FROM batch", (1, 13)),
        ("SELECT sum(k) FROM batch", (1, 8)),
    ],
)
def test_errors_have_their_place(sql: str, place: tuple[int, int]) -> None:
    with pytest.raises(QueryError) as raised:
        run(sql)
    assert (raised.value.line, raised.value.column) == place
    assert "\n" not in str(raised.value)


def test_a_failed_query_is_followed_by_others() -> None:
    session = QuerySession(SessionSettings("SELECT k::INT AS n FROM batch", MEMORY))
    with pytest.raises(QueryError, match="Could not convert string 'b'"):
        session.run(ROWS, "batch", 5)
    body = session.run(pa.table({"k": ["1"]}), "batch", 5).body
    assert pa.ipc.open_stream(body).read_all().to_pydict() == {"n": [1]}


def test_the_plan() -> None:
    plan = QuerySession(SessionSettings("SELECT sum(v) FROM batch", MEMORY)).explain(
        ROWS, "batch", 5
    )
    assert "sum" in plan and "Scan" in plan
