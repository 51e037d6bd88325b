"""SQL sees the results, and can do nothing to the machine."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from streamer.engine.results import sql_query
from streamer.engine.results.json_cells import to_json_value
from streamer.engine.results.layout import RetentionError
from streamer.engine.results.query_model import ResultQueryError
from streamer.engine.results.select_server import select_rows
from streamer.engine.results.sql_cells import decode_row
from streamer.engine.results.sql_query import MAX_SQL_CHARACTERS, SqlTable, run_select

from .kept import Row, T, keep, portion, store

SECRET = "a secret that nobody may read"


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run statements here: to start a process for each of many takes long."""

    def run(request: dict[str, Any], directory: Path, _: object) -> SqlTable:
        header, body = select_rows(request)
        return SqlTable(tuple(header["columns"]), tuple(map(decode_row, body.splitlines())))

    monkeypatch.setattr(sql_query, "_run_process", run)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    directory = tmp_path / "results"
    keep(directory, Row("a", T, b'{"n":1}'), Row("b", T, b'{"n":2}'), Row("a", T + 1, b'{"n":4}'))
    return directory


def test_a_select_sees_results_by_name(results: Path) -> None:
    sql = "SELECT key, sum((content->>'$.n')::INT) AS n FROM results GROUP BY key ORDER BY key"
    answer = run_select(results, sql, T)
    assert (answer.columns, answer.rows, answer.cut) == (("key", "n"), (("a", 5), ("b", 2)), False)


def test_the_columns_are_those_that_are_documented(results: Path) -> None:
    answer = run_select(results, "FROM results", T)
    assert answer.columns == (
        *("key", "key_json", "window_start", "window_end", "emitted_at", "emit", "revision"),
        *("part", "content", "bytes", "metadata", "error"),
    )
    assert len(answer.rows) == 3


def test_results_have_the_latest_revision_unless_all_are_asked_for(tmp_path: Path) -> None:
    kept = store(tmp_path)
    for batch in range(3):
        kept.write(batch, [portion([Row("a", T, b"%d" % batch, emit="changes")])], T)
    sql = "SELECT content, revision FROM results ORDER BY revision"
    assert run_select(tmp_path, sql, T).rows == (("2", 3),)
    assert run_select(tmp_path, sql, T, revisions=True).rows == (("0", 1), ("1", 2), ("2", 3))


def test_an_empty_store_has_the_table_too(tmp_path: Path) -> None:
    store(tmp_path)
    assert run_select(tmp_path, "SELECT key, window_end, revision FROM results", T).rows == ()
    with pytest.raises(RetentionError, match="there are no results in"):
        run_select(tmp_path / "nowhere", "SELECT 1", T)


