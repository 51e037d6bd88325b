"""`kafka`, `kafka_franz` and `redpanda` as outputs, on a real broker."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from streamer.core.errors import StreamerError
from streamer.core.message import Message
from streamer.sdk.output.rejection import Reason
from tests.components.outputs.scripted import Seen, batches, built
from tests.servers import free_port
from tests.servers.kafka.broker import Broker
from tests.servers.kafka.client import Kafka, Record

pytestmark = pytest.mark.slow

NAMES = ("kafka", "kafka_franz", "redpanda")
_NUMBERS = itertools.count()


def _topic() -> str:
    return f"outputs-{next(_NUMBERS)}"


def _output(name: str, at: Kafka | str, topic: str, fields: str = "") -> Any:
    brokers = "addresses" if name == "kafka" else "seed_brokers"
    address = at if isinstance(at, str) else at.bootstrap
    return built(f"{name}: {{{brokers}: ['{address}'], topic: '{topic}', {fields}}}")


def _texts(records: list[Record]) -> list[bytes | None]:
    return [record.value for record in records]


@pytest.mark.parametrize("name", NAMES)
def test_batches_are_there_when_they_count_as_sent(name: str, kafka: Kafka) -> None:
    topic, seen = kafka.create(_topic()), Seen()
    sent = _output(name, kafka, topic).deliver(batches("ab", "c", "d"), seen.ex)
    assert sent.errors == [None] * 3
    assert b"".join(text or b"" for text in _texts(kafka.consume(topic))) == b"abcd"
    assert (seen.tally.sent, seen.tally.batches_sent) == (4, 3)


@pytest.mark.parametrize("name", NAMES)
def test_a_record_that_cannot_be_is_rejected_by_itself(name: str, kafka: Kafka) -> None:
    topic = kafka.create(_topic())
    large, wrong = Message(b"x" * 3_000_000, {"t": topic}), Message(b"w", {"t": "a topic/ with"})
    good = [Message(text, {"t": topic}) for text in (b"a", b"b", b"c")]
    batch = [good[0], large, good[1], wrong, good[2]]
    [error] = _output(name, kafka, "${! @t }").deliver([batch], Seen().ex).errors
    assert error is not None
    reasons = {index: getattr(text, "reason", text) for index, text in error.errors.items()}
    assert reasons == {1: Reason.TOO_LARGE, 3: Reason.INVALID}
    assert b"".join(text or b"" for text in _texts(kafka.consume(topic))) == b"abc"


def test_all_that_a_record_has_comes_back(kafka: Kafka) -> None:
    topic = kafka.create(_topic(), 3)
    fields = (
        "key: '${! @k }', partitioner: manual, partition: '${! @p }', "
        "metadata: {include_patterns: ['^h']}"
    )
    large = bytes(range(256)) * 4_000
    messages = [
        Message(large, {"k": b"\xff\x00", "p": 2, "h": ["1", b"\xfe", "1"], "ha": b"\x00"}),
        Message(b"", {"k": "", "p": 1, "kafka_timestamp_ms": 1234567}),
        Message(b"", {"k": "t", "p": 0, "kafka_tombstone_message": True, "h\u00e9": "\u00fc"}),
    ]
    output = _output("kafka_franz", kafka, topic, fields)
    assert output.deliver([messages], Seen().ex).errors == [None]
    tombstone, empty, found = kafka.consume(topic)
    headers = (("h", b"1"), ("h", b"\xfe"), ("h", b"1"), ("ha", b"\x00"))
    assert (found.value == large, found.key, found.headers) == (True, b"\xff\x00", headers)
    assert (empty.value, empty.key, empty.timestamp) == (b"", b"", 1234567)
    assert (tombstone.value, tombstone.key) == (None, b"t")
    assert tombstone.headers == (("h\u00e9", "\u00fc".encode()),)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("field", "time"),
    [("", 5_000), ("timestamp: '${! this.t }'", 7_000), ("timestamp_ms: '${! this.t }'", 7)],
    ids=["of its input", "timestamp", "timestamp_ms"],
)
def test_a_record_has_the_time_of_its_input_or_what_a_field_says(
    name: str, field: str, time: int, kafka: Kafka
) -> None:
    topic = kafka.create(_topic())
    output = _output(name, kafka, topic, field)
    message = Message(b'{"t":7}', {"kafka_timestamp_ms": 5_000})
    assert output.deliver([[message]], Seen().ex).errors == [None]
    assert [one.timestamp for one in kafka.consume(topic)] == [time]


def test_kafka_has_no_key_where_it_is_empty_and_all_metadata_as_headers(kafka: Kafka) -> None:
    topic = kafka.create(_topic())
    output = _output("kafka", kafka, topic, "key: '${! @k }', static_headers: {s: '1'}")
    assert output.deliver([[Message(b"a", {"k": "", "b": 1})]], Seen().ex).errors == [None]
    [found] = kafka.consume(topic)
    assert (found.key, found.headers) == (None, (("b", b"1"), ("k", b""), ("s", b"1")))


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_are_compressed_as_they_are_asked_to(compression: str, kafka: Kafka) -> None:
    topic = kafka.create(_topic())
    output = _output("kafka_franz", kafka, topic, f"compression: {compression}")
    assert output.deliver([[Message(b"a" * 50_000)]], Seen().ex).errors == [None]
    assert _texts(kafka.consume(topic)) == [b"a" * 50_000]


def test_only_the_record_that_fails_is_named(kafka: Kafka) -> None:
    topic = kafka.create(_topic())
    output = _output("kafka_franz", kafka, topic, "max_message_bytes: 2kB")
    sent = output.deliver([[Message(b"a")], [Message(b"b"), Message(b"c" * 3000)]], Seen().ex)
    assert sent.errors[0] is None
    assert sent.errors[1] is not None
    assert sent.errors[1].errors == {
        1: f"the topic '{topic}' does not take a record: Message size too large; raise the largest "
        "size in the output (max_message_bytes, max_msg_bytes of kafka) and the topic's "
        "max.message.bytes"
    }
    assert sorted(_texts(kafka.consume(topic)), key=str) == [b"a", b"b"]


def test_a_topic_that_cannot_be_fails_its_record_alone(kafka: Kafka) -> None:
    topic = kafka.create(_topic())
    output = _output("kafka_franz", kafka, "${! content() }")
    batch = [Message(topic.encode()), Message(b"\xff"), Message(b"no topic!")]
    [error] = output.deliver([batch], Seen().ex).errors
    assert error is not None and list(error.errors) == [1, 2]
    assert error.errors[2] == (
        "the topic 'no topic!' does not take a record: Invalid topic; expected a name of letters, "
        "digits, dots, _ and -"
    )
    assert _texts(kafka.consume(topic)) == [topic.encode()]


def test_a_partition_that_is_not_there_is_named(kafka: Kafka) -> None:
    topic = kafka.create(_topic(), 2)
    output = _output("kafka_franz", kafka, topic, "partitioner: manual, partition: '7'")
    [error] = output.deliver(batches("a"), Seen().ex).errors
    assert error is not None and error.errors == {
        0: f"partition 7 of '{topic}' does not take a record: Unknown partition; correct the field "
        "partition, or give the topic more partitions"
    }


def test_a_header_whose_name_is_no_utf8_comes_as_near_as_can_be(kafka: Kafka) -> None:
    topic = kafka.create(_topic())
    output = _output("kafka", kafka, topic)
    assert output.deliver([[Message(b"a", {"n\udcff": "1"})]], Seen().ex).errors == [None]
    [found] = kafka.consume(topic)
    assert found.headers == (("n\ufffd", b"1"),)


def test_kafka_tries_again_by_itself_and_as_a_batch_when_asked_to(kafka: Kafka) -> None:
    topic, seen = kafka.create(_topic()), Seen()
    fields = "max_msg_bytes: 1000, retry_as_batch: true, max_retries: 2"
    output = _output("kafka", kafka, topic, fields)
    [error] = output.deliver([[Message(b"a"), Message(b"b" * 3000)]], seen.ex).errors
    assert error is not None and error.by_index(2).keys() == {0, 1}
    assert len(seen.pauses) == 2
    assert _texts(kafka.consume(topic)) == [b"a"] * 3


@pytest.mark.parametrize(
    ("name", "fields"),
    [("kafka", ""), ("kafka_franz", ""), ("redpanda", "idempotent_write: false")],
)
def test_a_topic_is_created_by_the_broker_if_it_may(name: str, fields: str, kafka: Kafka) -> None:
    topic = _topic()
    assert _output(name, kafka, topic, fields).deliver(batches("a"), Seen().ex).errors == [None]
    assert _texts(kafka.consume(topic)) == [b"a"]


def test_a_topic_that_is_not_to_be_created_is_missing(kafka: Kafka) -> None:
    topic = _topic()
    output = _output("kafka_franz", kafka, topic, "allow_auto_topic_creation: false")
    with pytest.raises(StreamerError, match=f"there is no topic '{topic}', and it is not to be"):
        output.probe()
    [error] = output.deliver(batches("a"), Seen().ex).errors
    assert error is not None and error.errors == {
        0: f"the topic '{topic}' does not take a record: Unknown topic or partition; create it; "
        "brokers do so by themselves if their auto.create.topics.enable lets them"
    }
    assert topic not in kafka.topics()


def test_a_topic_is_created_as_the_config_says(kafka: Kafka) -> None:
    topic = _topic()
    new = "custom_topic_creation: {enabled: true, partitions: 5, replication_factor: 1}"
    output = _output("kafka", kafka, topic, new)
    assert output.deliver(batches("a", "b"), Seen().ex).errors == [None] * 2
    assert len(kafka.end_offsets(topic)) == 5
    assert output.probe() == f"the topic {topic} has 5 partitions"
    again = _output("kafka", kafka, topic, new)
    assert again.deliver(batches("a"), Seen().ex).errors == [None]


@pytest.mark.parametrize("partitioner", ["round_robin", "least_backup"])
def test_partitions_get_alike(partitioner: str, kafka: Kafka) -> None:
    topic = kafka.create(_topic(), 4)
    output = _output("redpanda", kafka, topic, f"partitioner: {partitioner}, key: same")
    assert output.deliver(batches(*["a"] * 4_000), Seen().ex).errors == [None] * 4_000
    assert kafka.end_offsets(topic) == dict.fromkeys(range(4), 1_000)


def test_a_queue_that_is_full_is_waited_for(kafka: Kafka) -> None:
    topic = kafka.create(_topic())
    output = _output("kafka_franz", kafka, topic, "max_buffered_records: 10")
    assert output.deliver(batches(*["a"] * 1_000), Seen().ex).errors == [None] * 1_000
    assert kafka.end_offsets(topic) == {0: 1_000}


def test_what_is_rejected_holds_nothing_up_where_batches_keep_their_order(kafka: Kafka) -> None:
    topic = kafka.create(_topic())
    output = _output("kafka_franz", kafka, topic, "max_in_flight: 1, max_message_bytes: 2kB")
    sent = output.deliver(
        [[Message(one)] for one in (b"a", b"b" * 3000, b"c")], Seen().ex, hold=True
    )
    assert [error is not None and error.is_rejected for error in sent.errors] == [
        *(False, True, False)
    ]
    assert _texts(kafka.consume(topic)) == [b"a", b"c"]


def test_where_no_broker_is_that_is_said() -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    output = _output("kafka_franz", nowhere, "a", "request_timeout_overhead: 1s")
    with pytest.raises(StreamerError, match=f"no broker answers at {nowhere}"):
        output.probe()


def test_records_wait_for_a_broker_that_is_away(tmp_path: Path) -> None:
    with Broker(tmp_path / "broker") as broker:
        topic = broker.client().create("a")
        output, seen = _output("redpanda", broker.address(), topic), Seen()
        assert output.deliver(batches("a"), seen.ex).errors == [None]
        told: list[str] = []

        def tell(level: str, text: str, fields: Any) -> None:
            if not told:
                broker.start()
            told.append(text)

        broker.kill()
        seen.ex.report_wait = tell
        assert output.deliver(batches("b", "c"), seen.ex).errors == [None] * 2
        assert re.fullmatch(
            "Output blocked: brokers have not taken 2 records of the topics 'a': .*; check that "
            "the brokers run",
            told[0],
        ), told[0]
        assert "KafkaError" not in told[0] and "thrd:" not in told[0]
        assert _texts(broker.client().consume(topic)) == [b"a", b"b", b"c"]


def test_records_fail_when_they_are_given_up(tmp_path: Path) -> None:
    with Broker(tmp_path / "broker") as broker:
        topic = broker.client().create("a")
        fields = "record_delivery_timeout: 5s, idempotent_write: false"
        output = _output("redpanda", broker.address(), topic, fields)
        assert output.deliver(batches("a"), Seen().ex).errors == [None]
        broker.kill()
        [error] = output.deliver(batches("b"), Seen().ex).errors
        assert error is not None and error.errors == {
            0: "the topic 'a' does not take a record: Message timed out; check that the brokers "
            "run, or give records more time (record_delivery_timeout; timeout of kafka)"
        }
        broker.start()
        assert output.deliver(batches("c"), Seen().ex).errors == [None]


def test_what_fails_goes_to_a_topic_of_its_own_with_the_reason_and_where_it_is_from(
    kafka: Kafka,
) -> None:
    results, letters = kafka.create(_topic()), kafka.create(_topic())
    brokers = f"seed_brokers: ['{kafka.bootstrap}']"
    output = built(
        f"fallback: [{{reject_errored: {{kafka_franz: {{{brokers}, topic: {results}}}}}}}, "
        f"{{kafka_franz: {{{brokers}, topic: {letters}, "
        "key: '${! @kafka_key }', metadata: {include_patterns: ['.*']}}}]"
    )
    meta = {"kafka_topic": "in", "kafka_partition": 1, "kafka_offset": 42, "kafka_key": "k"}
    good, bad = Message(b"good", meta), Message(b"bad", meta, "failed assignment")
    assert output.deliver([[good], [bad]], Seen().ex).errors == [None] * 2
    assert _texts(kafka.consume(results)) == [b"good"]
    [letter] = kafka.consume(letters)
    assert (letter.value, letter.key) == (b"bad", b"k")
    headers = dict(letter.headers)
    assert b"failed assignment" in (headers.pop("fallback_error") or b"")
    assert headers == {
        "kafka_key": b"k",
        "kafka_offset": b"42",
        "kafka_partition": b"1",
        "kafka_topic": b"in",
    }
