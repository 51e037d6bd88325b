"""The servers that tests of components use answer, and are gone afterwards."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.servers import installed, listens
from tests.servers.http import http_server
from tests.servers.memcached import memcached_server
from tests.servers.namespaces import hosts
from tests.servers.redis import redis_server

pytestmark = pytest.mark.slow


def test_redis_answers_and_is_gone_afterwards(tmp_path_factory: pytest.TempPathFactory) -> None:
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        port = urlsplit(url).port
        assert port is not None
        with socket.create_connection(("127.0.0.1", port), 10) as client:
            client.sendall(b"PING\r\n")
            assert client.recv(100) == b"+PONG\r\n"
    assert not listens(port)


def test_a_request_that_is_not_whole_is_none() -> None:
    with http_server() as server:
        at = urlsplit(server.url)
        assert at.hostname is not None and at.port is not None
        with socket.create_connection((at.hostname, at.port), 10) as client:
            client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
            client.shutdown(socket.SHUT_WR)
            assert client.recv(100) == b""
        assert not server.asked


def test_postgresql_answers(postgres_dsn: str) -> None:
    psql = shutil.which("psql") or installed("postgresql", "psql", "/usr/lib/postgresql/*/bin/psql")
    asked = subprocess.run(
        [psql, postgres_dsn, "-Atc", "select 6 * 7"], capture_output=True, text=True, timeout=60
    )
    assert asked.stdout == "42\n", asked.stderr


def test_memcached_answers_and_is_gone_afterwards(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with memcached_server(tmp_path_factory.mktemp("memcached")) as address:
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), 10) as client:
            client.sendall(b"version\r\n")
            assert client.recv(100).startswith(b"VERSION ")
    assert not listens(int(port))


def test_hosts_reach_each_other_unless_one_is_cut_off_and_are_gone_afterwards() -> None:
    with hosts(["here", "there"]) as net:
        at = net.address("there")
        listen = f"import socket; s = socket.create_server(('{at}', 80)); print(flush=True)\n"
        listen += "while True: s.accept()"
        connect = f"import socket; socket.create_connection(('{at}', 80), 1)"
        server = subprocess.Popen(
            [*net.inside("there"), sys.executable, "-c", listen], stdout=subprocess.PIPE
        )
        assert server.stdout is not None and server.stdout.readline()

        def reaches() -> bool:
            asked = [*net.inside("here"), sys.executable, "-c", connect]
            return subprocess.run(asked, stderr=subprocess.DEVNULL).returncode == 0

        assert reaches()
        net.cut("there")
        assert not reaches()
        net.mend("there")
        assert reaches()
        # A thread can be there as well, and what it starts.
        own = Path("/proc/thread-self/ns/net").readlink()
        with net.entered("here"):
            socket.create_connection((at, 80), 1).close()
            assert not subprocess.run([sys.executable, "-c", connect]).returncode
        assert Path("/proc/thread-self/ns/net").readlink() == own
    # What still ran there was killed.
    assert server.wait(1) < 0
    server.stdout.close()
    assert not list(Path("/run/netns").glob(f"{net.mark}-*"))
