"""Order of messages among outputs that stand beside each other and send one batch at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from streamer.bloblang import compile_mapping
from streamer.components.outputs.broker import SequentialFanOut
from streamer.components.outputs.fallback import FallbackOutput
from streamer.components.outputs.switch import Case, SwitchOutput
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.backoff import Backoff
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.output.protocols import Composition, Output, SendError, SendOrder
from streamer.sdk.output.rejection import Reason, Rejection
from streamer.sdk.output.retry import RetryingOutput
from streamer.sdk.output.wait_budget import UnsentBatches, WaitBudget
from tests.components.outputs.scripted import PLACE, Seen, batches, built, sender


class Place:
    """A place to which several outputs write; the slower ones would come last."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def output(self, pause_s: float = 0, max_in_flight: int = 1, **refused: Any) -> Composition:
        """Return an output that writes to it, and refuses letters so often, or for a text."""
        place = self

        class Writer(Output):
            def send(self, batch: Batch, ex: Execution) -> None:
                time.sleep(pause_s)
                for message in batch:
                    letter = message.raw.decode()
                    left = refused.get(letter, 0)
                    if isinstance(left, str):
                        raise SendError(left)
                    if left:
                        refused[letter] = left - 1
                        raise SendError(f"no {letter}")
                place.taken.append("".join(message.raw.decode() for message in batch))

        output = Writer()
        output.max_in_flight = max_in_flight
        return sender(output)


def make_switch(
    *outputs: Composition, keep_order: bool = True, continues: bool = False
) -> SwitchOutput:
    """Return a switch whose first case gets capitals."""
    check = compile_mapping('content().string().re_match("[A-Z]")')
    checks = [check, *(None for _ in outputs[1:])]
    cases = [
        Case(check, output, continues and check is not None)
        for check, output in zip(checks, outputs, strict=True)
    ]
    return SwitchOutput(cases, False, ComponentRef(PLACE), keep_order)


def deliver_all(output: Composition, some: Sequence[Batch], seen: Seen | None = None) -> None:
    retrying = RetryingOutput(output.deliver, Backoff(1, 1))
    assert retrying.deliver(some, (seen or Seen()).ex).errors == [None] * len(some)


@pytest.mark.parametrize("texts", [("A", "b", "C", "d"), ("AbC", "d"), ("AbCd",)])
def test_cases_that_send_one_batch_at_a_time_keep_the_order(texts: tuple[str, ...]) -> None:
    place = Place()
    deliver_all(make_switch(place.output(0.01), place.output()), batches(*texts))
    assert place.taken == ["A", "b", "C", "d"]


def test_what_follows_one_another_for_a_case_stays_together() -> None:
    place = Place()
    deliver_all(make_switch(place.output(), place.output()), batches("ABcd", "e", "fG"))
    assert place.taken == ["AB", "cd", "e", "f", "G"]


def test_nothing_that_comes_later_is_sent_before_what_a_case_has_not_taken() -> None:
    place = Place()
    switch = make_switch(place.output(C=2), place.output(f=1))
    deliver_all(switch, batches("A", "bC", "d", "ef", "G"))
    assert "".join(place.taken) == "AbCdefG"


def test_what_a_case_rejects_holds_nothing_up() -> None:
    place = Place()
    switch = make_switch(place.output(A=Rejection("bad", Reason.REFUSED)), place.output())
    sent = switch.deliver(batches("A", "b", "c"), Seen().ex, hold=True)
    assert [error is None for error in sent.errors] == [False, True, True]
    assert place.taken == ["b", "c"]


@pytest.mark.parametrize("tries_each", [False, True])
def test_what_is_handed_over_holds_what_comes_after_it(tries_each: bool) -> None:
    """`retry_until_success` too: what a case has not taken in time does not count as sent."""
    place = Place()
    handed: list[UnsentBatches] = []
    first = place.output(A=10**9)
    if tries_each:
        first = RetryingOutput(first.deliver, Backoff(1, 1), target=PLACE, output=first)
    switch = make_switch(first, place.output())
    assert switch.send_order is SendOrder.KEPT
    ex = Seen().ex
    ex.elapsed = iter(range(0, 10**12, 10**8)).__next__
    ex.wait_budget = WaitBudget(2 * 10**9, handed.append)
    sent = RetryingOutput(switch.deliver, Backoff(1, 1), target=PLACE).deliver(
        batches("A", "b", "C"), ex
    )
    assert sent.errors == [None] * 3
    assert [[one.raw for one in batch] for batch in handed[0].batches] == [[b"A"], [b"b"], [b"C"]]
    assert place.taken == []


