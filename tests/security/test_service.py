"""A service as the docs say how to start one, with few descriptors, and strangers at its port."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.faults.service import Service, service
from tests.security.clients import connected, half_open, raw_answer
from tests.servers import free_port
from tests.servers.hostile import raw_server, silent
from tests.slowness import wall_slowness

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

DESCRIPTORS = 400
GOOD = """\
input: { generate: { mapping: 'root.id = count("good") - 1', interval: 100ms } }
output: { file: { path: %s } }
"""
POSTED = """\
input: { http_server: { path: /post } }
output: { file: { path: %s } }
"""
STUCK = """\
input: { generate: { mapping: root = 1, interval: 1s } }
output: { http_client: { url: 'http://127.0.0.1:%d', retries: 0 } }
"""
SILENT = """\
input: { redis_list: { url: 'redis://%s', key: a } }
output: { drop: {} }
"""
KAFKA = """\
input: { kafka: { addresses: ['127.0.0.1:%d'], topics: [a], consumer_group: a } }
output: { drop: {} }
"""


@contextmanager
def descriptors(number: int) -> Iterator[None]:
    """Let processes that are started in the block open so many files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def ids(path: Path) -> list[int]:
    """Return the numbers of a file that may be written just now."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line)["id"] for line in lines]


def asked(running: Service, request: str) -> bytes:
    return raw_answer(str(running.client.base_url), request.encode(), 10 * wall_slowness())


def test_strangers_hold_up_nobody(tmp_path: Path) -> None:
    out, taken = tmp_path / "good", tmp_path / "posted"
    with raw_server(silent) as nobody, ExitStack() as stack:
        with descriptors(DESCRIPTORS):
            running = stack.enter_context(service(tmp_path / "s"))
        running.wait_running()
        _attacked(running, out, taken, nobody)


def _attacked(running: Service, out: Path, taken: Path, nobody: str) -> None:
    url = str(running.client.base_url)
    configs = {
        "good": GOOD % out,
        "posted": POSTED % taken,
        "stuck": STUCK % free_port(),
        "silent": SILENT % nobody,
        "kafka": KAFKA % free_port(),
    }
    for name, text in configs.items():
        answer = running.ask("POST", f"/streams/{name}", text)
        assert answer.status_code == 200, (name, answer.text)
    running.wait_for(lambda: len(ids(out)) > 10, 400, "for the good stream")
    before = len(ids(out))

    with half_open(url, 350):
        for _ in range(3):
            began = time.monotonic()
            assert b"pong" in asked(running, PING)
            assert time.monotonic() - began < 5 * wall_slowness()
        with connected(url) as client:
            huge = b"Host: localhost\r\nContent-Length: 600000000\r\n\r\n"
            client.sendall(b"POST /posted/post HTTP/1.1\r\n" + huge)
            assert client.recv(1000).startswith(b"HTTP/1.1 413")
        forged = "GET /streams HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
        assert asked(running, forged).startswith(b"HTTP/1.1 403")
        deep = "[" * 100_000
        assert running.ask("POST", "/posted/post", deep).status_code == 200
        running.wait_for(lambda: len(ids(out)) > before + 50, 200, "for the good one to go on")

    # Each sick one says what it waits for, and none has failed for good.
    running.wait_for(
        lambda: all("waiting since" in running.streams()[one]["reason"] for one in SICK),
        300,
        "for reasons",
    )
    states = {name: (one["state"], one["reason"]) for name, one in running.streams().items()}
    assert states["kafka"][0] in ("waiting", "starting")
    assert "no broker answers" in states["kafka"][1]
    assert states["silent"][0] == "running" and "redis" in states["silent"][1]
    assert states["good"] == ("running", "")
    # A stream that is stuck is deleted at once, and nobody waits for it.
    began = time.monotonic()
    assert running.ask("DELETE", "/streams/stuck").status_code == 200
    assert time.monotonic() - began < 8 * wall_slowness()
    found = ids(out)
    assert found == list(range(len(found)))
    assert not any("Too many open files" in str(line) for line in running.lines())
    assert running.log_path.stat().st_size < 100_000
    assert running.stop() == 0


PING = "GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
SICK = ("silent", "kafka")
