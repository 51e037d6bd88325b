"""Numbers of more digits than Python reads are errors in plain words, or are not needed."""

from __future__ import annotations

import json

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.message import Message
from streamer.sdk.processing import run
from tests.components.outputs.scripted import Seen

LONG = "9" * 5_000


def result(processor: str, raw: str = LONG) -> Message:
    config = parse_config(f"pipeline:\n  processors:\n    - {processor}\n", env={})
    processors = build_context(config.resources).build_all(config.processors)
    [[message]] = run(processors, [[Message(raw.encode())]], Seen().ex)
    return message


@pytest.mark.parametrize(
    "processor",
    [
        "avro: {operator: from_json, schema: '\"long\"'}",
        "avro: {operator: from_json, encoding: textual, schema: '\"double\"'}",
        "avro: {operator: to_json, encoding: textual, schema: '\"int\"'}",
        "parquet_encode: {schema: [{name: a, type: INT64}]}",
        """mapping: 'root = content().parse_json(use_number: true).int64()'""",
        """mapping: 'root = "a".json_schema("{\\"maxLength\\":" + content() + "}")'""",
        """mapping: 'root = [1].json_path("$[" + content() + "]")'""",
    ],
)
def test_the_error_is_not_pythons(processor: str) -> None:
    raw = f'{{"a":{LONG}}}' if "parquet" in processor else LONG
    error = result(processor, raw).error
    assert error is not None and "4300" not in error and "Error:" not in error, error[:200]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("[1].get(content().string()) == null", True),
        ("[1].exists(content().string())", False),
        ('{"a":[1]}.get("a." + content().string()) == null', True),
        ('"a".re_replace("(a)", "$" + content().string()).length()', 0),
        ('{"1":1,content().string():2}.format_yaml().string().length() > 5000', True),
        ('0.ts_strftime("%" + content().string() + "d").length()', 1024),
    ],
)
def test_what_needs_no_such_number_goes_on(expression: str, value: object) -> None:
    message = result(f"mapping: 'root = {expression}'")
    assert message.error is None and json.loads(message.raw) == value


def test_grok_takes_it_for_no_integer_as_any_beyond_64_bits() -> None:
    for number in (LONG, "9" * 20):
        message = result("grok: {expressions: ['%{INT:a:int}']}", number)
        assert message.error == "no pattern matches found"
