"""Bytes that are no document are refused in Go's words.

The table holds texts and what Benthos 4.76 answers to `root = this` on each of them.
"""

import json
import re
from pathlib import Path

import pytest

from streamer.core.json.json_fault import find_json_fault
from streamer.core.json.parse import parse_json

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "json_faults.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize(("text", "fault"), ROWS)
def test_a_fault_is_named_as_go_names_it(text, fault):
    assert find_json_fault(text.encode()) == fault
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
        parse_json(text.encode())


@pytest.mark.parametrize("text", [" [1, -0.5e+3, {}] ", '{"a":{"b":[]}}\n', '"\\u00e9\\n"', "0"])
def test_a_document_has_no_fault(text):
    assert find_json_fault(text.encode()) is None


def test_depth_beyond_what_go_reads_is_a_fault():
    assert find_json_fault(b"[" * 10_001) == "exceeded max depth"
