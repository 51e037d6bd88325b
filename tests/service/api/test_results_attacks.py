"""Statements of strangers over HTTP: the service answers others, and its streams go on."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from streamer.connectors.duckdb import child_process
from streamer.service.api import result_endpoints as endpoint
from tests.engine.results.kept import Row
from tests.service.api.asking import Asking, asking
from tests.service.api.test_results_api import PATH, deploy

pytestmark = pytest.mark.slow

ENDLESS = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
ATTACKS = [
    "SELECT length(repeat('x', 4000000000))",
    "SELECT count(*) FROM range(100000000000) a, range(1000) b",
    "SELECT * FROM read_csv('/etc/passwd')",
    "COPY (SELECT 1) TO '/tmp/streamer-attack.csv'",
    "ATTACH '/tmp/streamer-attack.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')",
    "PRAGMA database_list",
    "SELECT * FROM duckdb_extensions()",
    "CALL pragma_version()",
    "SET memory_limit = '1TB'",
]


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    started: list[int] = []
    start = child_process.ChildProcess.start

    def note(process: child_process.ChildProcess) -> bool:
        is_new = start(process)
        assert process.process_id is not None
        started.append(process.process_id)
        return is_new

    monkeypatch.setattr(child_process.ChildProcess, "start", note)
    return started


def ask_sql(server: Asking, sql: str) -> int:
    return server.client.get(PATH, params={"sql": sql}).status_code


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.05)


def test_attacks_are_refused_while_others_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, children: list[int]
) -> None:
    monkeypatch.setattr(endpoint, "QUERY_TIMEOUT_S", 1.0)
    monkeypatch.setattr(endpoint, "_ACQUIRE_TIMEOUT_S", 60.0)
    with asking(tmp_path) as server, ThreadPoolExecutor(4) as pool:
        deploy(server, Row("a"))
        answers = [pool.submit(ask_sql, server, sql) for sql in ATTACKS]
        slowest = 0.0
        while not all(answer.done() for answer in answers):
            began = time.monotonic()
            assert server.client.get("/streams/a").status_code == 200
            slowest = max(slowest, time.monotonic() - began)
            time.sleep(0.02)
        assert [answer.result() for answer in answers] == [400] * len(ATTACKS)
        assert slowest < 5
        assert len(children) == len(ATTACKS)
        assert not any(Path(f"/proc/{one}").exists() for one in children)
        # A stream goes on, and what it has kept is there.
        assert server.client.get("/streams/a").json()["active"]
        # A second is short for a process that others keep from the cores.
        monkeypatch.setattr(endpoint, "QUERY_TIMEOUT_S", 60.0)
        assert ask_sql(server, "SELECT key FROM results") == 200
    assert not list(Path("/tmp").glob("streamer-attack*"))


def test_a_client_that_goes_away_takes_its_statement_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, children: list[int]
) -> None:
    monkeypatch.setattr(endpoint, "QUERY_TIMEOUT_S", 60.0)
    with asking(tmp_path) as server:
        deploy(server, Row("a"))
        address = urlsplit(server.url)
        for _ in range(endpoint.MAX_CONCURRENT_QUERIES):
            with socket.create_connection((address.hostname, address.port or 0), 10) as client:
                line = f"GET {PATH}?sql={quote(ENDLESS)} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n"
                client.sendall(line.encode())
                known = len(children)
                wait_until(lambda known=known: len(children) > known)  # type: ignore[misc]
        wait_until(lambda: not any(Path(f"/proc/{one}").exists() for one in children))
        assert ask_sql(server, "SELECT 1") == 200


def test_many_statements_at_once_leave_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, children: list[int]
) -> None:
    monkeypatch.setattr(endpoint, "QUERY_TIMEOUT_S", 2.0)
    monkeypatch.setattr(endpoint, "_ACQUIRE_TIMEOUT_S", 0.5)
    most, is_over = [0], threading.Event()

    def count_processes() -> None:
        while not is_over.wait(0.02):
            most[0] = max(most[0], sum(Path(f"/proc/{one}").exists() for one in list(children)))

    with asking(tmp_path) as server, ThreadPoolExecutor(40) as pool:
        deploy(server, Row("a"))
        counter = threading.Thread(target=count_processes)
        counter.start()
        answers = [pool.submit(ask_sql, server, ENDLESS) for _ in range(40)]
        while not all(answer.done() for answer in answers):
            assert server.client.get("/streams").status_code == 200
            time.sleep(0.02)
        is_over.set()
        counter.join()
        codes = [answer.result() for answer in answers]
        assert set(codes) == {400, 503} and codes.count(400) >= endpoint.MAX_CONCURRENT_QUERIES
        assert most[0] <= endpoint.MAX_CONCURRENT_QUERIES
        assert ask_sql(server, "SELECT 1") == 200
