"""Offsets of partitions, while their leaders change."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from streamer.connectors.kafka.cluster.errors import RefusedError
from streamer.connectors.kafka.cluster.requests import list_offsets

PLACE = "t", 0


class Requests:
    """Answers each request with the next error; the leader is always known."""

    def __init__(self, *errors: int) -> None:
        self.errors = list(errors)
        self.pauses = 0
        self.session = SimpleNamespace(leaders={PLACE: 1})

    def begin(self, node: int, request: Any) -> Any:
        async def answer() -> Any:
            part = SimpleNamespace(partition_index=0, error_code=self.errors.pop(0), offset=7)
            return SimpleNamespace(topics=[SimpleNamespace(name="t", partitions=[part])])

        return answer()

    async def pause(self, seconds: float) -> None:
        self.pauses += 1


def test_a_new_leader_that_does_not_know_yet_is_asked_again() -> None:
    requests: Any = Requests(78, 78, 0)
    assert asyncio.run(list_offsets(requests, {PLACE: -1}, committed=False)) == {PLACE: 7}
    assert requests.pauses == 2


def test_what_is_refused_is_not_asked_again() -> None:
    requests: Any = Requests(29, 0)
    with pytest.raises(RefusedError):
        asyncio.run(list_offsets(requests, {PLACE: -1}, committed=False))
