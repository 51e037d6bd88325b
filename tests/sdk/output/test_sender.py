"""Outputs as others see them: processors, batching, several at once, order, and what has failed."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from streamer.core.durations import MILLISECOND
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.backoff import Backoff
from streamer.sdk.output.protocols import BulkOutput, NotConnectedError, Output, SendError
from streamer.sdk.output.retry import GIVE_UP_TEXT, RetryingOutput
from streamer.sdk.output.sender import ConnectionState, Sender
from streamer.sdk.processing.batching import BatchPolicy
from tests.components.outputs.scripted import PLACE, Scripted, Seen, batches, sender


def test_what_is_sent_is_counted_and_timed():
    seen, output = Seen(), Scripted()
    sent = sender(output).deliver(batches("ab", "c"), seen.ex)
    assert (output.taken, sent.errors) == (["ab", "c"], [None, None])
    assert (seen.tally.sent, seen.tally.batches_sent) == (3, 2)
    assert sum(seen.tally.buckets.values()) == 2


def test_a_failure_is_logged_counted_and_told_of_its_batch_alone():
    seen = Seen()
    sent = sender(Scripted({"b": 1})).deliver(batches("a", "b", "c"), seen.ex)
    assert [error and error.text for error in sent.errors] == [None, "no b", None]
    assert seen.lines == [("ERROR", "Failed to send message to scripted: no b")]
    assert (seen.counts, seen.tally.sent) == ({"output_error": 1}, 2)


def test_where_order_is_kept_nothing_overtakes_a_batch_that_failed():
    output = Scripted({"b": 1})
    sent = sender(output).deliver(batches("a", "b", "c"), Seen().ex, hold=True)
    assert output.taken == ["a"]
    assert [error is not None and error.not_tried for error in sent.errors] == [False, False, True]


def test_an_output_that_breaks_down_has_failed():
    class Broken(Output):
        def send(self, batch: Batch, ex: Execution) -> None:
            raise ZeroDivisionError

    [error] = sender(Broken()).deliver(batches("a"), Seen().ex).errors
    assert error is not None and error.text == "ZeroDivisionError"


def test_several_batches_are_on_their_way_at_once():
    class Meeting(Output):
        max_in_flight = 3

        def __init__(self) -> None:
            self.barrier = threading.Barrier(3)

        def send(self, batch: Batch, ex: Execution) -> None:
            # Nobody passes before all three are there.
            self.barrier.wait(60)

    seen = Seen()
    sent = sender(Meeting()).deliver(batches("a", "b", "c"), seen.ex)
    assert sent.errors == [None] * 3
    assert (seen.tally.sent, seen.tally.batches_sent) == (3, 3)


def test_batching_joins_batches_and_failures_find_their_way_back():
    output = Scripted({"c": 1}, whole=False)
    output.policy = BatchPolicy(count=3)
    sent = sender(output).deliver(batches("ab", "cd", "ef"), Seen().ex)
    assert output.tries == ["abcd", "ef"]
    assert sent.errors[0] is None and sent.errors[2] is None
    assert sent.errors[1] is not None and sent.errors[1].errors == {0: "no c"}


def test_a_batch_that_fails_whole_has_failed_for_all_that_is_in_it():
    output = Scripted({"c": 1})
    output.policy = BatchPolicy(count=3)
    sent = sender(output).deliver(batches("ab", "cd", "ef"), Seen().ex)
    assert [error and error.by_index(2) for error in sent.errors] == [
        {0: "no abcd", 1: "no abcd"},
        {0: "no abcd", 1: "no abcd"},
        None,
    ]


def test_after_processors_a_failure_is_that_of_the_whole_batch():
    class Second:
        def process(self, batch: Batch, ex: Execution) -> list[Batch]:
            return [batch[1:]]

    sent = sender(Scripted({"b": 1}, whole=False), [Second()]).deliver(batches("ab"), Seen().ex)
    assert sent.errors[0] is not None and sent.errors[0].errors == {}


def test_a_connection_is_sought_until_it_is_there():
    class Away(Scripted):
        failures = 2

        def connect(self, ex: Execution) -> None:
            if self.failures:
                self.failures -= 1
                raise SendError("nobody there")

        def send(self, batch: Batch, ex: Execution) -> None:
            super().send(batch, ex)
            if batch[0].raw == b"b" and self.tries == ["a", "b"]:
                self.failures = 1
                raise NotConnectedError("gone")

    seen, output = Seen(), Away()
    assert sender(output).deliver(batches("a", "b"), seen.ex).errors == [None, None]
    assert output.tries == ["a", "b", "b"]
    assert seen.counts == {
        "output_connection_failed": 3,
        "output_connection_up": 2,
        "output_connection_lost": 1,
    }
    assert seen.lines[0] == ("ERROR", "Failed to connect to scripted: nobody there")
    assert len(seen.pauses) == 3


def test_an_output_that_connects_without_work_pauses_before_it_sends_again():
    class Away(Scripted):
        losses = 4

        def send(self, batch: Batch, ex: Execution) -> None:
            if self.losses:
                self.losses -= 1
                raise NotConnectedError("no server answers")
            super().send(batch, ex)

    seen, output = Seen(), Away()
    assert sender(output).deliver(batches("a"), seen.ex).errors == [None]
    assert seen.counts["output_connection_lost"] == 4
    # The first one is repeated at once: a connection of an earlier task may have ended long ago.
    assert len(seen.pauses) == 3 and min(seen.pauses) >= 250 * MILLISECOND


def test_a_connection_that_lasts_over_tasks_counts_once_and_is_lost_when_it_goes():
    class Lasting(Scripted):
        away = 0

        def connect(self, ex: Execution) -> None:
            if self.away:
                self.away -= 1
                raise SendError("nobody there")

    seen, output, link = Seen(), Lasting(), ConnectionState()
    for task in range(5):
        output.away = 2 if task == 3 else 0
        Sender(output, PLACE, (), link).deliver(batches("a"), seen.ex)
    assert seen.counts == {
        "output_connection_up": 2,
        "output_connection_lost": 1,
        "output_connection_failed": 1,
    }


@pytest.mark.parametrize("whole", [True, False])
def test_what_fails_is_sent_again_in_order_and_nothing_else_is(whole):
    seen = Seen()
    output = Scripted({"b": 3}, whole=whole)
    retrying = RetryingOutput(sender(output).deliver, Backoff(10, 1000))
    sent = retrying.deliver(batches("a", "b", "c", "d"), seen.ex)
    assert sent.errors == [None] * 4
    assert "".join(output.taken) == "abcd"
    assert output.tries == ["a", "b", "b", "b", "b", "c", "d"]
    assert len(seen.pauses) == 3


def test_only_the_messages_that_failed_are_sent_again():
    output = Scripted({"b": 1, "d": 2}, whole=False)
    RetryingOutput(sender(output).deliver, Backoff(10, 1000)).deliver(batches("abcd"), Seen().ex)
    assert (output.tries, output.taken) == (["abcd", "bd", "d"], ["ac", "b", "d"])


def test_what_is_given_up_is_told_and_the_rest_is_sent():
    seen = Seen()
    output = Scripted({"b": 99})
    logged: list[tuple[str, str]] = []
    retrying = RetryingOutput(
        sender(output).deliver,
        Backoff(10, 1000, retries=2),
        lambda ex, level, text: logged.append((level, text)),
    )
    sent = retrying.deliver(batches("a", "b", "c"), seen.ex)
    assert [error and error.text for error in sent.errors] == [None, GIVE_UP_TEXT, None]
    assert output.tries == ["a", "b", "b", "b", "c"]
    warned = ("WARN", "Failed to send message: no b")
    assert logged == [warned, warned, ("ERROR", "Failed to send message: no b")]


def test_pauses_grow_to_a_longest_one_and_end_with_the_time():
    clock = iter(range(0, 10_000, 100))
    pauses = list(Backoff(100, 400, elapsed=3_000, growth=2.0).pauses(lambda: next(clock)))
    assert 50 <= pauses[0] <= 150 and 100 <= pauses[1] <= 300
    assert max(pauses) <= 600 and 20 <= len(pauses) <= 30
    assert len(list(Backoff(1, 1, retries=4).pauses(lambda: 0))) == 4


class _Bulk(BulkOutput):
    """Notes what it is given together; has one failure."""

    def __init__(self, fails: str = "", max_in_flight: int = 64) -> None:
        self.max_in_flight = max_in_flight
        self.calls: list[list[str]] = []
        self._fails = fails

    def send_all(self, batches: Sequence[Batch], ex: Execution) -> list[SendError | None]:
        texts = ["".join(message.raw.decode() for message in batch) for batch in batches]
        self.calls.append(texts)
        return [SendError(f"no {text}") if text == self._fails else None for text in texts]


def test_an_output_that_takes_many_batches_is_given_all_at_once_and_its_failures_are_told_apart():
    output, seen = _Bulk("b"), Seen()
    sent = sender(output).deliver(batches("a", "b", "c"), seen.ex)
    assert output.calls == [["a", "b", "c"]]
    assert [error and error.text for error in sent.errors] == [None, "no b", None]
    assert (seen.tally.sent, seen.tally.batches_sent) == (2, 2)
    assert seen.counts == {"output_error": 1}


def test_one_batch_in_flight_is_one_at_a_time_however_many_an_output_takes():
    output = _Bulk("b", max_in_flight=1)
    sent = sender(output).deliver(batches("a", "b", "c"), Seen().ex, hold=True)
    assert output.calls == [["a"], ["b"]]
    assert [error is not None and error.not_tried for error in sent.errors] == [False, False, True]
