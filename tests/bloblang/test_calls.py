"""Functions and methods, call by call, as Benthos 4.76 answers.

Each line of data/calls_*.jsonl is a mapping, what it is given, and `out`, `error` (at run time),
`parse` (with its place) or `deleted`. `document` stands for the document in data/document.json.
"""

import json
from pathlib import Path

import pytest

from streamer.bloblang import BloblangError, catalog, compile_mapping
from streamer.core.errors import MessageError
from streamer.core.message import Message
from tests.bloblang.running import execution

DATA = Path(__file__).parent / "data"
DOCUMENT = (DATA / "document.json").read_text().strip()
CALLS = {
    path.stem.removeprefix("calls_"): [json.loads(line) for line in path.open()]
    for path in sorted(DATA.glob("calls_*.jsonl"))
}


def answer(mapping, given):
    try:
        compiled = compile_mapping(mapping)
    except BloblangError as e:
        return {"parse": f"line {e.line} char {e.column}: {e.message}"}
    try:
        result = compiled.apply([Message(given.encode())], 0, execution())
    except MessageError as e:
        return {"error": str(e)}
    return {"deleted": True} if result is None else {"out": result.raw.decode()}


def cases():
    for category, rows in CALLS.items():
        by_name = {}
        for row in rows:
            by_name.setdefault(row["name"], []).append(row)
        for name, own in by_name.items():
            yield pytest.param(own, id=f"{category}-{name}")


@pytest.mark.parametrize("rows", list(cases()))
def test_a_call_gives_what_benthos_gives(rows):
    differing = []
    for row in rows:
        given = DOCUMENT if row["given"] == "document" else row["given"]
        wanted = {key: row[key] for key in ("out", "error", "parse", "deleted") if key in row}
        found = answer(row["mapping"], given)
        if found != wanted:
            differing.append((row["mapping"], wanted, found))
    assert differing == []


def test_every_function_and_method_of_benthos_has_calls():
    listed = {**catalog.FUNCTIONS, **catalog.METHODS}
    ours = {name for name, declared in listed.items() if declared.origin == "benthos"}
    assert ours <= {row["name"] for rows in CALLS.values() for row in rows}


def test_every_method_is_shown_to_succeed_and_to_fail():
    rows = [row for rows in CALLS.values() for row in rows]
    succeed = {row["name"] for row in rows if "out" in row}
    fail = {row["name"] for row in rows if "error" in row or "parse" in row}
    # These take whatever they are given.
    forgiving = {"array", "bytes", "deleted", "from_all", "nothing", "string", "type"}
    forgiving |= {"catch", "or", "map"}
    methods = {name for name, d in catalog.METHODS.items() if d.origin == "benthos"}
    assert methods <= succeed
    assert methods - forgiving <= fail
