"""A statement that attacks the process of its query harms that process alone."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from streamer.connectors.duckdb import child_process
from streamer.engine.results import sql_query
from streamer.engine.results.query_model import ResultQueryError
from streamer.engine.results.sql_cells import MAX_DEPTH, decode_row, encode_row
from streamer.engine.results.sql_query import run_select

from .kept import Row, T, keep

pytestmark = pytest.mark.slow

MEMORY_BOMBS = [
    "SELECT length(repeat('x', 4000000000))",
    "SELECT list_sum(list_transform(range(500000000), x -> x * 2))",
    "SELECT len(list(a.range || repeat('x', 1000))) FROM range(10000) a, range(10000) b",
    "WITH RECURSIVE t AS (SELECT 'x' AS x UNION ALL SELECT x || x FROM t) SELECT max(x) FROM t",
]
ENDLESS = [
    "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT sum(n) FROM t",
    "SELECT count_if(regexp_matches(repeat('a', 30000000 + n), '(a|b)*c')) FROM range(10000) t(n)",
]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    directory = tmp_path / "results"
    keep(directory, Row("a", T, b'{"n":1}'))
    return directory


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids of the processes that have been started."""
    started: list[int] = []
    start = child_process.ChildProcess.start

    def note(process: child_process.ChildProcess) -> bool:
        is_new = start(process)
        assert process.process_id is not None
        started.append(process.process_id)
        return is_new

    monkeypatch.setattr(child_process.ChildProcess, "start", note)
    return started


def peak_bytes(process_id: int) -> int:
    try:
        status = Path(f"/proc/{process_id}/status").read_text()
    except OSError:
        return 0
    peaks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    return int(peaks[0]) << 10 if peaks else 0


@pytest.fixture
def watch(children: list[int]) -> Iterator[Callable[[], int]]:
    """Look at the processes all the time; return the most memory that one has had."""
    peaks, is_over = [0], threading.Event()

    def look() -> None:
        while not is_over.wait(0.02):
            peaks.extend(peak_bytes(one) for one in list(children))

    thread = threading.Thread(target=look)
    thread.start()
    yield lambda: max(peaks)
    is_over.set()
    thread.join()


def own_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def exists(process_id: int) -> bool:
    return Path(f"/proc/{process_id}").exists()


@pytest.mark.parametrize("sql", MEMORY_BOMBS)
def test_a_memory_bomb_ends_alone(
    results: Path, children: list[int], watch: Callable[[], int], sql: str
) -> None:
    before = own_bytes()
    with pytest.raises(ResultQueryError, match="more memory than it may|took longer|cannot be run"):
        run_select(results, sql, T, seconds=3)
    assert watch() < 1_100 << 20
    assert own_bytes() - before < 64 << 20
    assert not any(map(exists, children))
    assert run_select(results, "SELECT key FROM results", T).rows == (("a",),)


@pytest.mark.parametrize("sql", ENDLESS)
def test_an_endless_statement_is_ended(results: Path, children: list[int], sql: str) -> None:
    began = time.monotonic()
    with pytest.raises(ResultQueryError, match=r"took longer than 0\.5 s|more memory|cannot be"):
        run_select(results, sql, T, seconds=0.5)
    assert time.monotonic() - began < 15
    assert not any(map(exists, children))


def test_a_statement_that_cannot_be_interrupted_is_killed(
    results: Path, children: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    request = sql_query.ChildProcess.request

    def stop_first(process: Any, header: Any, body: Any = b"", **options: Any) -> Any:
        if header["do"] == "select":
            os.kill(process.process_id, 19)  # SIGSTOP: its own clock stands still, too.
        return request(process, header, body, **options)

    monkeypatch.setattr(sql_query.ChildProcess, "request", stop_first)
    with pytest.raises(ResultQueryError, match=r"took longer than 0\.3 s"):
        run_select(results, "SELECT 1", T, seconds=0.3)
    assert len(children) == 1 and not exists(children[0])


def test_nobody_waiting_ends_a_statement(results: Path, children: list[int]) -> None:
    began = time.monotonic()

    def is_abandoned() -> bool:
        return time.monotonic() - began > 1

    with pytest.raises(ResultQueryError, match="nobody waits"):
        run_select(results, ENDLESS[0], T, seconds=60, is_abandoned=is_abandoned)
    assert time.monotonic() - began < 20
    assert not any(map(exists, children))


def test_the_process_has_few_rights(
    results: Path, children: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", "a secret")
    seen: dict[str, str] = {}
    request = sql_query.ChildProcess.request

    def look(process: Any, header: Any, body: Any = b"", **options: Any) -> Any:
        answer = request(process, header, body, **options)
        for name in ("environ", "limits", "stat", "oom_score_adj"):
            seen[name] = Path(f"/proc/{process.process_id}/{name}").read_text()
        return answer

    monkeypatch.setattr(sql_query.ChildProcess, "request", look)
    run_select(results, "SELECT 1", T)
    assert "CANARY" not in seen["environ"]
    limits = {line[:25].strip(): line[26:].split() for line in seen["limits"].splitlines()}
    assert limits["Max file size"][:2] == ["0", "0"]
    assert limits["Max core file size"][:2] == ["0", "0"]
    assert 512 << 20 < int(limits["Max data size"][0]) < 1_200 << 20
    assert int(seen["stat"].rpartition(")")[2].split()[16]) >= min(os.nice(0) + 10, 19)
    assert seen["oom_score_adj"].strip() == "1000"


def test_a_row_and_an_answer_have_bounds(results: Path) -> None:
    with pytest.raises(ResultQueryError, match=r"a row of the answer has 20,000,00. bytes"):
        run_select(results, "SELECT repeat('x', 20000000)", T)
    lists = run_select(results, "SELECT range(100000) FROM range(50)", T)
    assert lists.cut and 10 <= len(lists.rows) <= 40
    deep = "SELECT " + "[" * (MAX_DEPTH + 2) + "1" + "]" * (MAX_DEPTH + 2)
    with pytest.raises(ResultQueryError, match=f"over {MAX_DEPTH} levels"):
        run_select(results, deep, T)


def test_values_pass_between_processes_as_they_are() -> None:
    values = (
        *(None, True, 1 << 100, 1.5, float("inf"), "é\ud800", b"\0\xff"),
        *(Decimal("1.50"), Decimal("NaN"), date(2026, 1, 2), clock(1, 2, 3, 4), timedelta(-1, 2)),
        *(datetime(2026, 1, 2, 3, 4, 5, 6), datetime(2026, 1, 2, tzinfo=UTC)),
        *([1, ["list", 2]], {"a": {1: None}}, (1, (2,)), []),
    )
    assert repr(decode_row(encode_row(values))) == repr(values)
    for broken in (b"1", b"[[1]]", b'[["nope", 1]]', b'[["decimal", "x"]]', b"[" * 100_000):
        with pytest.raises(ValueError):
            decode_row(broken)


def test_a_process_that_answers_nonsense_is_no_answer(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([({}, b""), ({"columns": ["a"], "cut": False}, bytearray(b'[["nope", 1]]'))])
    monkeypatch.setattr(sql_query.ChildProcess, "request", lambda *_, **__: next(answers))
    with pytest.raises(ResultQueryError, match="the rows of the answer cannot be read"):
        run_select(results, "SELECT 1", T)
