"""A group whose broker is still being found is asked for again, for as long as there is time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from streamer.connectors.kafka.cluster import requests
from streamer.connectors.kafka.cluster.broker_client import BrokerClient
from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.errors import (
    COORDINATOR_MOVES,
    KafkaError,
    OutOfTimeError,
    RefusedError,
)


class Requests:
    """The requests of a question that has so many tries; nothing is sent."""

    def __init__(self, tries: int) -> None:
        self.session = self
        self.coordinators = dict[str, int]()
        self._tries = tries

    async def pause(self, seconds: float) -> None:
        self._tries -= 1
        if self._tries <= 0:
            raise OutOfTimeError


@pytest.fixture
def coordinator(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ClusterClient]:
    """Make a client whose group answers as many times that its broker is changing, then 7."""

    def make(*codes: int, tries: int) -> ClusterClient:
        left = list(codes)

        async def find(asking: Requests, group: str) -> int:
            if left:
                raise RefusedError(left.pop(0), "moves")
            return 1

        def query(
            client: BrokerClient,
            question: Callable[[Any], Coroutine[Any, Any, Any]],
            timeout_s: float,
            keep: Callable[[], bool],
        ) -> Any:
            running = question(Requests(tries))
            try:
                running.send(None)
            except StopIteration as ended:
                return ended.value
            raise AssertionError("it waits for an answer")

        monkeypatch.setattr(requests, "find_coordinator", find)
        monkeypatch.setattr(BrokerClient, "query", query)
        return ClusterClient(Connection(("127.0.0.1:9",)))

    return make


def test_a_commit_is_refused_with_the_reason_when_time_is_up(
    coordinator: Callable[..., ClusterClient],
) -> None:
    cluster = coordinator(15, 15, 15, tries=3)
    why = cluster.commit("readers", {("t", 0): 7}, timeout_s=1)
    assert why == "the group 'readers' does not take offsets now: its broker is changing"


@pytest.mark.parametrize("code", COORDINATOR_MOVES)
def test_reading_is_given_up_when_time_is_up(
    code: int, coordinator: Callable[..., ClusterClient]
) -> None:
    cluster = coordinator(*[code] * 3, tries=3)
    with pytest.raises(KafkaError, match="the group 'readers' cannot be read now"):
        cluster.committed_offsets("readers", [("t", 0)], timeout_s=1)
