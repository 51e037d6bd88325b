"""An opened input on a real broker: where it begins, what waits, what is lost, what groups hear."""

from __future__ import annotations

import itertools
import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.kafka.cluster.connection_fields import read_connection
from streamer.connectors.kafka.cluster.topic_selection import EARLIEST, LATEST, TopicSelection
from streamer.connectors.kafka.input.data_loss import DataLostError
from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.connectors.kafka.input.opened_input import Backlog, OpenKafkaInput
from streamer.connectors.kafka.input.start_offsets import StartRule, nest_offsets
from streamer.core.errors import StreamerError
from tests.components.inputs.rooms import lodging
from tests.connectors.kafka.parsing import connection_fields
from tests.servers.kafka import Broker, Kafka, Record

pytestmark = pytest.mark.slow

_NUMBERS = itertools.count()


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"source-{next(_NUMBERS)}"


@pytest.fixture
def source(kafka: Kafka) -> Iterator[Callable[..., KafkaSource]]:
    made: list[KafkaSource] = []

    def make(*topics: str, **fields: Any) -> KafkaSource:
        connection = read_connection(connection_fields(f"{{seed_brokers: ['{kafka.bootstrap}']}}"))
        fields = {"selection": TopicSelection(topics=topics), **fields}
        made.append(KafkaSource("kafka", connection, **fields))
        return made[-1]

    yield make
    for one in made:
        one.close()


def begun(source: KafkaSource, directory: Path, known: Any = None) -> tuple[dict[str, Any], Any]:
    """Open a source; return where it begins, and what the next start knows."""
    with lodging(directory, {"": known} if known else None) as lodged:
        opened = source.open(lodged.room)
        remembered = lodged.house.remembered[""]
    return nest_offsets(opened.starting), remembered


def records(partition: int, number: int, ms: int = 0) -> list[Record]:
    return [Record(b"x", partition=partition, timestamp=ms + at) for at in range(number)]


def test_a_new_stream_begins_where_the_config_says(kafka, source, name, tmp_path):
    kafka.create(name, partitions=2)
    kafka.produce(name, *records(0, 5, 1000), *records(1, 2, 5000))
    for start, expected in (
        (StartRule("earliest"), {"0": EARLIEST, "1": EARLIEST}),
        (StartRule("latest"), {"0": 5, "1": 2}),
        (StartRule("time", 1003), {"0": 3, "1": 0}),
        (StartRule("time", 9000), {"0": 5, "1": 2}),
    ):
        assert begun(source(name, start=start), tmp_path)[0] == {name: expected}


def test_a_group_that_has_read_is_where_it_begins(kafka, source, name, tmp_path):
    kafka.create(name, partitions=4)
    kafka.produce(name, *(one for partition in range(4) for one in records(partition, 5)))
    kafka.delete_records(name, {2: 3})
    # Of partition 2 it stands at what is gone, of 3 at what never was.
    kafka.commit(name, name, {0: 4, 2: 1, 3: 9})
    at = begun(source(name, group=name), tmp_path)[0][name]
    assert at == {"0": 4, "1": EARLIEST, "2": EARLIEST, "3": EARLIEST}
    at = begun(source(name, group=name, start=StartRule("latest")), tmp_path)[0][name]
    assert at == {"0": 4, "1": 5, "2": 5, "3": 5}
    with pytest.raises(StreamerError, match=f"no offset for {name}:1, {name}:2, {name}:3, and"):
        begun(source(name, group=name, start=StartRule("committed")), tmp_path)


def test_single_partitions_begin_where_they_say(kafka, source, name, tmp_path):
    kafka.create(name, partitions=4)
    kafka.produce(name, *(one for partition in range(4) for one in records(partition, 5)))
    selection = TopicSelection(partitions={name: {0: 3, 1: LATEST, 2: EARLIEST}})
    made = source(selection=selection)
    assert begun(made, tmp_path)[0] == {name: {"0": 3, "1": 5, "2": EARLIEST}}
    with lodging(tmp_path) as lodged:
        assert made.open(lodged.room).backlog({}).waiting == 2 + 0 + 5


def test_a_restart_before_the_first_micro_batch_begins_at_the_same_messages(
    kafka, source, name, tmp_path
):
    kafka.create(name, partitions=1)
    kafka.produce(name, *records(0, 3))
    late = source(name, start=StartRule("latest"), group=name)
    at, remembered = begun(late, tmp_path)
    assert at == {name: {"0": 3}}
    kafka.produce(name, *records(0, 3))
    kafka.commit(name, name, {0: 5})
    kafka.grow(name, 2)
    assert begun(late, tmp_path, remembered)[0] == {name: {"0": 3, "1": EARLIEST}}


