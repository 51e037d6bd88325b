"""Payloads parsed and written together are what they are when that is done alone."""

from __future__ import annotations

import pytest

from streamer.core.json.bulk import documents_of, parse_batch, payloads_of, serialise_batch
from streamer.core.json.dump import dump_json
from streamer.core.message import Batch, Message
from streamer.core.value import Number

PAYLOADS = [b'{"a":1}', b"1.50", b"2", b'"x"', b"[1e3]", b"18446744073709551616", b" null "]


def batch(*payloads: bytes) -> Batch:
    return [Message(payload) for payload in payloads]


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("count", [1, 7, 1_001])
def test_documents_are_those_of_the_messages(keep: bool, count: int) -> None:
    payloads = (PAYLOADS * 200)[:count]
    found = list(documents_of(batch(*payloads), keep))
    assert [(type(doc), doc) for doc in found] == [
        (type(message.doc), message.doc) for message in batch(*payloads)
    ]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_number_keeps_its_text_wherever_it_stands(payload: bytes) -> None:
    found = list(documents_of(batch(b"7", payload, b"1.0"), keep=True))
    assert isinstance(found[2], Number)
    assert found[2].text == "1.0"
    assert found[1] == Message(payload).doc


def test_messages_remember_documents_only_when_asked() -> None:
    for keep in (True, False):
        messages = batch(b"1", b"2")
        list(documents_of(messages, keep))
        assert [message.has_doc() for message in messages] == [keep, keep]


def test_documents_that_are_at_hand_are_not_parsed_again() -> None:
    known = Message.from_value({"a": 1})
    assert [doc is known.doc for doc in documents_of([known, Message(b"2")], keep=False)] == [
        True,
        False,
    ]


def test_a_payload_that_is_not_json_is_an_error() -> None:
    with pytest.raises(ValueError, match="unexpected|end of data|column"):
        list(documents_of(batch(b"1", b"{"), keep=True))


def test_parsing_ahead_leaves_what_is_not_json_for_later() -> None:
    messages = batch(*([b"1"] * 500), b"2", b"{")
    parse_batch(messages)
    assert [message.has_doc() for message in messages] == [True] * 501 + [False]
    assert [message.doc for message in messages[:501]] == [1] * 500 + [2]


def test_parsing_ahead_keeps_numbers_as_they_are_written() -> None:
    messages = batch(b"1.50", b"2")
    parse_batch(messages)
    assert [dump_json(message.doc) for message in messages] == [b"1.50", b"2"]


def test_payloads_are_those_of_the_messages() -> None:
    docs = [{"b": 15.0, "a": "x"}, [1.5e-6], "\u2028", 10**30, None]
    messages = [Message.from_value(doc) for doc in docs] + batch(b" untouched ")
    assert payloads_of(messages) == [*map(dump_json, docs), b" untouched "]


def test_writing_ahead_leaves_what_has_no_form_for_later() -> None:
    messages = [Message.from_value(doc) for doc in [1, object()]]
    serialise_batch(messages)
    with pytest.raises(ValueError, match="not JSON serializable|no JSON form"):
        _ = messages[1].raw
    assert messages[0].raw == b"1"
