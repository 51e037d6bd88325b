"""Values and limits in a real Redis."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path

import pytest
import redis as library

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.sdk.cache import Cache, CacheError, KeyAlreadyExistsError, KeyNotFoundError
from streamer.sdk.rate_limit import RateLimit, RateLimitError
from streamer.sdk.spec import Kind
from tests.components.caches.conftest import Caches, Run
from tests.servers.redis import redis_server

pytestmark = pytest.mark.slow

MS = 10**6


@pytest.fixture
def prefix() -> str:
    return f"{uuid.uuid4()}:"


@pytest.fixture
def kept(cache: Caches, redis_url: str, prefix: str) -> Cache:
    return cache(f"redis: {{url: '{redis_url}', prefix: '{prefix}'}}")


def test_values_are_those_of_the_server(
    kept: Cache, a_run: Run, redis_url: str, prefix: str
) -> None:
    server = library.Redis.from_url(redis_url)
    with pytest.raises(KeyNotFoundError):
        kept.get("a", a_run.ex)
    kept.set("a", b"one\xff", None, a_run.ex)
    assert server.get(f"{prefix}a") == b"one\xff"
    assert server.ttl(f"{prefix}a") == -1
    server.set(f"{prefix}b", b"two")
    assert kept.get("b", a_run.ex) == b"two"
    kept.delete("b", a_run.ex)
    kept.delete("b", a_run.ex)
    assert server.exists(f"{prefix}b") == 0


def test_a_key_is_added_once_by_all_who_try(
    kept: Cache, cache: Caches, a_run: Run, redis_url: str, prefix: str
) -> None:
    other = cache(f"redis: {{url: '{redis_url}', prefix: '{prefix}'}}")
    gate, added = threading.Barrier(4), []

    def add(by: Cache) -> None:
        gate.wait(30)
        for key in map(str, range(50)):
            try:
                by.add(key, b"", None, a_run.ex)
            except KeyAlreadyExistsError:
                continue
            added.append(key)

    threads = [threading.Thread(target=add, args=(by,)) for by in (kept, other) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(added, key=int) == [str(n) for n in range(50)]


def test_values_end_after_their_own_time_or_that_of_the_cache(
    cache: Caches, a_run: Run, redis_url: str, prefix: str
) -> None:
    server = library.Redis.from_url(redis_url)
    kept = cache(f"redis: {{url: '{redis_url}', prefix: '{prefix}', default_ttl: 1h}}")
    kept.set("a", b"", None, a_run.ex)
    kept.add("b", b"", 500_000 * MS, a_run.ex)
    assert 3_500_000 < server.pttl(f"{prefix}a") <= 3_600_000
    assert 400_000 < server.pttl(f"{prefix}b") <= 500_000


def test_a_server_that_is_away_is_tried_again_and_then_told(cache: Caches) -> None:
    kept = cache(
        "redis: {url: 'redis://127.0.0.1:1', retries: "
        "{initial_interval: 1s, max_interval: 2s, max_elapsed_time: 9s}}"
    )
    now, logged = [0], []

    def sleep(ns: int) -> None:
        now[0] += ns

    ex = Execution(
        lambda: 0,
        lambda level, text, fields: logged.append(text),
        elapsed=lambda: now[0],
        sleep=sleep,
    )
    with pytest.raises(CacheError, match="refused"):
        kept.get("a", ex)
    assert 5_000 * MS < now[0] <= 9_000 * MS
    assert logged and all(text.startswith("Get command failed: ") for text in logged)


def test_a_server_that_comes_back_is_found_again(cache: Caches, tmp_path: Path, a_run: Run) -> None:
    with redis_server(tmp_path) as url:
        kept = cache(f"redis: {{url: '{url}'}}")
        kept.set("a", b"one", None, a_run.ex)
    with redis_server(tmp_path, int(url.rsplit(":", 1)[1])):
        kept.set("a", b"two", None, a_run.ex)
        assert kept.get("a", a_run.ex) == b"two"


def limit(url: str, key: str, fields: str) -> RateLimit:
    text = f"rate_limit_resources:\n  - label: slow\n    redis: {{url: '{url}', key: '{key}', "
    config = parse_config(f"{text}{fields}}}\n", env={})
    found: RateLimit = build_context(config.resources).resource(Kind.RATE_LIMIT, "slow")
    return found


def test_all_who_know_a_key_share_its_limit(redis_url: str, prefix: str) -> None:
    ex = Execution(lambda: 0)
    one = limit(redis_url, prefix, "count: 3, interval: 1h")
    other = limit(redis_url, prefix, "count: 3, interval: 1h")
    assert [one.access(ex), other.access(ex), one.access(ex)] == [0, 0, 0]
    for slow in (one, other):
        assert 3_500_000 * MS < slow.access(ex) <= 3_600_000 * MS


def test_a_limit_of_redis_begins_anew_after_its_interval(redis_url: str, prefix: str) -> None:
    ex = Execution(lambda: 0)
    slow = limit(redis_url, prefix, "count: 1, interval: 20ms")
    assert slow.access(ex) == 0
    while wait := slow.access(ex):
        assert 0 < wait <= 20 * MS
        ex.sleep(wait)


def test_a_limit_whose_server_is_away_is_an_error() -> None:
    with pytest.raises(RateLimitError, match="refused"):
        limit("redis://127.0.0.1:1", "a", "count: 1").access(Execution(lambda: 0))
