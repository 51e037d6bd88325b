"""A group whose broker is still being found is asked for again, for as long as there is time."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError as Told
from confluent_kafka import KafkaException, TopicPartition

from streamer.connectors.kafka.cluster import cluster_client
from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.errors import COORDINATOR_MOVES, KafkaError


class Group:
    """Answers as many times that its broker is changing as it has numbers of errors."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)

    def committed_offsets(self, places: list[tuple[str, int]], timeout_s: float) -> list[Any]:
        if self.codes:
            raise KafkaException(Told(self.codes.pop(0)))
        return [TopicPartition(topic, number, 7) for topic, number in places]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> ClusterClient:
    monkeypatch.setattr(cluster_client, "_POLL_INTERVAL_S", 0.01)
    return ClusterClient(Connection(("127.0.0.1:9",)))


def test_it_is_asked_again_until_it_answers(
    cluster: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Group(*COORDINATOR_MOVES)
    monkeypatch.setattr(cluster, "_group_client", lambda name: group)
    assert cluster.committed_offsets("readers", [("t", 0)], timeout_s=60) == {("t", 0): 7}
    assert not group.codes


def test_it_is_given_up_when_time_is_up(
    cluster: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_group_client", lambda name: Group(15))
    with pytest.raises(KafkaError, match="the group 'readers' cannot be read now"):
        cluster.committed_offsets("readers", [("t", 0)], timeout_s=0.0)
