"""Joins of ksqlDB's own tests, from their records and what they give, as whole configs.

The vectors are data, in `tests/data/peer_joins`: facts of those tests, in fields of our own.

- `names`: of the tests there that have these records and joins.
- `joins`: of the first source, `from`, with each next one: `right`, the keys, the type, and for
  streams `within`. Sources in `tables` are tables. `where` chooses results.
- `messages`: each by its source, with its time `ts`, ms, and the key of a record without a value.
- `rows`: fields of what comes out, by source and name, and its time.
- `peer_rows` and `differs`: what comes out there, where it is something else, and the reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from streamer.config import parse_config
from streamer.core.durations import MILLISECOND, SECOND
from streamer.core.message import Message
from streamer.core.timestamps import parse_rfc3339
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.plan import make_plan

DATA = Path(__file__).parents[2] / "data" / "peer_joins"
TIME = "root = @ts.number() / 1000"
GRACE = "24h"
"""ksqlDB's, where a query has no GRACE PERIOD."""


def vectors() -> list[Any]:
    return [
        pytest.param(vector, id=vector["names"][0])
        for path in sorted(DATA.glob("*.yaml"))
        for vector in yaml.safe_load(path.read_text())
    ]


def sources_of(vector: dict[str, Any]) -> list[str]:
    return [vector["from"], *(join["right"] for join in vector["joins"])]


def config_of(vector: dict[str, Any]) -> dict[str, Any]:
    inputs = [{"label": name, "stdin": {}} for name in sources_of(vector)]
    buffers = []
    for number, join in enumerate(vector["joins"]):
        left = f"join{number - 1}" if number else vector["from"]
        is_table = join["right"] in vector["tables"]
        kept = {"key_mapping": f"root = {join['key']}", "type": join.get("type", "inner")}
        if number == 0:
            kept["timestamp_mapping"] = TIME
        if is_table:
            kept |= {"stream": left, "table": join["right"], "table_timestamp_mapping": TIME}
            kept["table_key_mapping"] = f"root = {join['right_key']} | @key.number()"
        else:
            kept |= {"left": left, "right": join["right"], "right_timestamp_mapping": TIME}
            kept |= {"within": join["within"], "allowed_lateness": GRACE}
            kept["right_key_mapping"] = f"root = {join['right_key']}"
        left_text = "if this.left == null { {} } else { this.left }"
        lines = [f"root = {left_text}" if number else f"root.{left} = this.left"]
        lines.append(f"root.{join['right']} = this.right")
        if number == len(vector["joins"]) - 1 and "where" in vector:
            lines.append(f"root = if !({vector['where']}) {{ deleted() }}")
        buffers.append(
            {
                "label": f"join{number}",
                "table_join" if is_table else "window_join": kept,
                "pipeline": {"processors": [{"mapping": "\n".join(lines)}]},
            }
        )
    buffers[-1]["output"] = {"drop": {}}
    return {"input": {"broker": {"inputs": inputs}}, "buffers": buffers}


def sent_of(vector: dict[str, Any]) -> list[ScriptedMessage]:
    sent = []
    for one in vector["messages"]:
        (name,) = {*one} - {"ts", "key"}
        meta = {key: one[key] for key in ("ts", "key") if key in one}
        document = one[name]
        message = Message(b"", meta) if document is None else Message(None, meta, None, document)
        sent.append(ScriptedMessage(message, input=name))
    return sent


def row_of(message: Message, fields: list[str]) -> dict[str, Any]:
    """Return the fields of a result that a vector tells of, and its time."""
    row = {}
    for field in fields:
        source, _, name = field.partition(".")
        row[field] = (message.doc[source] or {}).get(name) if name else None
    ns = parse_rfc3339(str(message.meta["window_max_timestamp"])).ns
    return {**row, "ts": ns // MILLISECOND}


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("vector", vectors())
def test_joins_give_what_they_give_in_ksqldb(vector: dict[str, Any], shards: int) -> None:
    config = parse_config(yaml.safe_dump(config_of(vector)))
    sent = sent_of(vector)
    stream = ScriptedStream(make_plan(config), known=sent, max_shards=shards)
    fields = sorted({field for row in vector["rows"] for field in row} - {"ts"})
    rows = []
    for number in range(len(sent) + 1):
        some, is_last = sent[number : number + 1], number == len(sent)
        outcome = stream.run_micro_batch((number + 1) * SECOND, some, ended=is_last)
        if number == len(sent) // 2:
            stream.restart()
        rows += [row_of(message, fields) for batch in outcome.batches for message in batch]
    assert rows == vector["rows"]
    assert ("differs" in vector) == ("peer_rows" in vector)
    assert vector.get("peer_rows") != rows


def test_vectors_are_those_of_the_listed_tests() -> None:
    kinds = {"stream-table": 0, "several": 0, "windowed": 0}
    for one in vectors():
        vector = one.values[0]
        kind = "several" if len(vector["joins"]) > 1 else "stream-table"
        if not vector["tables"] and kind == "stream-table":
            kind = "windowed"
        kinds[kind] += len(vector["names"])
    assert kinds == {"stream-table": 20, "several": 39, "windowed": 3}
