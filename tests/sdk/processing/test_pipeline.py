"""The way of batches through processors: order, failures, and that nothing is lost or held."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.processing import run, run_each, run_processor

Step = Callable[[Batch], list[Batch]]


class Fake:
    """A processor made of a function; it writes down which batches it saw."""

    def __init__(self, name: str, does: Step, seen: list[str] | None = None) -> None:
        self.name = name
        self.does = does
        self.seen = [] if seen is None else seen

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        self.seen.append(f"{self.name}:{texts([batch])[0]}")
        return self.does(batch)


class FakeEach(Fake):
    """The same, which also takes many batches of one."""

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        self.seen.append(f"{self.name}*{len(messages)}")
        return [m for message in messages for batch in self.does([message]) for m in batch]


def batch(text: str) -> Batch:
    return [Message(char.encode()) for char in text]


def texts(batches: list[Batch]) -> list[str]:
    return ["".join(m.raw.decode() for m in each) for each in batches]


def same(batch: Batch) -> list[Batch]:
    return [batch]


def singles(batch: Batch) -> list[Batch]:
    return [[message] for message in batch]


def nothing(batch: Batch) -> list[Batch]:
    return []


def broken(batch: Batch) -> list[Batch]:
    raise KeyError("oh")


def drop_b(batch: Batch) -> list[Batch]:
    return [[m for m in batch if m.raw != b"b"]]


@pytest.fixture
def ex() -> Execution:
    return Execution(now=lambda: 0)


def test_each_processor_works_on_all_batches_before_the_next_begins(ex: Execution) -> None:
    seen: list[str] = []
    processors = [Fake("1", singles, seen), Fake("2", same, seen), Fake("3", same, seen)]
    assert texts(list(run(processors, [batch("ab"), batch("c")], ex))) == ["a", "b", "c"]
    assert seen == ["1:ab", "2:a", "2:b", "3:a", "3:b", "1:c", "2:c", "3:c"]


def test_without_processors_batches_come_out_as_they_are(ex: Execution) -> None:
    one = batch("ab")
    assert list(run([], [one], ex))[0] is one


def test_empty_batches_vanish(ex: Execution) -> None:
    last = Fake("last", same)
    assert texts(list(run([Fake("1", drop_b), last], [[], batch("b"), batch("ab")], ex))) == ["a"]
    assert last.seen == ["last:a"]


def test_a_filtered_batch_reaches_no_later_processor(ex: Execution) -> None:
    last = Fake("last", same)
    assert list(run([Fake("1", nothing), last], [batch("ab")], ex)) == []
    assert last.seen == []


def test_an_unexpected_error_marks_the_batch_and_loses_nothing() -> None:
    logged: list[Any] = []
    counted: list[Any] = []
    ex = Execution(
        now=lambda: 0,
        log=lambda *line: logged.append(line),
        count=lambda name, by=1, **labels: counted.append((name, by)),
    )
    found = list(run([Fake("1", broken), Fake("2", same)], [batch("ab")], ex))
    assert texts(found) == ["ab"]
    assert [m.error for m in found[0]] == ["KeyError: 'oh'"] * 2
    assert logged == [("ERROR", "Processor failed: KeyError: 'oh'", {})]
    assert counted == [("processor_error", 2)]


def test_running_out_of_memory_is_left_to_spark_to_try_again(ex: Execution) -> None:
    def exhausted(batch: Batch) -> list[Batch]:
        raise MemoryError

    with pytest.raises(MemoryError):
        list(run([Fake("1", exhausted)], [batch("a")], ex))
    with pytest.raises(MemoryError):
        run_each([FakeEach("1", exhausted)], batch("a"), ex)


def test_failed_messages_go_on_through_the_processors(ex: Execution) -> None:
    processor = Fake("1", same)
    list(run([processor], [[Message(b"a", error="bad")]], ex))
    assert processor.seen == ["1:a"]


def test_a_strict_step_is_skipped_by_failed_messages(ex: Execution) -> None:
    processor = Fake("1", nothing)
    batches = [[Message(b"a", error="bad")], batch("b")]
    assert texts(run_processor(processor, batches, ex, strict=True)) == ["a"]
    assert processor.seen == ["1:b"]


def test_what_has_come_out_is_let_go(ex: Execution) -> None:
    class Weak(list[Message]):
        pass

    made: list[weakref.ref[Weak]] = []

    def spread(batch: Batch) -> list[Batch]:
        parts = [Weak([message]) for message in batch]
        made.extend(weakref.ref(part) for part in parts)
        return list(parts)

    out = run([Fake("1", spread)], [batch("abc")], ex)
    next(out)
    next(out)
    assert [ref() is None for ref in made] == [True, True, False]


def test_input_is_taken_batch_by_batch(ex: Execution) -> None:
    taken: list[str] = []

    def source() -> Iterator[Batch]:
        for text in ("a", "b"):
            taken.append(text)
            yield batch(text)

    out = run([Fake("1", same)], source(), ex)
    next(out)
    assert taken == ["a"]


def test_a_step_returns_all_that_a_processor_makes(ex: Execution) -> None:
    assert texts(run_processor(Fake("1", singles), [batch("ab"), batch("c")], ex)) == [
        "a",
        "b",
        "c",
    ]


def test_run_each_gives_what_run_gives_for_batches_of_one(ex: Execution) -> None:
    for kind in (Fake, FakeEach):
        processors = [FakeEach("1", drop_b), kind("2", same), Fake("3", same)]
        assert texts(run_each(processors, batch("abc"), ex)) == ["a", "c"]


def test_run_each_takes_all_messages_at_once_while_it_can(ex: Execution) -> None:
    seen: list[str] = []
    processors = [FakeEach("1", same, seen), Fake("2", same, seen), FakeEach("3", same, seen)]
    run_each(processors, batch("ab"), ex)
    assert seen == ["1*2", "2:a", "2:b", "3*2"]


def test_run_each_lets_a_message_pass_what_cannot_take_many_before_the_next_one(
    ex: Execution,
) -> None:
    seen: list[str] = []
    processors = [Fake("1", same, seen), FakeEach("2", same, seen), Fake("3", same, seen)]
    run_each(processors, batch("ab"), ex)
    assert seen == ["1:a", "2:a", "3:a", "1:b", "2:b", "3:b"]


def test_run_each_keeps_batches_that_have_grown(ex: Execution) -> None:
    def doubled(batch: Batch) -> list[Batch]:
        return [batch * 2]

    processors = [Fake("1", doubled), FakeEach("2", same)]
    assert texts(run_each(processors, batch("ab"), ex)) == ["aa", "bb"]


def test_run_each_marks_only_the_message_that_breaks_a_processor(ex: Execution) -> None:
    def breaks_on_b(batch: Batch) -> list[Batch]:
        return broken(batch) if batch[0].raw == b"b" else [batch]

    found = run_each([FakeEach("1", breaks_on_b)], batch("abc"), ex)
    assert [m.error for each in found for m in each] == [None, "KeyError: 'oh'", None]
