"""Samples of the messages that pass a component."""

from __future__ import annotations

from collections.abc import Callable

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.engine.report.message_sampler import MAX_PAYLOAD_CHARS, Sampler

KEY = ("processor", "check", "root.pipeline.processors.0")
EX = Execution(lambda: 0)


def texts(sample: object, side: str) -> list[list[str]]:
    assert isinstance(sample, dict)
    return [[one["content"] for one in batch] for batch in sample[side]]


def upper(batch: Batch, ex: Execution) -> list[Batch]:
    return [[message.with_bytes(message.raw.upper()) for message in batch]]


def failing_on(text: bytes) -> Callable[[list[Message], Execution], list[Message]]:
    def each(messages: list[Message], ex: Execution) -> list[Message]:
        return [one.with_error("no good") if one.raw == text else one for one in messages]

    return each


def test_a_sample_has_what_went_in_and_what_came_out() -> None:
    sampler = Sampler(2)
    process = sampler.wrap(upper, KEY)
    for text in (b"a", b"b", b"c"):
        [[made]] = process([Message(text, {"k": 1})], EX)
        assert made.raw == text.upper()
    first, second = sampler.samples[KEY]
    assert (texts(first, "before"), texts(first, "after")) == ([["a"]], [["A"]])
    assert first["before"][0][0]["metadata"] == {"k": "1"}
    assert texts(second, "before") == [["b"]]


def test_a_processor_that_changes_its_messages_in_place_does_not_change_the_sample() -> None:
    def process(batch: Batch, ex: Execution) -> list[Batch]:
        batch[0].meta = {"changed": True}
        batch[0].error = "broken"
        return [batch]

    sampler = Sampler(1)
    sampler.wrap(process, KEY)([Message(b"a")], EX)
    [sample] = sampler.samples[KEY]
    assert sample["before"] == [[{"content": "a"}]]
    assert sample["after"][0][0]["error"] == "broken"
    assert sample["failed"]


def test_what_fails_is_found_among_the_many() -> None:
    sampler = Sampler(2)
    each = sampler.wrap_each(failing_on(b"77"), KEY)
    given = [Message(b"%d" % number) for number in range(100)]
    made = each(given, EX)
    assert [one.raw for one in made] == [one.raw for one in given]
    assert [sample["failed"] for sample in sampler.samples[KEY]] == [False, False, True]
    assert texts(sampler.samples[KEY][2], "before") == [["77"]]
    assert sampler.samples[KEY][2]["after"][0][0]["error"] == "no good"


def test_a_message_that_has_failed_before_did_not_fail_here() -> None:
    sampler = Sampler(1)
    sampler.wrap(upper, KEY)([Message(b"a", error="long ago")], EX)
    [sample] = sampler.samples[KEY]
    assert not sample["failed"]


def test_a_filter_leaves_nothing() -> None:
    sampler = Sampler(1)
    each = sampler.wrap_each(lambda messages, ex: [], KEY)
    assert each([Message(b"a"), Message(b"b")], EX) == []
    [sample] = sampler.samples[KEY]
    assert (sample["after"], sample["after_messages"]) == ([], 0)


def test_a_processor_that_breaks_down_does_so_still() -> None:
    def process(batch: Batch, ex: Execution) -> list[Batch]:
        raise ValueError("broken")

    sampler = Sampler(1)
    try:
        sampler.wrap(process, KEY)([Message(b"a")], EX)
    except ValueError as e:
        assert str(e) == "broken"
    else:
        raise AssertionError("it was hidden")


def test_long_messages_are_cut_with_a_sign_that_they_are() -> None:
    sampler = Sampler(1)
    sampler.sample([Message(b"x" * 100_000)], KEY, "after")
    [[one]] = sampler.samples[KEY][0]["after"]
    assert one["content"] == "x" * MAX_PAYLOAD_CHARS + "…"


def test_of_a_large_batch_those_that_failed_are_shown() -> None:
    def process(batch: Batch, ex: Execution) -> list[Batch]:
        return [[one.with_error("no good") if one.raw == b"77" else one for one in batch]]

    sampler = Sampler(1)
    sampler.wrap(process, KEY)([Message(b"%d" % number) for number in range(100)], EX)
    [sample] = sampler.samples[KEY]
    assert (texts(sample, "before"), texts(sample, "after")) == ([["77"]], [["77"]])
    assert (sample["before_messages"], sample["after_messages"]) == (100, 100)
    assert sample["after"][0][0]["error"] == "no good"


def test_of_a_large_batch_a_few_messages_are_shown_and_all_are_counted() -> None:
    sampler = Sampler(1)
    sampler.wrap(upper, KEY)([Message(b"a")] * 1_000, EX)
    [sample] = sampler.samples[KEY]
    assert len(sample["before"][0]) == 5
    assert (sample["before_messages"], sample["after_messages"]) == (1_000, 1_000)
