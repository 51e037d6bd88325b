"""Values in real memcached servers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pymemcache.client.base import Client

from streamer.config import parse_config
from streamer.core.errors import ConfigError
from streamer.core.execution import Execution
from streamer.sdk.cache import Cache, CacheError, KeyAlreadyExistsError, KeyNotFoundError
from tests.components.caches.conftest import Caches, Run
from tests.servers.memcached import memcached_server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    directory = tmp_path_factory.mktemp("memcached")
    with memcached_server(directory) as one, memcached_server(directory) as other:
        yield one, other


@pytest.fixture
def kept(cache: Caches, servers: tuple[str, str]) -> Cache:
    for address in servers:
        with closing(_client(address)) as client:
            client.flush_all(noreply=False)
    return cache(f"memcached: {{addresses: ['{servers[0]},{servers[1]}'], prefix: 'p:'}}")


def _client(address: str) -> Client:
    host, port = address.split(":")
    return Client((host, int(port)))


def test_values_are_spread_over_the_servers(
    kept: Cache, servers: tuple[str, str], a_run: Run
) -> None:
    for number in range(40):
        kept.set(str(number), b"%d\xff" % number, None, a_run.ex)
    assert [kept.get(str(n), a_run.ex) for n in range(40)] == [b"%d\xff" % n for n in range(40)]
    counts = []
    for address in servers:
        with closing(_client(address)) as client:
            counts.append(int(client.stats()[b"curr_items"]))
    assert sum(counts) == 40 and min(counts) > 5


def test_a_key_is_added_once_until_it_is_deleted(kept: Cache, a_run: Run) -> None:
    with pytest.raises(KeyNotFoundError):
        kept.get("a", a_run.ex)
    kept.add("a", b"one", None, a_run.ex)
    with pytest.raises(KeyAlreadyExistsError):
        kept.add("a", b"two", None, a_run.ex)
    assert kept.get("a", a_run.ex) == b"one"
    kept.delete("a", a_run.ex)
    kept.delete("a", a_run.ex)
    kept.add("a", b"three", None, a_run.ex)
    assert kept.get("a", a_run.ex) == b"three"


def test_a_value_ends_after_its_time(kept: Cache, a_run: Run) -> None:
    kept.set("a", b"", 10**9, a_run.ex)
    while True:  # its clock has whole seconds
        try:
            kept.get("a", a_run.ex)
        except KeyNotFoundError:
            break
        a_run.ex.sleep(20 * 10**6)


def test_a_key_that_memcached_does_not_take_is_an_error(kept: Cache, a_run: Run) -> None:
    for key in ("a b", "x" * 260):
        with pytest.raises(CacheError, match="^malformed: "):
            kept.get(key, a_run.ex)


def test_a_server_that_is_away_is_tried_again_and_then_told(cache: Caches) -> None:
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
        cache("memcached: {addresses: ['127.0.0.1:1']}").set("a", b"", None, ex)
    assert 20 * 10**9 < now[0] <= 30 * 10**9
    assert logged and all(text.startswith("Set command failed: ") for text in logged)


def test_a_server_that_comes_back_is_found_again(cache: Caches, tmp_path: Path, a_run: Run) -> None:
    with memcached_server(tmp_path) as address:
        kept = cache(f"memcached: {{addresses: ['{address}'], retries: {{initial_interval: 1ms}}}}")
        kept.set("a", b"one", None, a_run.ex)
    with memcached_server(tmp_path, int(address.rsplit(":", 1)[1])):
        kept.set("a", b"two", None, a_run.ex)
        assert kept.get("a", a_run.ex) == b"two"


@pytest.mark.parametrize("addresses", ["[]", "['']", "['host:x']"])
def test_lint_wants_addresses(addresses: str) -> None:
    text = f"cache_resources: [{{label: a, memcached: {{addresses: {addresses}}}}}]"
    with pytest.raises(ConfigError, match="localhost:11211"):
        parse_config(text, env={})
