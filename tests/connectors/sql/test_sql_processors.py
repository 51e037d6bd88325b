"""`sql_insert`, `sql_select` and `sql_raw` as processors, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.errors import ConfigError
from streamer.core.message import Message
from tests.components.outputs.scripted import Seen

from .databases import Place


def outcomes(yaml: str, *given: str, seen: Seen | None = None) -> list[str]:
    """Return what a processor makes of a batch: payloads, or `! ` and the error."""
    indented = yaml.replace("\n", "\n      ")
    config = parse_config(f"pipeline:\n  processors:\n    - {indented}\n", env={})
    processor = build_context(config.resources).build(config.processors[0])
    batch = [Message(text.encode()) for text in given]
    [made] = processor.process(batch, (seen or Seen()).ex)
    return [m.raw.decode() if m.error is None else f"! {m.error}" for m in made]


def test_a_batch_is_inserted_and_passes_as_it_is(db: Place) -> None:
    yaml = f"sql_insert: {{{db.target}, table: {db.table}, columns: [id, name], "
    yaml += "args_mapping: 'root = [ this.id, this.name.uppercase() ]', "
    yaml += f"suffix: {db.skipping}}}"
    given = ['{"id":1,"name":"a"}', '{"id":2,"name":"b"}', '{"id":1,"name":"c"}', '{"id":3}']
    *passed, failed = outcomes(yaml, *given)
    assert passed == given[:3]
    assert failed.startswith("! failed assignment (line 1): ")
    assert db.rows() == [(1, "A"), (2, "B")]


def test_a_batch_that_cannot_be_inserted_is_marked_as_a_whole(db: Place) -> None:
    yaml = f"sql_insert: {{{db.target}, table: {db.table}, columns: [id], "
    yaml += "args_mapping: 'root = [ this ]'}"
    first, second = outcomes(yaml, "1", "1")
    assert first == second and re.search("unique|duplicate", first, re.I) and first.startswith("! ")
    assert db.rows() == []


@pytest.mark.slow
def test_more_rows_than_a_statement_can_take_are_inserted_together(db: Place) -> None:
    yaml = f"sql_insert: {{{db.target}, table: {db.table}, columns: [id, name], "
    yaml += "args_mapping: 'root = [ this, \"n\" ]'}"
    number = 33_000
    assert len(outcomes(yaml, *map(str, range(number)))) == number
    assert db.run(f"SELECT count(*), max(id) FROM {db.table}") == [(number, number - 1)]
    failed = outcomes(yaml, *map(str, range(number, 2 * number - 1)), "0")
    assert all(one.startswith("! ") for one in failed)
    assert db.run(f"SELECT count(*) FROM {db.table}") == [(number,)]


def test_rows_that_are_selected_replace_the_message(db: Place) -> None:
    for row in ((1, "a"), (2, "b"), (3, None)):
        db.run(f"INSERT INTO {db.table} VALUES ({db.mark(1)}, {db.mark(2)})", *row)
    yaml = f"sql_select: {{{db.target}, table: {db.table}, columns: ['*'], "
    yaml += "where: id >= ? AND id < ?, args_mapping: 'root = this', suffix: ORDER BY id}"
    assert outcomes(yaml, "[2,9]", "[7,9]", "{}") == [
        '[{"id":2,"name":"b"},{"id":3,"name":null}]',
        "[]",
        "! mapping returned non-array result: map[string]interface {}",
    ]


def test_a_select_without_where_takes_no_arguments(db: Place) -> None:
    db.run(f"INSERT INTO {db.table} VALUES (1, 'a')")
    yaml = f"sql_select: {{{db.target}, table: {db.table}, columns: [name], "
    assert outcomes(yaml + "args_mapping: 'root = [ 5 ]'}", "{}") == ['[{"name":"a"}]']


def test_the_rows_of_the_last_statement_replace_the_message(db: Place) -> None:
    yaml = f"""\
