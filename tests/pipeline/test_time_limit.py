"""`limits.time`: what works too long on one message is interrupted, and only that message fails."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from streamer.catalog import build_context
from streamer.config import parse_config
from streamer.limits import DEFAULT_LIMITS, use_limits
from streamer.message import Execution, Message
from streamer.pipeline import run, run_each
from streamer.pipeline.time_limit import (
    OVERDUE,
    TimeLimitError,
    end_process_when_overdue,
    within_time,
)

MS = 1_000_000
LIMIT = 100 * MS
NESTED = """
mapping: |
  let r = range(0, this.n)
  root.n = $r.fold(0, a -> a.tally + $r.fold(0, b -> b.tally + $r.fold(0, c -> c.tally + 1)))
"""
ENDLESS = "jq: {query: 'if .n > 5 then def f: f; f else .n end'}"


@pytest.fixture(autouse=True)
def limited() -> Iterator[None]:
    use_limits(DEFAULT_LIMITS._replace(time=LIMIT))
    yield
    use_limits(DEFAULT_LIMITS)


def made(yaml: str) -> list:
    indented = yaml.strip().replace("\n", "\n      ")
    config = parse_config(f"pipeline:\n  processors:\n    - {indented}\n", env={})
    return build_context(config.resources).all(config.processors)


def execution() -> Execution:
    return Execution(lambda: 0)


@pytest.mark.parametrize("way", ["each", "batches"])
def test_a_mapping_that_takes_too_long_is_interrupted(way: str) -> None:
    messages = [Message(b'{"n":1}'), Message(b'{"n":3000}'), Message(b'{"n":2}')]
    began = time.monotonic()
    if way == "each":
        found = [batch[0] for batch in run_each(made(NESTED), messages, execution())]
    else:
        batches = run(made(NESTED), [[message] for message in messages], execution())
        found = [batch[0] for batch in batches]
    assert time.monotonic() - began < 30  # without a limit it takes an hour
    assert [message.error is None for message in found] == [True, False, True]
    assert "it takes longer than the 100ms that limits.time allows" in (found[1].error or "")
    assert found[1].error.path == "pipeline.processors.0"  # type: ignore[union-attr]


def test_what_ends_in_time_is_not_disturbed() -> None:
    for _ in range(2000):
        assert within_time(lambda: 5, LIMIT) == 5
    # An end just at the limit is either in time or not, and never comes later.
    for _ in range(20):
        try:
            within_time(lambda: time.sleep(0.01), 10 * MS)
        except TimeLimitError:
            continue
    time.sleep(0.1)


def test_code_in_c_that_does_not_come_back_ends_a_worker() -> None:
    child = os.fork()
    if child == 0:
        try:
            end_process_when_overdue()
            list(run(made(ENDLESS), [[Message(b'{"n":1}')], [Message(b'{"n":9}')]], execution()))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == OVERDUE
