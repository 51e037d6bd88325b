"""What records messages become, without a broker: times, keys, headers, tombstones, numbers."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.connectors.kafka.output.kafka_output import KafkaOutput
from streamer.connectors.kafka.output.record import record_time_of
from streamer.core.errors import MessageError
from streamer.core.execution import Execution, MicroBatch
from streamer.core.message import Batch, IndexedMessage, Message
from tests.components.outputs.scripted import Seen


def _output(fields: str, name: str = "kafka_franz") -> KafkaOutput:
    brokers = "addresses" if name == "kafka" else "seed_brokers"
    config = parse_config(f"output: {{{name}: {{{brokers}: ['localhost:1'], {fields}}}}}")
    output: KafkaOutput = build_context(config.resources).build(config.output).output
    return output


def _records(fields: str, batch: Batch, name: str = "kafka_franz", **more: Any) -> list[Any]:
    return _output(fields, name)._maker.records_of(batch, more.get("ex") or Seen().ex)


def _record(fields: str, message: Message, name: str = "kafka_franz", **more: Any) -> Any:
    [record] = _records(fields, [message], name, **more)
    return record


TOPIC, VALUE, KEY, PARTITION, TIMESTAMP, HEADERS = range(6)


def test_a_record_is_what_the_fields_say():
    message = Message(b'{"id":7}', {"t": "a"})
    fields = "topic: 'x-${! @t }', key: '${! this.id }', partitioner: manual, partition: '3'"
    found = _record(f"{fields}, timestamp_ms: '1500'", message)
    assert found == ("x-a", b'{"id":7}', b"7", 3, 1500, [])


def test_seconds_are_taken_by_the_older_field():
    assert _record("topic: a, timestamp: '12'", Message(b"a"))[TIMESTAMP] == 12_000


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, 0),
        ({"kafka_timestamp_ms": 5}, 5),
        ({"kafka_timestamp_ms": "5"}, 5),
        ({"kafka_timestamp_ms": "soon"}, 0),
        ({"kafka_timestamp_ms": -1}, 0),
        (
            {"kafka_timestamp_ms": 5, "window_max_timestamp": "1970-01-01T00:00:01.5Z"},
            1500,
        ),
        ({"kafka_timestamp_ms": 5, "window_max_timestamp": "late"}, 5),
        ({"kafka_timestamp_ms": 5, "window_end_timestamp": "1970-01-01T00:00:01.5Z"}, 1500),
    ],
)
def test_a_record_has_the_time_of_its_window_or_else_of_what_was_read(
    meta: dict[str, Any], expected: int
) -> None:
    assert record_time_of(Message(b"a", meta)) == expected


def test_an_empty_key_is_a_key_of_kafka_franz_and_none_of_kafka():
    assert _record("topic: a", Message(b"a"))[KEY] is None
    assert _record("topic: a, key: '${! @k }'", Message(b"a", {"k": ""}))[KEY] == b""
    assert _record("topic: a, key: '${! @k }'", Message(b"a", {"k": ""}), "kafka")[KEY] is None
    assert _record("topic: a", Message(b"a"), "kafka")[KEY] is None


def test_bytes_come_through_in_keys_and_headers():
    meta = {"k": b"\xff\x00", "h": b"\xfe"}
    fields = "topic: a, key: '${! @k }', metadata: {include_prefixes: [h]}"
    found = _record(fields, Message(b"\xfd", meta))
    assert found[:3] == ("a", b"\xfd", b"\xff\x00")
    assert found[HEADERS] == [("h", b"\xfe")]


def test_headers_are_metadata_by_name_and_a_list_is_several_of_one_name():
    meta = {"b": ["x", b"\xff", 1], "a": True, "c": {"d": None}, "n": None}
    everything = "topic: a, metadata: {include_patterns: ['.*']}"
    expected = [
        ("a", b"true"),
        *(("b", value) for value in (b"x", b"\xff", b"1")),
        ("c", b'{"d":null}'),
        ("n", b"null"),
    ]
    assert _record(everything, Message(b"", meta))[HEADERS] == expected
    assert _record("topic: a", Message(b"", meta))[HEADERS] == []


def test_kafka_takes_all_metadata_but_some_then_static_headers():
    fields = "topic: a, static_headers: {z: '1', y: '2'}, metadata: {exclude_prefixes: [kafka_]}"
    message = Message(b"", {"kafka_key": "k", "b": "2", "a": "1"})
    assert _record(fields, message, "kafka")[HEADERS] == [
        *(("a", b"1"), ("b", b"2"), ("y", b"2"), ("z", b"1"))
    ]


@pytest.mark.parametrize(
    ("raw", "told", "expected"),
    [
        (b"", True, None),
        (b"", "true", None),
        (b"", False, b""),
        (b"", None, b""),
        (b"a", True, b"a"),
    ],
)
def test_a_tombstone_is_an_empty_message_that_is_said_to_be_one(
    raw: bytes, told: Any, expected: bytes | None
) -> None:
    meta = {} if told is None else {"kafka_tombstone_message": told}
    assert _record("topic: a", Message(raw, meta))[VALUE] == expected


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ("topic: '${! this.a.b.uppercase() }'", "topic interpolation error: "),
        ("topic: a, key: '${! this.x.uppercase() }'", "key interpolation error: "),
        ("topic: a, timestamp_ms: '${! content() }'", "timestamp is '{}'; expected a whole number"),
        ("topic: a, timestamp_ms: '-1'", "timestamp is -1; expected a time from 1970 on"),
        ("topic: a, partitioner: manual, partition: '-1'", "partition is -1; expected 0 to"),
    ],
)
def test_what_cannot_be_told_of_a_record_is_said(fields: str, text: str) -> None:
    with pytest.raises(MessageError) as raised:
        _record(fields, Message(b"{}"))
    assert str(raised.value).startswith(text)


def test_a_batch_that_cannot_be_told_leaves_others_alone():
    maker = _output("topic: '${! this.t.uppercase() }'")._maker
    good, bad = Message(b'{"t":"a"}'), Message(b"{}")
    records, errors = maker.records_of_batches([[good], [good, bad], [good]], Seen().ex)
    assert [len(one) for one in records] == [1, 0, 1]
    assert [error is None for error in errors] == [True, False, True]


def _numbered(ex: Execution, number: int) -> dict[str, bytes]:
    meta = {"window_start_timestamp": "a", "window_end_timestamp": "b", "window_key": "k"}
    message = IndexedMessage.with_place(Message(b"", meta), (0, number))
    return dict(_record("topic: a, dedupe_headers: true", message, ex=ex)[HEADERS])


def test_a_message_is_numbered_by_its_micro_batch_and_its_place_whatever_wraps_it():
    ex = Seen().ex
    ex.micro_batch = MicroBatch("id", 12, "s3")
    found = _numbered(ex, 4)
    assert (found["batch_id"], found["batch_sequence"]) == (b"id-12-s3", b"4")
    assert len(found["window_id"]) == 32
    assert found == _numbered(ex, 4)
    wrapped = IndexedMessage.at_index(
        IndexedMessage.with_place(Message(b""), (0, 4)), 9
    ).with_error("x")
    again = dict(_record("topic: a, dedupe_headers: true", wrapped, ex=ex)[HEADERS])
    assert again == {"batch_id": b"id-12-s3", "batch_sequence": b"4"}
    late = IndexedMessage.with_place(Message(b""), (1, 4))
    found = dict(_record("topic: a, dedupe_headers: true", late, ex=ex)[HEADERS])
    assert found["batch_sequence"] == b"late-4"


def test_windows_have_ids_that_parts_run_together_do_not_share():
    def named(start: str, end: str, key: str) -> bytes:
        meta = {"window_start_timestamp": start, "window_end_timestamp": end, "window_key": key}
        headers = _record("topic: a, dedupe_headers: true", Message(b"", meta))[HEADERS]
        return dict(headers)["window_id"]

    assert len({named("a", "b", "c"), named("ab", "", "c"), named("a", "bc", "")}) == 3
