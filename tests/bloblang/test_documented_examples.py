"""Benthos's documented examples: each mapping is compiled once and run over its cases in order."""

import json
from pathlib import Path

import pytest

from tests.bloblang.running import execution, run

DATA = Path(__file__).parent / "data"
EXAMPLES = [json.loads(line) for line in (DATA / "documented_examples.jsonl").open()]
# The trace that Benthos's own run of its examples puts messages into.
TRACE = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}


def equal(found, wanted):
    try:
        return json.loads(found) == json.loads(wanted)
    except ValueError:
        return found == wanted


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["name"])
def test_a_documented_example_gives_the_documented_result(example):
    ex = execution()
    meta = TRACE if example["name"] == "function tracing_span" else {}
    for given, wanted in example["cases"]:
        found = run(example["mapping"], given, meta=meta, ex=ex)
        found = found.replace("<deleted>", "<Message deleted>")
        assert equal(found, wanted), found