def test_what_is_more_than_the_limit_is_cut_and_it_is_said(results: Path) -> None:
    answer = run_select(results, "SELECT * FROM range(100)", T, limit=7)
    assert (len(answer.rows), answer.cut) == (7, True)
    assert not run_select(results, "SELECT * FROM range(7)", T, limit=7).cut
    long = run_select(results, "SELECT repeat('x', 1000000) FROM range(100)", T)
    assert long.cut and len(long.rows) < 50


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("COPY (SELECT 1) TO 'x.csv'", "COPY"),
        ("CREATE TABLE t (n INT)", "CREATE"),
        ("DROP VIEW results", "DROP"),
        ("INSERT INTO results VALUES (1)", "INSERT"),
        ("ATTACH 'x.db'", "ATTACH"),
        ("SET threads = 8", "SET"),
        ("INSTALL httpfs", "LOAD"),
        ("LOAD httpfs", "LOAD"),
        ("PRAGMA database_list", "PRAGMA"),
        ("EXPORT DATABASE 'x'", "EXPORT"),
        ("EXPLAIN SELECT 1", "EXPLAIN"),
        ("CALL pragma_version()", "CALL"),
        ("PREPARE p AS SELECT 1", "PREPARE"),
        ("VACUUM", "VACUUM"),
        ("BEGIN", "TRANSACTION"),
        ("USE memory", "SET"),
    ],
)
def test_only_a_select_is_run(results: Path, sql: str, found: str) -> None:
    with pytest.raises(ResultQueryError, match=f"expected a SELECT over results, found .* {found}"):
        run_select(results, sql, T)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("sql", "count"), [("SELECT 1; SELECT 2", 2), ("", 0), ("SELECT 1; DROP VIEW results", 2)]
)
def test_one_statement_is_run(results: Path, sql: str, count: int) -> None:
    with pytest.raises(ResultQueryError, match=f"expected one SELECT, found {count} statements"):
        run_select(results, sql, T)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM read_blob('{secret}')",
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM read_text('{results}/new/../../secret.csv')",
        "SELECT * FROM read_text('{results}/manifest.json')",
        "SELECT * FROM glob('{results}/*')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM read_parquet('/**/*.parquet')",
        "SELECT * FROM read_json('/proc/self/environ')",
        "SELECT * FROM sniff_csv('{secret}')",
        "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')",
        "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
        "SELECT * FROM sqlite_scan('x.db', 't')",
        "SELECT getenv('HOME')",
        "SELECT * FROM query('COPY (SELECT 1) TO ''{results}/x''')",
        "SELECT * FROM python_variable",
        "WITH t AS (INSERT INTO results VALUES (1) RETURNING *) SELECT * FROM t",
    ],
)
def test_nothing_else_can_be_read(results: Path, tmp_path: Path, sql: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text(SECRET)
    python_variable = {"secret": [SECRET]}
    assert python_variable
    before = sorted(tmp_path.rglob("*"))
    text = sql.replace("{secret}", str(secret)).replace("{results}", str(results))
    with pytest.raises(ResultQueryError) as raised:
        run_select(results, text, T)
    assert SECRET not in str(raised.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_settings_and_files_outside_stay_hidden(results: Path) -> None:
    rows = run_select(results, "SELECT name, value FROM duckdb_settings()", T).rows
    settings = dict(rows)
    assert settings["enable_external_access"] == "false"
    assert settings["lock_configuration"] == "true"
    assert settings["python_enable_replacements"] == "false"
    assert run_select(results, "SELECT * FROM duckdb_secrets()", T).rows == ()
    with pytest.raises(ResultQueryError) as raised:
        run_select(results, "SELECT * FROM read_text('~/x')", T)
    assert os.path.expanduser("~") not in str(raised.value)


def test_a_statement_that_takes_too_long_is_given_up(results: Path) -> None:
    sql = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
    with pytest.raises(ResultQueryError, match="took longer than 0.3 s"):
        run_select(results, sql, T, seconds=0.3)


def test_a_statement_that_takes_too_much_memory_is_given_up(results: Path) -> None:
    sql = "SELECT count(*) FROM (SELECT DISTINCT md5(range::VARCHAR) FROM range(100000000))"
    with pytest.raises(ResultQueryError, match="more memory than it may|took longer"):
        run_select(results, sql, T, seconds=20)


def test_a_statement_that_is_wrong_says_so_without_naming_places(results: Path) -> None:
    with pytest.raises(ResultQueryError, match="the statement cannot be run: .*nope") as raised:
        run_select(results, "SELECT nope FROM results", T)
    assert str(results) not in str(raised.value)
    with pytest.raises(ResultQueryError, match="the statement cannot be run: Parser"):
        run_select(results, "SELEKT 1", T)
    with pytest.raises(ResultQueryError, match="the statement has 65,5.. characters"):
        run_select(results, " " * MAX_SQL_CHARACTERS + "SELECT 1", T)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2026, 11, 21, 10), "2026-11-21T10:00:00Z"),
        (datetime(2026, 11, 21, 10, tzinfo=UTC), "2026-11-21T10:00:00+00:00"),
        (timedelta(minutes=1), 60.0),
        (Decimal("1.5"), 1.5),
        (Decimal(12), 12),
        (b"\xff", "/w=="),
        (float("nan"), "nan"),
        ([{"a": Decimal(1)}, None], [{"a": 1}, None]),
        ({1: (2, True)}, {"1": [2, True]}),
    ],
)
def test_values_have_a_form_in_json(value: object, expected: object) -> None:
    assert to_json_value(value) == expected
