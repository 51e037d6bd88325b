"""A group whose broker is still being found is asked for again, for as long as there is time."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError as Told
from confluent_kafka import KafkaException, TopicPartition

from streamer.kafka import clients
from streamer.kafka.clients import Cluster
from streamer.kafka.connection import Connection
from streamer.kafka.errors import NOT_READY, KafkaError


class Admin:
    """Answers as many times that the group is not ready as it has numbers of errors."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)

    def poll(self, timeout: float) -> None:
        pass

    def list_consumer_group_offsets(self, asked: list[Any], request_timeout: float) -> Any:
        (one,) = asked
        answer: Future[Any] = Future()
        if self.codes:
            answer.set_exception(KafkaException(Told(self.codes.pop(0))))
        else:
            one.topic_partitions = [TopicPartition("t", 0, 7)]
            answer.set_result(one)
        return {one.group_id: answer}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(clients, "_STEP", 0.01)
    return Cluster(Connection(("127.0.0.1:9",)))


def test_it_is_asked_again_until_it_answers(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = Admin(*NOT_READY)
    monkeypatch.setattr(cluster, "_admin", lambda: admin)
    assert cluster.committed("readers", [("t", 0)], patience=60) == {("t", 0): 7}
    assert not admin.codes


def test_it_is_given_up_when_time_is_up(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_admin", lambda: Admin(15))
    with pytest.raises(KafkaError, match="the group 'readers' has no broker that knows it"):
        cluster.committed("readers", [("t", 0)], patience=0.0)
