"""`log`: a line per message, its fields, and what is logged when a part cannot be found."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.core.errors import ConfigError
from streamer.sdk.processing import BulkProcessor

from .conftest import Make, Run, messages, payloads

OWN = {"label": "", "path": "root.pipeline.processors.0", "custom_source": True}


def log(a_run: Run, make: Make, yaml: str, *payloads: str) -> tuple[Any, Any]:
    make(yaml).process(messages(*payloads), a_run.ex)
    return a_run.logged, a_run.fields


def test_every_message_is_logged_at_info_and_passes(make: Make, a_run: Run) -> None:
    processor = make("log: {message: 'got ${! json(\"a\") }'}")
    batch = messages('{"a":1}', '{"a":2}')
    assert processor.process(batch, a_run.ex) == [batch]
    assert a_run.logged == [("INFO", "got 1"), ("INFO", "got 2")]
    assert a_run.fields == [OWN, OWN]


@pytest.mark.parametrize("level", ["WARN", "warn"])
def test_the_level_may_be_in_any_case(level: str, make: Make, a_run: Run) -> None:
    assert log(a_run, make, f"log: {{level: {level}, message: x}}", "{}")[0] == [("WARN", "x")]


def test_an_unknown_level_is_refused(make: Make) -> None:
    with pytest.raises(ConfigError, match="field level is 'LOUD'; expected one of ERROR, WARN"):
        make("log: {level: LOUD}")


def test_fields_come_from_the_mapping_and_then_from_the_map(make: Make, a_run: Run) -> None:
    yaml = """\
log:
  fields_mapping: |
    root.a = this.a
    root.b = "mapped"
  fields:
    b: ${! json("a") }!
"""
    assert log(a_run, make, yaml, '{"a":1}')[1] == [{**OWN, "a": 1, "b": "1!"}]


@pytest.mark.parametrize(
    ("yaml", "text"),
    [
        (
            "log: {fields_mapping: root = this.a}",
            "Fields mapping yielded a non-object result: number",
        ),
        (
            "log: {fields_mapping: root.x = this.a.uppercase()}",
            "Failed to execute fields mapping: failed assignment (line 1): ",
        ),
        ("log: {message: '${! json(\"a\").uppercase() }'}", "Message interpolation error: "),
        ("log: {fields: {f: '${! json(\"a\").uppercase() }'}}", "Field f interpolation error: "),
    ],
)
def test_a_part_that_cannot_be_found_is_an_error_in_the_log_but_no_failure(
    yaml: str, text: str, make: Make, a_run: Run
) -> None:
    found = make(yaml).process(messages('{"a":1}'), a_run.ex)
    assert [message.error for message in found[0]] == [None]
    assert len(a_run.logged) == 1
    assert a_run.logged[0][0] == "ERROR"
    assert a_run.logged[0][1].startswith(text)


def test_messages_that_are_batches_by_themselves_are_logged_each(make: Make, a_run: Run) -> None:
    processor = make("log: {message: '${! batch_index() }/${! batch_size() }'}")
    assert isinstance(processor, BulkProcessor)
    assert payloads([processor.process_each(messages("1", "2"), a_run.ex)]) == [["1", "2"]]
    assert a_run.logged == [("INFO", "0/1"), ("INFO", "0/1")]
