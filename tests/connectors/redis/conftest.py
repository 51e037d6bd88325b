"""A real Redis, with a key that no other test uses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

_NUMBERS = itertools.count()


@dataclass
class Place:
    """A Redis.

    Attributes:
        url: where it is.
        key: a key of this test's own.
        redis: a client of the library's.
    """

    url: str
    key: str
    redis: Any


@pytest.fixture
def db(redis_url: str) -> Iterator[Place]:
    import redis

    client = redis.Redis.from_url(redis_url, decode_responses=True)
    with client:
        yield Place(redis_url, f"test:{next(_NUMBERS)}", client)
