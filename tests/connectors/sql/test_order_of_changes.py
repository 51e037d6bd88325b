"""Upserts and deletes of one table, in the order of the changes."""

from __future__ import annotations

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from streamer.connectors.sql.database import Database
from streamer.connectors.sql.drivers import find_driver
from streamer.connectors.sql.pool_bounds import PoolBounds
from streamer.core.errors import ConfigError
from streamer.core.message import Batch, Message
from tests.components.outputs.scripted import Seen, built

from .databases import Place, place


def make_changes(number: int, keys: int, seed: int) -> tuple[list[dict[str, object]], list[object]]:
    """Return changes of a table, and the rows that are left in the end."""
    rng = random.Random(seed)
    rows: dict[int, str] = {}
    changes: list[dict[str, object]] = []
    for count in range(number):
        key = rng.randrange(keys)
        if rng.random() < 0.4:
            rows.pop(key, None)
            changes.append({"op": "d", "before": {"id": key}, "after": None})
        else:
            rows[key] = f"v{count}"
            changes.append({"op": "u", "after": {"id": key, "name": rows[key]}})
    return changes, sorted(rows.items())


def cut(changes: list[dict[str, object]], seed: int) -> list[Batch]:
    """Return the changes in batches of one to three."""
    rng = random.Random(seed)
    messages = [Message(json.dumps(change).encode()) for change in changes]
    batches: list[Batch] = []
    while messages:
        size = rng.randint(1, 3)
        batches.append(messages[:size])
        del messages[:size]
    return batches


@pytest.mark.parametrize("outer", ["%s", "retry: {output: {%s}}"])
def test_a_delete_in_another_case_does_not_overtake_an_upsert(db: Place, outer: str) -> None:
    changes, rows = make_changes(120, 10, seed=7)
    delete = f"DELETE FROM {db.table} WHERE id = {db.mark(1)}"
    update = (
        "ON DUPLICATE KEY UPDATE name = VALUES(name)"
        if db.driver == "mysql"
        else "ON CONFLICT (id) DO UPDATE SET name = excluded.name"
    )
    cases = (
        f"{{check: this.op == \"d\", output: {{sql_raw: {{{db.target}, query: '{delete}', "
        "args_mapping: 'root = [this.before.id]', max_in_flight: 1}}}, "
        f"{{output: {{sql_insert: {{{db.target}, table: {db.table}, columns: [id, name], "
        f"suffix: '{update}', args_mapping: 'root = [this.after.id, this.after.name]', "
        "max_in_flight: 1}}}"
    )
    output = built(outer % f"switch: {{cases: [{cases}]}}")
    batches = cut(changes, seed=7)
    assert output.deliver(batches, Seen().ex, hold=True).errors == [None] * len(batches)
    assert db.rows() == rows


CDC = (
    "args_mapping: 'root = [(this.after | this.before).id, this.after.name]', upsert_by: [id], "
    'delete_when: this.op == "d"'
)


@pytest.mark.parametrize("in_flight", [1, 64])
def test_upserts_and_deletes_of_one_output_keep_their_order(db: Place, in_flight: int) -> None:
    changes, rows = make_changes(3_000, 200, seed=11)
    fields = f"{db.target}, table: {db.table}, columns: [id, name], max_in_flight: {in_flight}"
    output = built(f"sql_insert: {{{fields}, {CDC}}}")
    batches = cut(changes, seed=11)
    assert output.deliver(batches, Seen().ex, hold=True).errors == [None] * len(batches)
    assert db.rows() == rows
    # The same changes again leave the same table.
    assert output.deliver(batches, Seen().ex).errors == [None] * len(batches)
    assert db.rows() == rows


def test_a_change_that_is_refused_is_rejected_alone(db: Place) -> None:
    db.run(f"CREATE UNIQUE INDEX {db.table}_name ON {db.table} (name{_prefix_length(db)})")
    changes = [
        *({"op": "u", "after": {"id": n, "name": f"n{n}"}} for n in range(30)),
        {"op": "u", "after": {"id": 30, "name": None}},
        {"op": "u"},  # no key
        *({"op": "d", "before": {"id": n}} for n in range(20)),
    ]
    refused = {"op": "u", "after": {"id": 99, "name": "n5"}}  # that name is taken
    if db.driver == "mysql":
        refused = {"op": "u", "after": {"id": "x", "name": "y"}}
    changes.insert(10, refused)
    fields = f"{db.target}, table: {db.table}, columns: [id, name]"
    output = built(f"sql_insert: {{{fields}, {CDC}}}")
    seen = Seen()
    sent = output.deliver([[Message(json.dumps(one).encode())] for one in changes], seen.ex)
    failed = {n: error for n, error in enumerate(sent.errors) if error is not None}
    # SQLite gives a row without a key one.
    assert [*failed] == ([10] if db.driver == "sqlite" else [10, 32])
    assert all(error.is_rejected for error in failed.values())
    assert [row for row in db.rows() if row[0] < 31] == [
        *((n, f"n{n}") for n in range(20, 30)),
        (30, None),
    ]