def test_a_checkpoint_is_of_one_cluster_and_of_the_topics_that_it_was_begun_with(
    kafka, source, name, tmp_path
):
    kafka.create(name)
    kafka.create(f"{name}-b")
    _, remembered = begun(source(name), tmp_path)
    elsewhere = {**remembered, "cluster": "another"}
    with pytest.raises(StreamerError, match="made with the Kafka cluster 'another', and 127"):
        begun(source(name), tmp_path, elsewhere)
    with pytest.raises(DataLostError, match=f"offsets of the topic '{name}', which the field"):
        begun(source(f"{name}-b"), tmp_path, remembered)
    assert begun(source(name, f"{name}-b"), tmp_path, remembered)[0][f"{name}-b"] == {"0": EARLIEST}
    kafka.delete(name)
    kafka.create(name)
    with pytest.raises(DataLostError, match=f"'{name}' was deleted and recreated"):
        begun(source(name), tmp_path, remembered)
    begun(source(name, fail_on_data_loss=False), tmp_path, remembered)


def test_what_waits_is_counted_beyond_what_was_planned(kafka, source, name, tmp_path):
    kafka.create(name, partitions=2)
    kafka.produce(name, *records(0, 5), *records(1, 7))
    kafka.delete_records(name, {1: 2})
    with lodging(tmp_path) as lodged:
        opened = source(name, bound=8).open(lodged.room)
    assert isinstance(opened, OpenKafkaInput)
    ends = {name: {"0": 5, "1": 7}}
    assert opened.backlog({}) == Backlog(10, True, ends)
    assert opened.backlog({name: {"0": 4}}) == Backlog(6, False, ends)
    assert opened.backlog(ends) == Backlog(0, False, ends)
    elsewhere = pickle.loads(pickle.dumps(opened))
    backlog = elsewhere.backlog({name: {"0": 4, "1": 3}})
    assert backlog.waiting == 5
    assert backlog.lag_behind({}) == {}
    assert backlog.lag_behind({name: {"0": 4, "1": 3}}) == {(name, "0"): 1, (name, "1"): 4}
    elsewhere.close()
    assert elsewhere.backlog(ends).waiting == 0
    elsewhere.close()


def test_open_transactions_do_not_wait_for_who_reads_what_is_committed(kafka, source, name):
    kafka.create(name)
    kafka.produce(name, "a", transaction=f"{name}-first")
    producer = kafka.producer(f"{name}-second")
    producer.begin_transaction()
    producer.produce(name, b"b")
    producer.flush()
    assert source(name).backlog({}).waiting == 3  # with the mark of the first
    assert source(name, read_committed=True).backlog({}).waiting == 2
    producer.commit_transaction()
    # The mark in the topic follows in a moment.
    read_committed, until = source(name, read_committed=True), time.monotonic() + 60
    while read_committed.backlog({}).waiting != 4:
        assert time.monotonic() < until


def test_topics_that_come_later_are_found_by_their_names(kafka, source, name, monkeypatch):
    monkeypatch.setattr("streamer.connectors.kafka.input.cluster_view._REFRESH_INTERVAL_S", 0.0)
    made = source(selection=TopicSelection(include=(f"^{name}-",)))
    assert made.backlog({}).waiting == 0
    kafka.create(f"{name}-b")
    kafka.produce(f"{name}-b", "x")
    assert made.backlog({}).ends == {f"{name}-b": {"0": 1}}


def test_messages_that_are_gone_are_named_with_the_setting_that_goes_on(
    kafka, source, name, monkeypatch
):
    monkeypatch.setattr("streamer.connectors.kafka.input.cluster_view._GONE_AFTER_S", 0.0)
    kafka.create(name, partitions=2)
    kafka.produce(name, *records(0, 5), *records(1, 5))
    known = {name: {"0": 2, "1": 9}}
    strict, lenient = source(name), source(name, fail_on_data_loss=False)
    with pytest.raises(DataLostError) as caught:
        strict.backlog(known)
    assert str(caught.value) == (
        f"input kafka: unread messages are gone: {name}:1 stands at 9 and ends at 5; "
        "use another checkpoint, or set fail_on_data_loss: false to continue with the remaining "
        "messages"
    )
    assert strict.lost_text(known) == str(caught.value)
    # A micro-batch leaves behind what is gone.
    assert lenient.backlog(known).waiting == 4
    assert lenient.backlog({name: {"0": 5, "1": 9}}).waiting == 1
    assert strict.lost_text({name: {"0": 2, "1": 5}}) is None
    kafka.delete_records(name, {0: 4})
    assert f"{name}:0 stands at 2 and begins at 4" in str(
        strict.lost_text({name: {"0": 2, "1": 5}})
    )
    kafka.delete(name)
    with pytest.raises(DataLostError, match=f"{name}:0 stands at 2 and is gone; {name}:1"):
        strict.backlog(known)
    assert lenient.backlog(known).waiting == 1


def test_what_was_cut_before_a_start_is_found_at_its_first_look(kafka, source, name):
    kafka.create(name)
    kafka.produce(name, *records(0, 6))
    kafka.delete_records(name, {0: 4})
    known = {name: {"0": 2}}
    with pytest.raises(DataLostError, match=f"{name}:0 stands at 2 and begins at 4; use another"):
        source(name).backlog(known)
    lenient = source(name, fail_on_data_loss=False)
    assert lenient.backlog(known).waiting == 4
    [gone] = lenient.find_skipped(known, {name: {"0": 6}})
    assert (gone.messages, gone.text) == (2, f"{name}:0 stood at 2 and begins at 4")
    assert source(name).find_skipped(known, {name: {"0": 6}}) == []


