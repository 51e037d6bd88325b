"""A cluster, a master that sentinels watch, and TLS: real servers, and all components' client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer.core.message import Message
from streamer.sdk.input.input_context import open_input
from streamer.sdk.input.replayable import Limit
from tests.components.inputs.reading import built as built_input
from tests.components.inputs.reading import raws_of
from tests.components.inputs.rooms import lodging
from tests.components.outputs.scripted import Seen, batches, built
from tests.servers import free_port, installed, listens, running
from tests.servers.certificates import certificate
from tests.servers.redis import redis_server

from .test_redis_processors import outcomes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a cluster of one server, which has all slots."""
    import redis

    directory = tmp_path_factory.mktemp("cluster")
    # The bus is 10,000 above the port otherwise, which may be above all ports.
    more = ["--cluster-enabled", "yes", "--cluster-port", str(free_port())]
    with redis_server(directory, None, *more) as url:
        with redis.Redis.from_url(url) as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            until = time.monotonic() + 60
            while b"cluster_state:ok" not in client.execute_command("CLUSTER", "INFO"):
                assert time.monotonic() < until
                time.sleep(0.02)
        yield url


def test_a_cluster_is_asked_sent_to_and_read(cluster: str, tmp_path: Path) -> None:
    target = f"url: '{cluster},{cluster}', kind: cluster"
    output = built(f"redis_list: {{{target}, key: 'k${{! content() }}'}}")
    assert output.deliver(batches("abcd"), Seen().ex).errors == [None]
    assert output.probe() == "Redis answers"
    yaml = f"redis: {{{target}, command: lrange, args_mapping: 'root = [ \"k\" + this, 0, -1 ]'}}"
    assert outcomes(yaml, '"a"', '"d"', '"x"') == ['["a"]', '["d"]', "[]"]
    script = f"redis_script: {{{target}, script: 'return redis.call(\"LLEN\", KEYS[1])', "
    yaml = script + "keys_mapping: 'root = [ \"ka\" ]', args_mapping: 'root = []'}"
    assert outcomes(yaml, "0") == ["1"]
    source = built_input(f"input: {{redis_list: {{{target}, key: kb}}}}")
    with lodging(tmp_path) as lodged:
        landed = open_input(source, lodged.room)
        until = time.monotonic() + 60
        while not (latest := landed.latest_offset(landed.initial_offset(), 0, Limit())).waiting:
            assert time.monotonic() < until, lodged.log
            time.sleep(0.01)
        assert raws_of(landed, landed.initial_offset(), latest.offset) == [b"b"]


def test_sentinels_are_asked_for_the_master(tmp_path: Path) -> None:
    program = installed("redis-server", "redis-server")
    (tmp_path / "master").mkdir()
    with redis_server(tmp_path / "master") as url:
        port = free_port()
        config = tmp_path / "sentinel.conf"
        config.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {tmp_path}\n"
            f"sentinel monitor the-master 127.0.0.1 {url.rpartition(':')[2]} 1\n"
        )
        command = [program, str(config), "--sentinel"]
        with running(command, tmp_path / "sentinel.log", lambda: listens(port)):
            target = f"url: 'redis://127.0.0.1:{port}/2', kind: failover, master: the-master"
            output = built(f"redis_list: {{{target}, key: k}}")
            assert output.deliver([[Message(b"x")]], Seen().ex).errors == [None]
            yaml = f"redis: {{{target}, command: lrange, args_mapping: 'root = [ \"k\", 0, -1 ]'}}"
            assert outcomes(yaml, "{}") == ['["x"]']
            missing = outcomes(yaml.replace("the-master", "another"), "{}")[0]
            assert missing.startswith("! No master found for 'another'")


def test_a_connection_is_encrypted(tmp_path: Path) -> None:
    certificate(tmp_path)
    cert, key, port = tmp_path / "cert.pem", tmp_path / "key.pem", free_port()
    more = ["--tls-port", str(port), "--tls-cert-file", str(cert), "--tls-key-file", str(key)]
    more += ["--tls-ca-cert-file", str(cert), "--tls-auth-clients", "yes"]
    with redis_server(tmp_path, None, *more):
        shown = f"client_certs: [{{cert_file: '{cert}', key_file: '{key}'}}]"
        url = f"url: 'redis://localhost:{port}', command: ping, args_mapping: 'root = []', "
        for tls, answer in (
            (f"enabled: true, root_cas_file: '{cert}', {shown}", '"PONG"'),
            (f"enabled: true, skip_cert_verify: true, {shown}", '"PONG"'),
            (f"enabled: true, {shown}", "! "),
            (f"enabled: true, root_cas_file: '{cert}'", "! "),
        ):
            [found] = outcomes(f"redis: {{{url}tls: {{{tls}}}, retries: 0, retry_period: 0s}}", "0")
            assert found.startswith(answer), (tls, found)
