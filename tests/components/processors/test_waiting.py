"""Processors that wait: many messages at once, and again after a pause."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.execution import Execution

from .conftest import messages, payloads

SECOND = 10**9


class Run:
    """An execution whose clock moves only while it sleeps."""

    def __init__(self) -> None:
        self.now = 0
        self.slept: list[int] = []
        self.logged: list[tuple[str, str]] = []
        self.ex = Execution(lambda: 0, self._log, elapsed=lambda: self.now, sleep=self._sleep)

    def _sleep(self, ns: int) -> None:
        self.slept.append(ns)
        self.now += ns

    def _log(self, level: str, text: str, fields: Any) -> None:
        self.logged.append((level, text))


def built(yaml: str) -> Any:
    config = parse_config(yaml, env={})
    (processor,) = build_context(config.resources).build_all(config.processors)
    return processor


# Each message stores its number and waits for those of all others.
MEETING = """
pipeline:
  processors:
    - PROCESSOR:
        FIELD
        processors:
          - cache: {resource: met, operator: set, key: "${! content() }", value: x}
          - retry:
              backoff: {initial_interval: 1ms, max_interval: 5ms, max_elapsed_time: 60s}
              processors:
                - branch:
                    processors:
                      - mapping: root = range(0, 5)
                      - unarchive: {format: json_array}
                      - cache: {resource: met, operator: get, key: "${! content() }"}
                      - archive: {format: lines}
cache_resources:
  - label: met
    memory: {}
"""


@pytest.mark.parametrize(
    ("processor", "field"),
    [("parallel", "cap: 0"), ("parallel", "cap: 5"), ("retry", "parallel: true")],
)
def test_messages_are_worked_on_at_once_and_stay_in_order(processor: str, field: str) -> None:
    meeting = built(MEETING.replace("PROCESSOR", processor).replace("FIELD", field))
    batch = messages("3", "0", "4", "1", "2")
    assert payloads(meeting.process(batch, Execution(lambda: 0))) == [["3", "0", "4", "1", "2"]]


def retrying(fields: str, mapping: str) -> Any:
    return built(
        "pipeline: {processors: [{retry: {"
        f"processors: [{{mapping: '{mapping}'}}], {fields}"
        "}}]}"
    )


def test_pauses_grow_up_to_the_longest_and_are_told() -> None:
    retry = retrying(
        "max_retries: 9, backoff: {initial_interval: 1s, max_interval: 4s}",
        'root = throw("no")',
    )
    run = Run()
    [[made]] = retry.process(messages("1"), run.ex)
    assert len(run.slept) == 8
    for pause, middle in zip(run.slept, [1, 1.5, 2.25, 3.375, 4, 4, 4, 4], strict=True):
        assert 0.5 * middle * SECOND <= pause <= 1.5 * middle * SECOND
    assert made.meta == {"retry_count": 9, "backoff_duration": sum(run.slept)}
    assert made.error == "failed assignment (line 1): no"
    assert run.logged[-1][0] == "DEBUG"


def test_it_is_given_up_after_the_time_that_is_set() -> None:
    retry = retrying(
        "backoff: {initial_interval: 1s, max_interval: 1s, max_elapsed_time: 10s}",
        'root = throw("no")',
    )
    run = Run()
    [[made]] = retry.process(messages("1"), run.ex)
    assert made.error is not None
    assert 8 * SECOND < run.now <= 10 * SECOND


def test_each_try_begins_with_the_message_as_it_came() -> None:
    counting = 'root = if count("tries") < 4 { throw("no") } else { content().string() + "!" }'
    retry = retrying("backoff: {max_elapsed_time: 0s}", counting.replace('"', '"'))
    run = Run()
    [[made]] = retry.process(messages("a"), run.ex)
    assert (made.raw, made.error, made.meta["retry_count"]) == (b"a!", None, 3)


def test_a_message_that_succeeds_at_once_waits_for_nothing() -> None:
    run = Run()
    [[made]] = retrying("max_retries: 1", "root = 1").process(messages("a"), run.ex)
    assert made.meta == {"retry_count": 0, "backoff_duration": 0}
    assert run.slept == []