@pytest.mark.parametrize(
    ("outputs", "options"),
    [
        ({"max_in_flight": 2}, {}),
        ({}, {"keep_order": False}),
        ({}, {"continues": True}),
    ],
    ids=["several at once", "not wanted", "to several outputs"],
)
def test_cases_that_promise_no_order_get_all_at_once(
    outputs: dict[str, int], options: dict[str, bool]
) -> None:
    place = Place()
    switch = make_switch(place.output(0.2), place.output(**outputs), **options)
    assert switch.send_order is SendOrder.NONE
    deliver_all(switch, batches("A", "b"))
    assert place.taken[-1] == "A"


def test_two_cases_of_three_keep_the_order_among_each_other() -> None:
    ordered, other = Place(), Place()
    cases = [
        Case(compile_mapping(f'content().string().re_match("[{letters}]")'), output, False)
        for letters, output in (
            ("A-L", ordered.output(0.01)),
            ("M-Z", other.output(max_in_flight=4)),
            ("a-z", ordered.output()),
        )
    ]
    deliver_all(SwitchOutput(cases, False, ComponentRef(PLACE)), batches("A", "M", "b", "C", "N"))
    assert ordered.taken == ["A", "b", "C"] and sorted(other.taken) == ["M", "N"]


def test_lines_that_cases_print_are_in_order() -> None:
    output = built(
        "switch: {cases: [{check: 'content() == \"b\"', output: {stdout: {}, "
        'processors: [{mapping: root = "B"}]}}, {output: {stdout: {}}}]}'
    )
    sent = output.deliver(batches("a", "b", "c"), Seen().ex)
    assert b"".join(one.body for one in sent.written) == b"a\nB\nc\n"
    assert output.send_order is SendOrder.LOCAL


def test_what_falls_back_goes_ahead_of_what_comes_later() -> None:
    place = Place()
    deliver_all(FallbackOutput([place.output(b=1), place.output()]), batches("a", "b", "c"))
    assert place.taken == ["a", "b", "c"]


def test_a_fallback_is_not_tried_for_what_waits_for_another() -> None:
    place = Place()
    fallback = FallbackOutput([place.output(b=1), place.output(b=1)])
    deliver_all(fallback, batches("a", "b", "c"))
    assert place.taken == ["a", "b", "c"]


def test_a_batch_goes_through_all_outputs_in_sequence_before_the_next_one() -> None:
    first, second = Place(), Place()
    second.taken = first.taken
    output = SequentialFanOut([first.output(), second.output()], None)
    deliver_all(output, batches("a", "b"))
    assert first.taken == ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("yaml", "order"),
    [
        ("drop: {}", SendOrder.LOCAL),
        ("reject: bad", SendOrder.LOCAL),
        ("socket: {network: tcp, address: 'localhost:1'}", SendOrder.KEPT),
        ("http_client: {url: 'http://localhost'}", SendOrder.NONE),
        (
            "retry: {output: {http_client: {url: 'http://localhost', max_in_flight: 1}}}",
            SendOrder.KEPT,
        ),
        (
            "drop_on: {error: true, output: {http_client: {url: 'http://localhost'}}}",
            SendOrder.NONE,
        ),
        (
            "broker: {pattern: round_robin, copies: 2, outputs: "
            "[{socket: {network: tcp, address: 'localhost:1'}}]}",
            SendOrder.NONE,
        ),
        (
            "broker: {pattern: fan_out, copies: 2, outputs: "
            "[{socket: {network: tcp, address: 'localhost:1'}}]}",
            SendOrder.KEPT,
        ),
        (
            "switch: {cases: [{check: 'true', output: {reject: x}}, "
            "{output: {reject_errored: {socket: {network: tcp, address: 'localhost:1'}}}}]}",
            SendOrder.KEPT,
        ),
    ],
)
def test_an_output_says_in_which_order_it_sends(yaml: str, order: SendOrder) -> None:
    assert built(yaml).send_order is order


def test_a_policy_beside_an_output_puts_batches_together() -> None:
    batching = "http_client: {url: 'http://localhost', max_in_flight: 1, batching: {count: 9}}"
    assert built(batching).joins_batches
    assert built(f"fallback: [{{{batching}}}, {{{batching}}}]").joins_batches
    assert not built("http_client: {url: 'http://localhost'}").joins_batches
