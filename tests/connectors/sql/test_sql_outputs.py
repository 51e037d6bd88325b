"""`sql_insert` and `sql_raw` as outputs, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from streamer.core.errors import ConfigError
from streamer.core.message import Batch, Message
from streamer.sdk.output.rejection import Reason, Rejection
from tests.components.outputs.scripted import Seen, built

from .databases import Place, place


def numbers(*texts: str) -> Batch:
    return [Message(text.encode()) for text in texts]


def test_a_batch_is_inserted_as_a_whole_or_not_at_all(db: Place) -> None:
    fields = f"{db.target}, table: {db.table}, columns: [id, name], max_in_flight: 1"
    output = built(f"sql_insert: {{{fields}, args_mapping: 'root = [ this, \"x\" ]'}}")
    seen = Seen()
    sent = output.deliver([numbers("1", "2"), numbers("3", "1"), numbers("4")], seen.ex)
    assert [error is None for error in sent.errors] == [True, False, True]
    assert sent.errors[1] is not None and re.search("unique|duplicate", sent.errors[1].text, re.I)
    assert sent.errors[1].errors == {}
    assert db.rows() == [(1, "x"), (2, "x"), (4, "x")]
    assert seen.counts["output_error"] == 1


def test_messages_are_put_together_by_the_policy(db: Place) -> None:
    fields = f"{db.target}, table: {db.table}, columns: [id, name], batching: {{count: 3}}"
    mapping = "args_mapping: 'root = [ this, batch_size().string() ]'"
    output = built(f"sql_insert: {{{fields}, {mapping}}}")
    sent = output.deliver([numbers(str(n)) for n in range(4)], Seen().ex)
    assert sent.errors == [None] * 4
    assert db.rows() == [(0, "3"), (1, "3"), (2, "3"), (3, "1")]


def test_only_what_breaks_a_constraint_is_rejected(db: Place) -> None:
    insert = f"INSERT INTO {db.table} VALUES ({db.mark(1)}, 'x')"
    output = built(f"sql_raw: {{{db.target}, query: \"{insert}\", args_mapping: 'root = [this]'}}")
    batch = numbers("1", "2", "2", "3")
    sent = output.deliver([batch], Seen().ex)
    assert sent.errors[0] is not None and sorted(sent.errors[0].errors) == [2]
    assert sent.errors[0].is_rejected
    [left] = sent.failures([batch])
    assert [message.raw for message in left.batch] == [b"2"]
    assert db.rows() == [(1, "x"), (2, "x"), (3, "x")]


@pytest.mark.slow
@pytest.mark.parametrize("server", ["postgres", "mysql"])
@pytest.mark.parametrize(
    ("column", "bad"),
    [
        ("integer", '"no number"'),
        ("smallint", "70000"),
        ("varchar(5)", '"too long for it"'),
        ("integer NOT NULL", "null"),
        ("date", '"2024-02-31"'),
        ("integer CHECK (v < 5)", "7"),
        ("integer REFERENCES parents (id)", "7"),
    ],
    ids=["type", "range", "length", "null", "date", "check", "key"],
)
def test_values_that_a_server_refuses_are_rejected_by_themselves(
    server: str, column: str, bad: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    db = place(server, request, tmp_path)
    parents = f"{db.table}_parents"
    db.run(f"CREATE TABLE {parents} (id integer PRIMARY KEY)")
    db.run(f"INSERT INTO {parents} VALUES (1)")
    column = column.replace("parents", parents)
    db.run(f"CREATE TABLE {db.table} (id integer PRIMARY KEY, v {column})")
    good = '"2024-02-28"' if column == "date" else "1"
    insert = f"INSERT INTO {db.table} VALUES ({db.mark(1)}, {db.mark(2)})"
    mapping = "root = [ this.id, this.v ]"
    output = built(f"sql_raw: {{{db.target}, query: '{insert}', args_mapping: '{mapping}'}}")
    values = [good, bad, good]
    batch = numbers(*(f'{{"id":{n},"v":{value}}}' for n, value in enumerate(values)))
    [error] = output.deliver([batch], Seen().ex).errors
    assert error is not None and error.is_rejected and [*error.errors] == [1]
    assert isinstance(error.errors[1], Rejection) and error.errors[1].reason == Reason.REFUSED
    assert [row[0] for row in db.rows()] == [0, 2]


def test_many_batches_are_inserted_at_once(db: Place) -> None:
    fields = f"{db.target}, table: {db.table}, columns: [id], conn_max_open: 3"
    output = built(f"sql_insert: {{{fields}, args_mapping: 'root = [ this ]'}}")
    sent = output.deliver([numbers(str(n)) for n in range(100)], Seen().ex)
    assert sent.errors == [None] * 100
    assert [row[0] for row in db.rows()] == list(range(100))


def test_it_is_connected_again_until_the_database_is_there(db: Place) -> None:
    there = db.dsn
    missing = (
        there.replace("test.db", "none/a.db")
        if db.driver == "sqlite"
        else (there.replace("/postgres?", "/none?").replace("/streamer?", "/none?"))
    )
    output = built(f"sql_raw: {{driver: {db.driver}, dsn: '{missing}', query: SELECT 1}}")
    seen = Seen()

    class Enough(Exception):
        pass

    def sleep(pause: int) -> None:
        seen.pauses.append(pause)
        if len(seen.pauses) == 3:
            raise Enough

    seen.ex.sleep = sleep
    with pytest.raises(Enough):
        output.deliver([numbers("1")], seen.ex)
    assert seen.counts["output_connection_failed"] == 3
    assert seen.lines[-1][1].startswith("Failed to connect to sql_raw: ")


def test_a_dry_run_asks_the_database_and_changes_nothing(db: Place) -> None:
    init = f"init_statement: 'INSERT INTO {db.table} VALUES (9, NULL)'"
    output = built(f"sql_raw: {{{db.target}, query: SELECT 1, {init}}}")
    assert output.probe() == "the database answers"
    assert db.rows() == []


def test_the_first_statement_that_takes_a_message_runs(db: Place) -> None:
    queries = [
        {
            "when": 'root = if this == 9 { throw("no") } else { this < 0 }',
            "query": f"DELETE FROM {db.table} WHERE id = {db.mark(1)}",
            "args_mapping": "root = [ -this ]",
        },
        {
            "when": "root = this < 5",
            "query": f"INSERT INTO {db.table} VALUES ({db.mark(1)}, 'x')",
            "args_mapping": "root = [ this ]",
        },
    ]
    output = built(f"sql_raw: {{{db.target}, queries: {json.dumps(queries)}}}")
    [error] = output.deliver([numbers("1", "2", "7", "9", "-1", "3")], Seen().ex).errors
    assert error is not None and list(error.errors) == [3] and error.is_rejected
    assert error.errors[3].startswith("when condition evaluation failed: failed assignment")
    assert db.rows() == [(2, "x"), (3, "x")]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("query: SELECT 1, queries: [{query: SELECT 2, when: root = true}]", "make it the last"),
        (
            "queries: [{query: SELECT 1}, {query: SELECT 2, when: root = true}]",
            "has a query without when before the last one",
        ),
    ],
)
def test_statements_that_are_never_reached_are_found(fields: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        built(f"sql_raw: {{driver: sqlite, dsn: 'file::memory:', {fields}}}")
