"""What becomes of a session whose question was not answered in time; nothing is connected."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from streamer.connectors.kafka.cluster.broker_client import BrokerClient
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.errors import KafkaError, OutOfTimeError


class Session:
    """A session that never gets an answer."""

    def __init__(self, is_throttled: bool) -> None:
        self.is_throttled = is_throttled
        self.failures: list[Any] = []
        self.users = 0
        self.manager = SimpleNamespace(bootstrapped=True)

    def query(self, question: Any, timeout_s: float) -> Any:
        assert self.users == 1
        raise OutOfTimeError

    def close(self) -> None:
        pass


def client_of(session: Session) -> BrokerClient:
    client = BrokerClient(Connection(("a:1",), client_id="me"))
    client._session, client._process = session, os.getpid()  # type: ignore[assignment]
    return client


async def question(requests: Any) -> None:
    raise AssertionError


def test_the_next_question_begins_another_session() -> None:
    client = client_of(Session(is_throttled=False))
    with pytest.raises(KafkaError, match="no broker answers at a:1: nothing has come back"):
        client.query(question, 1)
    assert client._session is None


def test_a_session_may_be_kept_for_what_is_under_way() -> None:
    session = Session(is_throttled=False)
    client = client_of(session)
    with pytest.raises(KafkaError):
        client.query(question, 1, keep=lambda: True)
    assert client._session is session and session.users == 0  # type: ignore[comparison-overlap]


def test_a_quota_is_named_and_not_evaded_by_another_session() -> None:
    session = Session(is_throttled=True)
    client = client_of(session)
    with pytest.raises(KafkaError, match="hold the client 'me' back by a quota") as raised:
        client.query(question, 1)
    assert not raised.value.is_final
    assert client._session is session  # type: ignore[comparison-overlap]
