"""What a task sends in one bracket: begun when there is something, ended with the task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.core.execution import Execution, MicroBatch
from streamer.core.message import Batch, IndexedMessage, Message
from streamer.engine.stage.output_stage import OutputStage
from streamer.engine.stage.task_transaction import TaskTransaction
from streamer.plan import make_plan
from streamer.sdk.output.protocols import Output, SendAbortedError, SendError
from streamer.sdk.output.sender import Sender
from streamer.sdk.output.wait_budget import WaitBudget
from tests.components.outputs.scripted import batches


class Told(Output):
    """An output with transactions that notes what it is told."""

    transactional = True

    def __init__(self, begins: bool = True) -> None:
        self.begins = begins
        self.told: list[str] = []
        self.places: list[Any] = []
        self.fails = False

    def begin(self, ex: Execution) -> bool:
        self.told.append("begin")
        return self.begins

    def commit(self, ex: Execution) -> None:
        self.told.append("commit")

    def abort(self) -> None:
        self.told.append("abort")

    def send(self, batch: Batch, ex: Execution) -> None:
        if self.fails:
            raise SendAbortedError("no")
        self.told.append("".join(message.raw.decode() for message in batch))
        self.places += [message.place for message in batch if isinstance(message, IndexedMessage)]


def _ex(*, strict: bool = False) -> Execution:
    return Execution(lambda: 0, strict=strict)


def _stage(output: Told, dedupe: bool = False) -> OutputStage:
    fields = f"seed_brokers: ['localhost:1'], topic: a, dedupe_headers: {str(dedupe).lower()}"
    plan = make_plan(parse_config(f"output: {{kafka_franz: {{{fields}}}}}"))
    stage = OutputStage(plan, 0, plan.output)
    stage._sender = Sender(output, plan.output)
    stage._retrying = type(stage._retrying)(stage._sender.deliver, stage._retrying._backoff)
    stage._transaction = TaskTransaction(output)
    return stage


def test_a_task_that_sends_nothing_begins_nothing():
    output = Told()
    stage = _stage(output)
    assert list(stage.payloads([], 0, _ex())) == []
    stage.finish()
    assert output.told == []


def test_all_that_a_task_sends_is_in_one_bracket():
    output, ex = Told(), _ex()
    stage = _stage(output)
    for texts in (("a", "b"), ("c",)):
        assert list(stage.payloads(batches(*texts), 0, ex)) == []
    assert output.told == ["begin", "a", "b", "c"]
    stage.finish()
    assert output.told[-1] == "commit"
    list(stage.payloads(batches("d"), 0, ex))
    stage.finish()
    assert output.told[-3:] == ["begin", "d", "commit"]


def test_what_was_sent_before_is_left_out_and_counts_as_sent():
    output, ex = Told(begins=False), _ex()
    stage = _stage(output)
    list(stage.payloads(batches("ab", "c"), 0, ex))
    stage.finish()
    assert output.told == ["begin"]
    [tally] = ex.component_stats.values()
    assert (tally.sent, tally.batches_sent) == (3, 2)


def test_a_task_that_fails_takes_back_what_it_has_sent():
    output = Told()
    stage = _stage(output)

    def broken() -> Iterator[Batch]:
        yield from batches("a")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(stage.payloads(broken(), 0, _ex()))
    assert output.told == []  # nothing was at hand to be sent yet
    list(stage.payloads(batches("a"), 0, _ex()))
    with pytest.raises(ZeroDivisionError):
        list(stage.payloads(broken(), 0, _ex()))
    assert output.told == ["begin", "a", "abort"]


def test_what_the_output_takes_back_is_not_tried_again():
    output = Told()
    output.fails = True
    with pytest.raises(SendAbortedError, match="no"):
        list(_stage(output).payloads(batches("a"), 0, _ex()))
    assert output.told == ["begin", "abort"]


def test_a_strict_stream_commits_all_but_the_message_that_has_failed():
    output, ex = Told(), _ex(strict=True)
    stage = _stage(output)
    list(stage.payloads([[Message(b"a")], [Message(b"b", error="x")]], 0, ex))
    stage.finish()
    assert output.told == ["begin", "a", "commit"]


def test_messages_know_their_places_in_the_task_where_an_output_wants_them():
    output = Told()
    stage = _stage(output, dedupe=True)
    list(stage.payloads(batches("ab", "c"), 0, _ex()))
    list(stage.payloads(batches("d"), 0, _ex()))
    assert output.places == [(0, 0), (0, 1), (0, 2), (0, 3)]
    stage.finish()
    list(stage.payloads(batches("e"), 0, _ex()))
    assert output.places[4:] == [(0, 0)]
    plain = Told()
    list(_stage(plain).payloads(batches("a"), 0, _ex()))
    assert plain.places == []


def test_what_waits_for_a_transaction_to_begin_is_handed_over_whole_and_goes_on_as_one():
    class Away(Told):
        is_away = True

        def begin(self, ex: Execution) -> bool:
            if self.is_away:
                raise SendError("no broker answers", not_tried=True)
            return super().begin(ex)

    output, ex = Away(), _ex()
    unsent: list[Any] = []
    ex.wait_budget = WaitBudget(1, lambda some: unsent.append((ex.wait_budget.place, some)))
    ex.micro_batch = MicroBatch("s", 7, "3")
    stage = _stage(output)
    for texts in (("a", "b"), ("c",)):
        assert list(stage.payloads(batches(*texts), 5, ex)) == []
        # A broker that is back in between must not get the rest of it alone.
        output.is_away = False
    stage.finish()
    assert output.told == []
    assert {place for place, _ in unsent} == {(0, 5, "3")}
    assert [m.raw for _, some in unsent for b in some.batches for m in b] == [b"a", b"b", b"c"]
    ex = _ex()
    for _, some in unsent:
        assert list(stage.resend(some.batches, 5, ex)) == []
    stage.finish()
    assert output.told == ["begin", "a", "b", "c", "commit"]


def test_a_message_that_is_rejected_is_left_out_of_its_transaction():
    output, ex = Told(), _ex(strict=True)
    stage = _stage(output)
    failed = [Message(b"x").with_error("no")]
    list(
        stage.payloads(
            [*batches("a"), *[[Message(b"%d" % n)] for n in range(9_999)], failed], 0, ex
        )
    )
    stage.finish()
    assert (output.told[0], output.told[-1]) == ("begin", "commit")
    assert "x" not in output.told
    assert len(ex.rejected) == 1
