"""Benthos's documented examples: each mapping is compiled once and run over its cases in order."""

import json
from pathlib import Path

import pytest

from tests.bloblang.running import execution, run

DATA = Path(__file__).parent / "data"
EXAMPLES = [json.loads(line) for line in (DATA / "documented_examples.jsonl").open()]
PENDING = json.loads((DATA / "pending_examples.json").read_text())


def parameters():
    for number, example in enumerate(EXAMPLES):
        reason = PENDING.get(example["name"])
        marks = [pytest.mark.xfail(reason=reason)] if reason else []
        yield pytest.param(example, id=f"{number}-{example['name']}", marks=marks)


def equal(found, wanted):
    try:
        return json.loads(found) == json.loads(wanted)
    except ValueError:
        return found == wanted


@pytest.mark.parametrize("example", list(parameters()))
def test_a_documented_example_gives_the_documented_result(example):
    ex = execution()
    for given, wanted in example["cases"]:
        found = run(example["mapping"], given, ex=ex).replace("<deleted>", "<Message deleted>")
        assert equal(found, wanted), found


def test_pending_examples_exist():
    assert set(PENDING) <= {example["name"] for example in EXAMPLES}
