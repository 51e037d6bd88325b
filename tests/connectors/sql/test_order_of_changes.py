"""Upserts and deletes of one table, in the order of the changes."""

from __future__ import annotations

import json
import random

import pytest

from streamer.core.message import Batch, Message
from tests.components.outputs.scripted import Seen, built

from .databases import Place


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
        size = rng.randint(1, 1)
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
