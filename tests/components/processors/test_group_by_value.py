"""`group_by_value`: groups in the order of their first messages, and messages without a value."""

from __future__ import annotations

import pytest

from streamer.components.processors import group_by_value
from streamer.core.message import Message

from .conftest import Make, Run, messages, payloads

BY_K = "group_by_value: { value: '${! json(\"k\") }' }"


def test_groups_come_in_the_order_of_their_first_messages(make: Make, a_run: Run) -> None:
    batch = messages('{"k":"b","n":1}', '{"k":"a","n":2}', '{"k":"b","n":3}')
    assert payloads(make(BY_K).process(batch, a_run.ex)) == [
        ['{"k":"b","n":1}', '{"k":"b","n":3}'],
        ['{"k":"a","n":2}'],
    ]


def test_a_batch_of_one_value_is_passed_on_itself(make: Make, a_run: Run) -> None:
    batch = messages('{"k":1}', '{"k":1}')
    assert make(BY_K).process(batch, a_run.ex)[0] is batch


def test_a_text_without_interpolation_makes_one_group(make: Make, a_run: Run) -> None:
    batch = messages("x", "y")
    assert make("group_by_value: { value: all }").process(batch, a_run.ex) == [batch]


def test_an_empty_batch_makes_no_group(make: Make, a_run: Run) -> None:
    assert make(BY_K).process([], a_run.ex) == []


def test_numbers_and_their_texts_are_one_group_and_null_is_a_text(make: Make, a_run: Run) -> None:
    batch = messages('{"k":1}', '{"k":"1"}', '{"k":null}', '{"k":"null"}')
    assert [len(group) for group in make(BY_K).process(batch, a_run.ex)] == [2, 2]


def test_values_may_come_from_metadata(make: Make, a_run: Run) -> None:
    batch = [Message(b"1", {"k": "a"}), Message(b"2", {"k": "b"}), Message(b"3", {"k": "a"})]
    found = make("group_by_value: { value: '${! meta(\"k\") }' }").process(batch, a_run.ex)
    assert payloads(found) == [["1", "3"], ["2"]]


def test_messages_without_a_value_are_marked_and_grouped_together(make: Make, a_run: Run) -> None:
    batch = messages('{"k":"a"}', "no json", '{"k":"a"}', "{", '{"k":""}')
    found = make(BY_K).process(batch, a_run.ex)
    assert payloads(found) == [['{"k":"a"}', '{"k":"a"}'], ["no json", "{", '{"k":""}']]
    text = "group value interpolation error: "
    marked = [(message.error or "").startswith(text) for message in found[1]]
    assert marked == [True, True, False]
    assert [level for level, _ in a_run.logged] == ["ERROR", "ERROR"]
    assert a_run.logged[0][1].startswith("Group value interpolation error: ")
    assert [message.error for message in batch] == [None] * 5


def test_documents_of_a_huge_batch_are_not_kept(
    make: Make, a_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor = make(BY_K)
    kept, let_go = messages('{"k":1}', '{"k":2}'), messages('{"k":1}', '{"k":2}')
    processor.process(kept, a_run.ex)
    monkeypatch.setattr(group_by_value, "_MAX_KEPT_PARSED", 1)
    assert payloads(processor.process(let_go, a_run.ex)) == [['{"k":1}'], ['{"k":2}']]
    assert [m.has_doc() for m in kept + let_go] == [True, True, False, False]
