"""A group whose broker is still being found is asked for again, for as long as there is time."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError as Told
from confluent_kafka import KafkaException, TopicPartition

from streamer.kafka import clients
from streamer.kafka.clients import Cluster
from streamer.kafka.connection import Connection
from streamer.kafka.errors import COORDINATOR_MOVES, KafkaError


class Group:
    """Answers as many times that its broker is changing as it has numbers of errors."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)

    def committed(self, places: list[tuple[str, int]], patience: float) -> list[Any]:
        if self.codes:
            raise KafkaException(Told(self.codes.pop(0)))
        return [TopicPartition(topic, number, 7) for topic, number in places]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(clients, "_STEP", 0.01)
    return Cluster(Connection(("127.0.0.1:9",)))


def test_it_is_asked_again_until_it_answers(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Group(*COORDINATOR_MOVES)
    monkeypatch.setattr(cluster, "_of", lambda name: group)
    assert cluster.committed("readers", [("t", 0)], patience=60) == {("t", 0): 7}
    assert not group.codes


def test_it_is_given_up_when_time_is_up(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_of", lambda name: Group(15))
    with pytest.raises(KafkaError, match="the group 'readers' is not told now"):
        cluster.committed("readers", [("t", 0)], patience=0.0)
