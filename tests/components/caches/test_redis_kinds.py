"""A cache in a Redis cluster, and in a Redis that sentinels watch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis as library

from streamer.sdk.cache import KeyAlreadyExistsError
from tests.components.caches.conftest import Caches, Run
from tests.servers import free_port, installed, listens, running
from tests.servers.redis import redis_server

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A cluster of one server, which has all slots."""
    options = ("--cluster-enabled", "yes", "--cluster-config-file", f"{tmp_path}/nodes.conf")
    # A cluster's own port is 10,000 above; not every port has one.
    port = next(port for port in iter(free_port, None) if port < 50_000)
    with redis_server(tmp_path, port, *options) as url:
        with closing(library.Redis.from_url(url)) as server:
            server.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
            until = time.monotonic() + 60
            while b"cluster_state:ok" not in server.execute_command("CLUSTER", "INFO"):
                assert time.monotonic() < until
                time.sleep(0.05)
        yield url


def test_a_cluster_keeps_values(cache: Caches, cluster: str, a_run: Run) -> None:
    kept = cache(f"redis: {{url: '{cluster},{cluster}', kind: cluster}}")
    for number in range(20):
        kept.add(str(number), b"%d" % number, None, a_run.ex)
    with pytest.raises(KeyAlreadyExistsError):
        kept.add("7", b"", None, a_run.ex)
    assert [kept.get(str(number), a_run.ex) for number in range(20)] == [
        b"%d" % number for number in range(20)
    ]


def test_sentinels_say_where_the_master_is(cache: Caches, tmp_path: Path, a_run: Run) -> None:
    with redis_server(tmp_path) as url:
        port = free_port()
        config = tmp_path / "sentinel.conf"
        config.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {tmp_path}\n"
            f"sentinel monitor main 127.0.0.1 {url.rsplit(':', 1)[1]} 1\n"
        )
        command = [installed("redis-server", "redis-server"), str(config), "--sentinel"]
        with running(command, tmp_path / "sentinel.log", lambda: listens(port)):
            kept = cache(
                f"redis: {{url: 'redis://127.0.0.1:{port}', kind: failover, master: main}}"
            )
            kept.set("a", b"one", None, a_run.ex)
            with closing(library.Redis.from_url(url)) as server:
                assert server.get("a") == b"one"
            assert kept.get("a", a_run.ex) == b"one"
