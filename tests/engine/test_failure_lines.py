"""The log of messages that fail: said once, with the message, and that it is not JSON."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streamer.config import parse_config
from streamer.core.message import Message
from streamer.engine.report.result_frame import TaskReport
from streamer.plan import make_plan
from streamer.sdk.processing import run

GROUP = "group_by_value: { value: '${! this.sensor }' }"
MAPPING = "mapping: 'root.v = this.sensor'"
LOG = "log: { message: '${! this.sensor }' }"


def lines(processor: str, *payloads: bytes) -> list[list[Any]]:
    config = parse_config(f"pipeline: {{ processors: [ {processor} ] }}", env={})
    plan = make_plan(config)
    task = TaskReport("INFO")
    built = plan.context().build_all(plan.processors)
    [*run(built, [[Message(one) for one in payloads]], task.execution)]
    return [*orjson.loads(task.log_body() or b"[]")]


@pytest.mark.parametrize("processor", [GROUP, MAPPING])
def test_messages_that_are_not_json_are_said_once_with_a_sample_and_their_number(
    processor: str,
) -> None:
    payloads = [b"temp=1&unit=C \x1b[31m\n", *[b"temp=%d&unit=C" % n for n in range(2, 11)]]
    (line,) = lines("{ " + processor + " }", *payloads)
    level, text, fields = line
    assert level == "ERROR" and "json" in text.lower() and "invalid character" in text
    assert "context was undefined" not in text
    assert fields["sample"] == "temp=1&unit=C \x1b[31m\n"
    assert (fields["repeated"], fields["path"]) == (9, "root.pipeline.processors.0")


def test_a_log_processor_says_that_its_message_is_not_json() -> None:
    ((_, text, _),) = lines("{ " + LOG + " }", b"not json")
    assert "Message interpolation error: " in text and "JSON" in text


def test_another_failure_of_the_same_component_has_its_own_line_and_sample() -> None:
    mapping = "{ mapping: 'root.v = this.a.number() + this.b.number()' }"
    first, second = lines(mapping, b'{"a":1}', b'{"a":1}', b'{"b":1,"a":[]}')
    assert (first[2]["sample"], first[2]["repeated"]) == ('{"a":1}', 1)
    assert second[2]["sample"] == '{"b":1,"a":[]}' and "repeated" not in second[2]