sql_raw:
  driver: {db.driver}
  dsn: {db.dsn}
  query: INSERT INTO {db.table} VALUES ({db.mark(1)}, 'a')
  args_mapping: root = [ this.id ]
  queries:
    - query: SELECT count(*) AS n FROM {db.table}"""
    twice = outcomes(yaml, '{"id":1}', '{"id":2}')
    assert twice == ['[{"n":1}]', '[{"n":2}]']
    # They are one transaction.
    broken = yaml.replace("count(*)", "nothing_such")
    [failed] = outcomes(broken, '{"id":3}')
    assert failed.startswith("! ") and "nothing_such" in failed
    assert [row[0] for row in db.rows()] == [1, 2]


def test_a_statement_that_is_only_run_leaves_the_message(db: Place) -> None:
    insert = f"INSERT INTO {db.table} VALUES ({db.mark(1)}, NULL)"
    yaml = f"sql_raw: {{{db.target}, query: \"{insert}\", args_mapping: 'root = [ this ]'"
    assert outcomes(yaml + ", exec_only: true}", "5") == ["5"]
    # Without it, there is a result, though without rows.
    assert outcomes(yaml + "}", "6") == ["[]"]
    assert db.rows() == [(5, None), (6, None)]


def test_only_unsafe_statements_are_interpolated(db: Place) -> None:
    yaml = f"sql_raw: {{{db.target}, query: \"SELECT '${{! content() }}' AS x\""
    assert outcomes(yaml + "}", "5") == ['[{"x":"${! content() }"}]']
    assert outcomes(yaml + ", unsafe_dynamic_query: true}", "5") == ['[{"x":"5"}]']
    failing = yaml.replace("content()", "this.a.uppercase()") + ", unsafe_dynamic_query: true}"
    [found] = outcomes(failing, '{"a":1}')
    assert found.startswith("! query interpolation error: ")


def test_statements_at_the_begin_run_once_and_may_fail(db: Place, tmp_path: Path) -> None:
    (tmp_path / "1.sql").write_text(
        f"INSERT INTO {db.table} VALUES (1, 'x;y');\nINSERT INTO {db.table} VALUES (2, NULL);"
    )
    (tmp_path / "2.sql").write_text("NONSENSE;")
    yaml = f"sql_raw: {{{db.target}, query: SELECT count(*) AS n FROM {db.table}, "
    yaml += f"init_files: ['{tmp_path}/*.sql'], "
    yaml += f"init_statement: 'INSERT INTO {db.table} VALUES (3, NULL)'}}"
    seen = Seen()
    assert outcomes(yaml, "{}", "{}", seen=seen) == ['[{"n":3}]'] * 2
    [(level, text)] = [line for line in seen.lines if line[0] != "DEBUG"]
    assert level == "WARN" and text.startswith(f"Failed to execute init_file '{tmp_path}/2.sql': ")


def test_what_no_column_can_hold_is_refused_in_gos_words(db: Place) -> None:
    yaml = f"sql_raw: {{{db.target}, query: SELECT 1, args_mapping: 'root = [ this ]'}}"
    assert outcomes(yaml, '{"a":1}', "[1]") == [
        "! sql: converting argument $1 type: unsupported type map[string]interface {}, a map",
        "! sql: converting argument $1 type: unsupported type []interface {}, a slice of interface",
    ]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("sql_raw: {driver: sqlite, dsn: x}", "has no statement; set query or queries"),
        (
            "sql_raw: {driver: snowflake, dsn: x, query: q}",
            "field driver: 'snowflake' is not available; available are clickhouse, mssql, mysql",
        ),
        ("sql_raw: {driver: dbase, dsn: x, query: q}", "expected one of clickhouse, mssql, mysql"),
        (
            "sql_raw: {driver: sqlite, dsn: x, unsafe_dynamic_query: true, query: '${! ( }'}",
            "field query",
        ),
        ("sql_insert: {driver: sqlite, dsn: x, table: t, columns: [a]}", "args_mapping"),
    ],
)
def test_what_cannot_work_is_refused_before_it_runs(fields: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        outcomes(fields, "{}")


@pytest.mark.slow
def test_values_of_postgresql_come_as_go_has_them(postgres_dsn: str) -> None:
    query = (
        "SELECT 1::int2 AS a, 2::bigint AS b, 1.50::numeric AS c, 1.5::float8 AS d, true AS e, "
        "'x'::text AS f, '\\x6162'::bytea AS g, '{\"k\": 1}'::jsonb AS h, ARRAY[1,2] AS i, "
        "'2020-01-02'::date AS j, '2020-01-02 03:04:05.60'::timestamp AS k, "
        "'2020-01-02 03:04:05+02'::timestamptz AS l, NULL AS m, "
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS n, 'infinity'::timestamptz AS o"
    )
    yaml = f"sql_raw:\n  driver: postgres\n  dsn: {postgres_dsn}&TimeZone=UTC\n  query: |\n    "
    yaml = yaml.replace("&TimeZone=UTC", "&options=-ctimezone%3DUTC")
    [found] = outcomes(yaml + query, "{}")
    assert json.loads(found) == [
        {"a": 1, "b": 2, "c": "1.50", "d": 1.5, "e": True, "f": "x", "g": "ab"}
        | {"h": '{"k": 1}', "i": "{1,2}", "j": "2020-01-02T00:00:00Z"}
        | {"k": "2020-01-02T03:04:05.6Z", "l": "2020-01-02T01:04:05Z", "m": None}
        | {"n": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "o": "infinity"}
    ]


@pytest.mark.slow
def test_postgresql_infers_the_types_of_arguments(postgres_dsn: str) -> None:
    # Whatever a mapping gives, the column says what becomes of it, as with Go's driver.
    query = "SELECT $1::text AS a, $2::int AS b, $3::bool AS c, $4::timestamptz IS NULL AS d"
    yaml = f'sql_raw:\n  driver: postgres\n  dsn: {postgres_dsn}\n  query: "{query}"\n'
    yaml += '  args_mapping: root = [ 5, "6", true, null ]'
    assert outcomes(yaml, "{}") == ['[{"a":"5","b":6,"c":true,"d":true}]']


def test_a_database_that_is_not_there_marks_messages(tmp_path: Path) -> None:
    yaml = f"sql_raw: {{driver: sqlite, dsn: 'file:{tmp_path}/none/a.db', query: SELECT 1}}"
    assert outcomes(yaml, "{}") == ["! unable to open database file"]
