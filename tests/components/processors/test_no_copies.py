"""Batches pass through processors that change nothing as they are: no copy of list or message."""

from __future__ import annotations

import pytest

from streamer.core.message import Message
from streamer.sdk.processing import run

from .conftest import Make, Run

IDLE = [
    "noop: {}",
    "log: {message: '${! this.n }'}",
    "metric: {type: counter, name: Foo}",
    "bounds_check: {}",
    "sleep: {duration: 0s}",
    "split: {size: 100}",
    "processors: [noop: {}, log: {}]",
    "processors: []",
    "catch: [mapping: 'root = {}']",
]


@pytest.mark.parametrize("yaml", IDLE)
def test_a_batch_in_which_nothing_changes_is_passed_on_itself(
    yaml: str, make: Make, a_run: Run
) -> None:
    batch = [Message(b'{"n":%d}' % n) for n in range(3)]
    members = list(batch)
    [found] = run([make(yaml)], [batch], a_run.ex)
    assert all(one is other for one, other in zip(found, members, strict=True))
    assert found is batch


@pytest.mark.parametrize("yaml", ["try: [noop: {}]", "for_each: [log: {}]", "group_by: []"])
def test_messages_that_are_put_together_anew_are_the_same_messages(
    yaml: str, make: Make, a_run: Run
) -> None:
    batch = [Message(b"x") for _ in range(3)]
    [found] = run([make(yaml)], [batch], a_run.ex)
    assert all(one is other for one, other in zip(found, batch, strict=True))
