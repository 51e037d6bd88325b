"""`try` stops at a message's first failure; `catch` takes failed messages and clears them."""

from __future__ import annotations

import pytest

from streamer.core.errors import ConfigError
from streamer.core.message import Batch, Message

from .conftest import Make, Run, messages, payloads

TRY = """\
try:
  - mapping: root.n = this.n.number()
  - mapping: root.twice = this.n * 2
"""
CATCH = """\
catch:
  - mapping: 'root.caught = error()'
"""


def mixed() -> Batch:
    return [Message(b"1"), Message(b"2", error="bad"), Message(b"3")]


def marks(batches: list[Batch]) -> list[str | None]:
    return [message.error for batch in batches for message in batch]


def test_a_message_that_fails_within_a_try_skips_the_rest(make: Make, a_run: Run) -> None:
    found = make(TRY).process(messages('{"n":"1"}', '{"n":"x"}', '{"n":"3"}'), a_run.ex)
    assert payloads(found) == [['{"twice":2}', '{"n":"x"}', '{"twice":6}']]
    assert [mark is None for mark in marks(found)] == [True, False, True]
    assert len(a_run.logged) == 1


def test_a_message_that_failed_before_a_try_skips_it(make: Make, a_run: Run) -> None:
    found = make("try: [{mapping: root = deleted()}]").process(mixed(), a_run.ex)
    assert (payloads(found), marks(found)) == ([["2"]], ["bad"])


def test_each_message_is_a_batch_within_a_try(make: Make, a_run: Run) -> None:
    found = make("try: [{mapping: root = batch_size()}]").process(messages("7", "8"), a_run.ex)
    assert payloads(found) == [["1", "1"]]


@pytest.mark.parametrize("name", ["try", "catch"])
def test_when_all_is_filtered_no_batch_comes_out(name: str, make: Make, a_run: Run) -> None:
    batch = [Message(b"1", error="bad" if name == "catch" else None)]
    assert make(f"{name}: [{{mapping: root = deleted()}}]").process(batch, a_run.ex) == []


def test_a_catch_takes_failed_messages_only_keeps_the_order_and_clears_them(
    make: Make, a_run: Run
) -> None:
    found = make(CATCH).process(mixed(), a_run.ex)
    assert (payloads(found), marks(found)) == ([["1", '{"caught":"bad"}', "3"]], [None] * 3)


def test_an_empty_catch_clears_errors(make: Make, a_run: Run) -> None:
    found = make("catch: []").process(mixed(), a_run.ex)
    assert (payloads(found), marks(found)) == ([["1", "2", "3"]], [None] * 3)


def test_a_failure_within_a_catch_is_cleared_too(make: Make, a_run: Run) -> None:
    found = make("catch: [{mapping: root.x = this.a.uppercase()}]").process(mixed(), a_run.ex)
    assert (payloads(found), marks(found)) == ([["1", "2", "3"]], [None] * 3)
    assert len(a_run.logged) == 1


def test_a_caught_message_stays_caught_to_the_end_of_the_block(make: Make, a_run: Run) -> None:
    yaml = "catch: [{catch: []}, {mapping: root = 9}]"
    assert payloads(make(yaml).process(mixed(), a_run.ex)) == [["1", "9", "3"]]


def test_a_try_directly_within_a_catch_is_refused_as_it_could_never_run(make: Make) -> None:
    with pytest.raises(ConfigError, match="contains a 'try' block which will never execute"):
        make("catch: [{try: []}]")