def _prefix_length(db: Place) -> str:
    return "(50)" if db.driver == "mysql" else ""


def test_a_key_of_several_columns_and_nothing_besides(db: Place) -> None:
    db.run(f"CREATE TABLE {db.table}_seen (a varchar(9), b integer, PRIMARY KEY (a, b))")
    fields = f"{db.target}, table: {db.table}_seen, columns: [b, a]"
    output = built(
        f"sql_insert: {{{fields}, args_mapping: 'root = [this.b, this.a]', upsert_by: [a, b], "
        "delete_when: this.gone == true}"
    )
    rows = [("x", 1), ("y", 1), ("x", 2), ("x", 1), ("y", 1)]
    some = [[Message(json.dumps({"a": a, "b": b, "gone": a == "y"}).encode())] for a, b in rows]
    assert output.deliver(some, Seen().ex).errors == [None] * 5
    found = db.run(f"SELECT a, b FROM {db.table}_seen ORDER BY 1, 2")
    assert [tuple(row) for row in found] == [("x", 1), ("x", 2)]


def test_a_row_may_come_twice_in_a_batch_with_a_conflict_of_the_config_s_own(db: Place) -> None:
    update = (
        "ON DUPLICATE KEY UPDATE name = VALUES(name)"
        if db.driver == "mysql"
        else "ON CONFLICT (id) DO UPDATE SET name = excluded.name"
    )
    output = built(
        f"sql_insert: {{{db.target}, table: {db.table}, columns: [id, name], "
        f"suffix: '{update}', args_mapping: 'root = [this.id, this.name]'}}"
    )
    rows = [{"id": n % 3, "name": f"v{n}"} for n in range(10)]
    batch = [Message(json.dumps(row).encode()) for row in rows]
    assert output.deliver([batch], Seen().ex).errors == [None]
    assert db.rows() == [(0, "v9"), (1, "v7"), (2, "v8")]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("upsert_by: [key]", "has 'key', which is none of the columns"),
        ("upsert_by: []", "is empty; name the columns of the key"),
        ("upsert_by: [id], suffix: ON CONFLICT DO NOTHING", "stands for a suffix"),
        ('delete_when: this.op == "d"', "needs upsert_by"),
    ],
)
def test_what_is_wrong_with_a_key_is_told(fields: str, text: str) -> None:
    target = "driver: sqlite, dsn: 'file:a.db', table: t, columns: [id]"
    with pytest.raises(ConfigError, match=text):
        built(f"sql_insert: {{{target}, args_mapping: 'root = [this.id]', {fields}}}")


@pytest.mark.slow
@pytest.mark.parametrize("server", ["postgres", "mysql"])
def test_what_loses_against_another_transaction_is_written_in_smaller_ones(
    server: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    db = place(server, request, tmp_path)
    db.run(f"CREATE TABLE {db.table} (id integer PRIMARY KEY, n integer)")
    db.run(f"INSERT INTO {db.table} VALUES (0, 0), (1, 0), (2, 0), (3, 0)")
    fields = f"{db.target}, table: {db.table}, columns: [id, n]"
    output = built(f"sql_insert: {{{fields}, args_mapping: 'root = [this, 1]', upsert_by: [id]}}")
    other = Database(find_driver(server), db.dsn, PoolBounds())
    seen = Seen()
    with ThreadPoolExecutor(1) as pool:
        with other.transaction() as session:
            # More rows than the output changes: MySQL ends the smaller transaction.
            session.run(f"INSERT INTO {db.table} SELECT id + 100, 7 FROM {db.table}")
            session.run(f"UPDATE {db.table} SET n = 5 WHERE id = 3")
            write = pool.submit(output.deliver, [[Message(b"%d" % n)] for n in range(4)], seen.ex)
            time.sleep(0.3)  # it has changed 0 to 2, and waits for 3
            session.run(f"UPDATE {db.table} SET n = 5 WHERE id = 0")
        assert write.result(60).errors == [None] * 4
    other.close()
    # The other one changes 0 before or after the output has done it again.
    assert [row for row in db.rows() if 0 < row[0] < 100] == [(n, 1) for n in range(1, 4)]
