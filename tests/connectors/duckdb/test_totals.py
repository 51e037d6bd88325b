"""Totals of random batches, with bad messages among good ones, against totals made in Python."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from streamer.connectors.duckdb.batch_columns import ColumnBuilder
from streamer.connectors.duckdb.column_kinds import parse_batch_columns
from streamer.connectors.duckdb.query_text import parse_query
from streamer.connectors.duckdb.session import QuerySession, SessionSettings
from streamer.connectors.tables.batch_table import make_row_documents
from streamer.core.message import Message
from streamer.core.value import Number

TOTALS = """
SELECT k, count(*) AS n, count(v) AS known, sum(v) AS total, min(v) AS least, max(v) AS most,
  list(v) AS all
FROM batch GROUP BY k ORDER BY k NULLS FIRST
"""
COLUMNS = {"k": "string", "v": "bigint"}
BAD = ("[]", '"x"', "7", "no JSON", '{"k":1,"v":1}', '{"k":"a","v":"1"}', '{"k":"a","v":1.5}')


def make_payload(chance: random.Random) -> tuple[str, Any]:
    """Return a payload, and its document; None for a message that is no row."""
    if chance.random() < 0.05:
        return chance.choice(BAD), None
    document: dict[str, Any] = {"other": {"deep": [chance.random()]}}
    if chance.random() < 0.9:
        document["k"] = chance.choice(["a", "b", 'c"', "d'", "é\u0000", None])
    if chance.random() < 0.9:
        document["v"] = chance.choice([chance.randrange(-(2**62), 2**62), 0, -1, None, 3.0])
    return json.dumps(document), document


@pytest.mark.parametrize("declared", [True, False])
def test_totals_are_those_of_python(declared: bool) -> None:
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    session = QuerySession(SessionSettings(TOTALS, 256 << 20))
    schema = parse_batch_columns(COLUMNS if declared else {})
    builder = ColumnBuilder(parse_query(TOTALS), schema, ())
    for _ in range(5):
        made = [make_payload(chance) for _ in range(chance.randrange(1, 400))]
        if not declared:
            # Nothing but objects can be bad where values decide the types: whole floats are floats.
            made = [
                one for one in made if one[1] is not None and not isinstance(one[1].get("v"), float)
            ]
            if not any(isinstance(one[1].get("v"), int) for one in made):
                continue
            if not any(one[1].get("k") for one in made):
                continue
        columns = builder.build([Message(payload.encode()) for payload, _ in made])
        good = [document for _, document in made if document is not None]
        assert len(columns.errors) == len(made) - len(good), f"seed {seed}"
        if not good:
            continue
        answer = session.run(columns.rows, "batch", 30)
        rows = make_row_documents(pa.ipc.open_stream(answer.body).read_all())
        assert [_plain(row) for row in rows] == _expected(good), f"seed {seed}"


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    total = row["total"]
    if isinstance(total, Number):
        # It is beyond 64 bits, and keeps its digits as text.
        total = int(total.text)
    return {**row, "total": total}


def _expected(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[str | None, list[Any]] = {}
    for document in documents:
        groups.setdefault(document.get("k"), []).append(document.get("v"))
    rows = []
    for key in sorted(groups, key=lambda one: (one is not None, (one or "").encode())):
        values = [int(value) for value in groups[key] if value is not None]
        rows.append(
            {
                "k": key,
                "n": len(groups[key]),
                "known": len(values),
                "total": sum(values) if values else None,
                "least": min(values, default=None),
                "most": max(values, default=None),
                "all": [None if value is None else int(value) for value in groups[key]],
            }
        )
    return rows
