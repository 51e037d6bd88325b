"""`string_split`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.core.message import Message

from .changes import outcomes
from .conftest import Make, Run


@pytest.mark.parametrize(
    ("fields", "text", "expected"),
    [
        ({"delimiter": ","}, "a,,b", '["a","","b"]'),
        ({"delimiter": ",", "empty_as_null": True}, "a,,b", '["a",null,"b"]'),
        ({}, "a\nb\n", '["a","b",""]'),
        ({"delimiter": "--"}, "", '[""]'),
        ({"delimiter": "", "empty_as_null": True}, "a\u00e9", '["a","\u00e9"]'),
    ],
)
def test_messages_are_split(make: Make, a_run: Run, fields: Any, text: str, expected: str) -> None:
    assert outcomes(make, a_run, f"string_split: {json.dumps(fields)}", text) == [expected]


def test_parts_may_be_bytes(make: Make, a_run: Run) -> None:
    processor = make('string_split: { delimiter: ",", emit_bytes: true, empty_as_null: true }')
    [[message]] = processor.process([Message(b"a\xff,,b")], a_run.ex)
    assert message.doc == [b"a\xff", None, b"b"]