def test_a_topic_that_is_made_anew_while_it_is_read_is_noticed_though_it_is_longer(
    kafka, source, name, tmp_path
):
    kafka.create(name)
    kafka.produce(name, *records(0, 5))
    made = source(name), source(name, fail_on_data_loss=False)
    with lodging(tmp_path) as lodged:
        strict, lenient = (one.open(lodged.room) for one in made)
    known, ends = {name: {"0": 5}}, {name: {"0": 9}}
    assert strict.backlog(known).waiting == 0
    kafka.delete(name)
    kafka.create(name)
    kafka.produce(name, *records(0, 9))
    elsewhere = pickle.loads(pickle.dumps(strict))
    with pytest.raises(DataLostError, match=f"{name}:0 stands at 5 and begins anew at 0; use an"):
        elsewhere.backlog(known)
    assert lenient.backlog(known).ends == ends
    [gone] = lenient.find_skipped(known, ends)
    assert gone.messages == 5 and "deleted and recreated" in gone.text
    assert lenient.find_skipped(ends, ends) == []
    # The next start knows that it has been told.
    begun(made[0], tmp_path, lodged.house.remembered[""])
    for one in (strict, lenient, elsewhere):
        one.close()


def test_what_is_missed_for_a_moment_is_not_lost(kafka, source, name):
    kafka.create(name)
    kafka.produce(name, "a")
    made = source(name)
    assert made.backlog({name: {"0": 2}}).waiting == 1
    kafka.produce(name, "b")
    assert made.backlog({name: {"0": 2}}).waiting == 0


def test_a_group_hears_what_is_safe_and_its_members_are_let_be(kafka, source, name):
    from confluent_kafka import Consumer

    kafka.create(name, partitions=2)
    kafka.produce(name, *records(0, 5))
    made = source(name, group=name)
    assert made.commit({name: {"0": 3, "1": 0}}) is None
    assert kafka.group_offsets(name) == {(name, 0): 3, (name, 1): 0}
    assert source(name).commit({name: {"0": 3}}) is None  # no group, nobody to tell
    member = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": name, "log_level": 0})
    member.subscribe([name])
    until = time.monotonic() + 60
    while not member.assignment():
        assert time.monotonic() < until
        member.poll(0.1)
    assert made.commit({name: {"0": 4}}) == (
        f"the group {name!r} has members of its own, so that Kafka takes no offsets from others; "
        "end them, or use another consumer_group"
    )
    member.close()
    assert made.commit({name: {"0": 5}}) is None
    assert kafka.group_offsets(name)[name, 0] == 5


def test_the_size_of_messages_is_told_from_the_newest(kafka, source, name):
    kafka.create(name, partitions=2)
    assert source(name).mean_message_size() is None
    whole = Record(b"x" * 1000, b"key", (("header", b"1234"),), partition=0)
    kafka.produce(name, *[whole] * 60, *records(1, 3))
    assert source(f"{name}").mean_message_size() == (50 * (1000 + 3 + 10) + 3) // 53


def test_a_broker_that_hangs_is_told_and_found_again(tmp_path):
    with Broker(tmp_path) as broker:
        kafka = broker.client()
        kafka.create("t")
        kafka.produce("t", "a")
        text = f"{{seed_brokers: ['{broker.address()}'], request_timeout_overhead: 2s}}"
        connection = read_connection(connection_fields(text))
        made = KafkaSource("kafka", connection, TopicSelection(topics=("t",)), group="g")
        assert made.reachability_problem() is None
        assert made.backlog({}).waiting == 1
        broker.pause()
        began = time.monotonic()
        # A process is not stopped at once.
        with pytest.raises(StreamerError, match="no broker"):
            while time.monotonic() - began < 20:
                made.backlog({})
        assert "no broker" in str(made.reachability_problem())
        assert "could not commit offsets" in str(made.commit({"t": {"0": 1}}))
        assert time.monotonic() - began < 40
        broker.resume()
        until = time.monotonic() + 60
        while made.reachability_problem() is not None:
            assert time.monotonic() < until
        assert made.backlog({}).waiting == 1
        made.close()


def test_no_question_makes_a_topic_that_was_deleted(
    kafka: Kafka, source: Callable[..., KafkaSource], name: str, tmp_path: Path
) -> None:
    kafka.create(name, partitions=2)
    kafka.produce(name, *(Record(b"x", partition=0) for _ in range(5)))
    with lodging(tmp_path) as lodged:
        opened, known = source(name).open(lodged.room), {name: {"0": 5, "1": 0}}
    opened.backlog(known)
    kafka.delete(name)
    until = time.monotonic() + 30
    with pytest.raises(DataLostError, match="is gone"):
        while time.monotonic() < until:
            opened.backlog(known)
            opened.reachability_problem()
            opened.connection_problem()
            opened.lost_text(known)
            opened.mean_message_size()
            opened.commit(known)
            time.sleep(0.2)
    assert name not in opened.cluster_view.cluster.list_topics(10)
