"""Results over HTTP: by key and time, page by page, in SQL that reads nothing else."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from streamer.core.durations import SECOND
from streamer.service.api import result_downloads
from streamer.service.api import result_endpoints as endpoint
from tests.engine.results.kept import Row, T, keep, store
from tests.service.api.asking import Asking, asking
from tests.service.fleet.pretending import config_text

PATH = "/streams/a/results"


def deploy(server: Asking, *rows: Row) -> Path:
    assert server.ask("POST", "/streams/a", config_text("one")).status_code == 200
    directory = Path(server.service.manager.registry.get("a").directory) / "results"
    if rows:
        keep(directory, *rows)
    return directory


def test_results_are_found_by_key_and_time_and_page_by_page(tmp_path: Path) -> None:
    rows = [Row(f"k{n % 2}", T + n * 10 * SECOND, b'{"n":%d}' % n) for n in range(6)]
    with asking(tmp_path) as server:
        deploy(server, *rows)
        page = server.client.get(PATH, params={"key": "k1"})
        assert page.status_code == 200 and page.headers["content-type"] == "application/json"
        assert [one["content"] for one in page.json()["results"]] == [{"n": n} for n in (1, 3, 5)]
        asked = {"from": "1700000010", "to": "2023-11-14T22:14:00Z", "limit": "2"}
        first = server.client.get(PATH, params=asked).json()
        second = server.client.get(PATH, params={**asked, "after": first["next"]}).json()
        found = [*first["results"], *second["results"]]
        assert [one["content"]["n"] for one in found] == [2, 3, 4]
        assert second["next"] is None
        sql = {"sql": "SELECT key, count(*) AS n FROM results GROUP BY 1 ORDER BY 1"}
        assert server.client.get(PATH, params=sql).json() == {
            "columns": ["key", "n"],
            "rows": [["k0", 3], ["k1", 3]],
            "cut": False,
        }


def test_numbers_come_as_they_were_written(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        deploy(server, Row("a", T, b'{"n":123456789012345678901234567890}'))
        assert '"n":123456789012345678901234567890' in server.client.get(PATH).text


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        ("limit=x", 400, "limit is 'x', expected a number"),
        ("from=soon", 400, "from is 'soon', expected a time"),
        ("after=%00", 400, "is no place among results"),
        ("nope=1", 400, "nope is not a parameter"),
        ("sql=DROP%20VIEW%20results", 400, "expected a SELECT over results"),
        ("sql=SELECT%20*%20FROM%20read_text('/etc/passwd')", 400, "the statement cannot be run"),
        ("sql=SELECT%20*%20FROM%20glob('/*')", 400, "the statement cannot be run"),
        ("sql=%ff", 400, "the statement cannot be run"),
        ("key=%00%ff", 200, '"results":[]'),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_else_is_read(
    tmp_path: Path, query: str, code: int, text: str
) -> None:
    with asking(tmp_path) as server:
        directory = deploy(server, Row("a"))
        found = server.client.get(f"{PATH}?{query}")
        assert (found.status_code, text in found.text) == (code, True), found.text
        assert "root:" not in found.text and str(directory) not in found.text


def test_a_stream_that_keeps_none_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        directory = deploy(server)
        assert server.ask("GET", "/streams/b/results").text == "Stream not found\n"
        none = server.ask("GET", PATH)
        assert none.status_code == 404 and "the stream keeps no results" in none.text
        store(directory)
        assert server.ask("GET", PATH).json() == {"results": [], "next": None}
        (directory / "manifest.json").write_text("{")
        broken = server.ask("GET", PATH)
        assert broken.status_code == 502 and "cannot be read" in broken.text
        assert str(tmp_path) not in broken.text


def test_results_are_downloaded_within_bounds_in_three_formats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [Row(f"k{n % 2}", T + n * 10 * SECOND, b'{"n":%d}' % n) for n in range(6)]
    path = f"{PATH}/download"
    with asking(tmp_path) as server:
        directory = deploy(server, *rows)
        asked = {"format": "csv", "key": "k1", "order": "newest"}
        answer = server.client.get(path, params=asked)
        assert answer.headers["content-type"] == "text/csv; charset=utf-8; header=present"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert 'filename="a-results-' in answer.headers["content-disposition"]
        assert (answer.headers["x-results"], answer.headers["x-results-cut"]) == ("3", "false")
        lines = answer.text.splitlines()
        assert lines[0].startswith("key,start,end,") and '""n"":5' in lines[1] and len(lines) == 4
        asked = {"format": "jsonl", "limit": "2"}
        answer = server.client.get(path, params=asked)
        assert answer.headers["x-results-cut"] == "true" and answer.text.count("\n") == 2
        answer = server.client.get(path, params={"format": "parquet"})
        assert pq.read_table(io.BytesIO(answer.content)).num_rows == 6
        sql = "SELECT count(*) AS n FROM results"
        answer = server.client.get(path, params={"format": "csv", "sql": sql})
        assert answer.text == "n\n6\n"
        for query, code, text in (
            ("format=xlsx", 400, "format is 'xlsx', expected csv, jsonl, parquet"),
            ("limit=2000000", 400, "limit is 2000000, expected 1 to 1000000"),
            ("order=random", 400, "order is 'random', expected oldest or newest"),
            ("sql=SELEC", 400, "syntax error at or near"),
            ("sql=SELECT%201&order=newest", 400, "leave out order"),
        ):
            refused = server.client.get(f"{path}?{query}")
            assert (refused.status_code, text in refused.text) == (code, True), refused.text
            assert str(directory) not in refused.text
        # Those who were refused, and those whose files were sent, have given their places back.
        downloads = server.api.results._downloads
        assert not any(one.is_open for one in list(downloads._open))
        for _ in range(result_downloads.MAX_CONCURRENT_EXPORTS):
            assert downloads._export_slots.acquire(blocking=False)
        busy = server.client.get(path)
        assert busy.status_code == 503 and "Too many downloads" in busy.text
        assert server.ask("GET", "/streams/nope/results/download").status_code == 404


def test_few_are_answered_at_a_time_and_the_others_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "_ACQUIRE_TIMEOUT_S", 0.05)
    with asking(tmp_path) as server:
        deploy(server, Row("a"))
        places = server.api.results._query_slots
        for _ in range(endpoint.MAX_CONCURRENT_QUERIES):
            assert places.acquire(timeout=0)
        busy = server.client.get(PATH)
        assert (busy.status_code, busy.text) == (
            503,
            "Error: Too many queries run at the moment; try again.\n",
        )
        # Whoever asks for something else is answered meanwhile.
        assert server.client.get("/ping").text == "pong"
        places.release()
        assert server.client.get(PATH).status_code == 200
        # Who is refused gives the place back, too.
        for _ in range(endpoint.MAX_CONCURRENT_QUERIES + 1):
            assert server.client.get(f"{PATH}?limit=x").status_code == 400
