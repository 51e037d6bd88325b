"""What is long is cut for those who ask for that, and is there as a whole all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamer.core.durations import SECOND
from streamer.service.api.truncation import truncate_line, truncate_result
from streamer.service.fleet.log_tail import MAX_CHARACTERS, MAX_LINES, LogTail
from tests.engine.results.kept import Row, T, keep
from tests.service.api.asking import asking
from tests.service.fleet.pretending import config_text


def test_long_values_are_cut_and_the_length_is_said() -> None:
    result = {"key": "k" * 9, "start": "s" * 99, "content": {"a": "x" * 9}, "metadata": None}
    cut = truncate_result({**result, "error": "e" * 8, "revision": 1}, 8)
    assert cut == {
        **{"key": "k" * 8, "start": "s" * 99, "content": '{"a":"xx', "metadata": None},
        **{"error": "e" * 8, "revision": 1, "cut": {"key": 9, "content": 17}},
    }
    assert truncate_result(result, 100) == result


def test_long_lines_and_fields_are_cut_and_many_fields_left_out() -> None:
    line = {"number": 1, "msg": "m" * 9, "fields": {"n" * 9: 1, "v": "v" * 9, "o": {"a": 1}}}
    assert truncate_line(line, 8) == {
        **{"number": 1, "msg": "m" * 8, "fields": {"n" * 8: 1, "v": "v" * 8, "o": {"a": 1}}},
        "cut": {"msg": 9, f"fields.{'n' * 8}": 9, "fields.v": 9},
    }
    many = truncate_line({"msg": "m", "fields": {f"f{n}": n for n in range(200)}}, 8)
    assert len(many["fields"]) == 100 and many["cut"] == {"fields": 200}


def test_the_lines_that_are_kept_have_a_bound_in_number_and_in_size() -> None:
    lines = LogTail()
    for number in range(2 * MAX_LINES):
        lines.add(0, "INFO", f"line {number}", {})
    assert [one.number for one in lines.lines_after(0)] == list(
        range(MAX_LINES + 1, 2 * MAX_LINES + 1)
    )
    for _ in range(20):
        lines.add(0, "INFO", "x" * (MAX_CHARACTERS // 8), {"v": "y" * 100})
    kept = lines.lines_after(0)
    assert 5 <= len(kept) <= 8 and sum(len(one.text) for one in kept) <= MAX_CHARACTERS
    lines.add(0, "INFO", "z" * (MAX_CHARACTERS + 1), {"v": 1})
    (*_, last) = lines.lines_after(0)
    assert last.text.endswith("… (too long to be kept)") and len(last.text) < 11_000
    lines.add(0, "INFO", "short", {})
    assert [one.text for one in lines.lines_after(0)][-1] == "short"


def test_results_and_lines_are_got_whole_one_by_one(tmp_path: Path) -> None:
    rows = [Row(f"k{n}", T + n * SECOND, b'{"v":"%s","n":1e400}' % (b"x" * 50)) for n in range(3)]
    with asking(tmp_path) as server:
        assert server.ask("POST", "/streams/a", config_text("one")).status_code == 200
        managed = server.service.manager.registry.get("a")
        keep(Path(managed.directory) / "results", *rows)
        path = "/streams/a/results"
        page = server.client.get(path, params={"cut": "10"}).json()["results"]
        assert [one["content"] for one in page] == ['{"n":1e400'] * 3
        assert [one["cut"] for one in page] == [{"content": 68}] * 3
        one = server.client.get(path, params={"only": "1"}).text
        assert json.loads(one)["results"][0]["key"] == "k1" and '"n":1e400' in one
        assert server.client.get(path, params={"only": "9"}).json()["results"] == []
        managed.log("INFO", "m" * 50, {})
        logs = server.client.get("/streams/a/logs", params={"cut": "10", "lines": "1"}).json()
        assert (logs[0]["msg"], logs[0]["cut"]) == ("m" * 10, {"msg": 50})
        whole = server.client.get("/streams/a/logs", params={"number": logs[0]["number"]}).json()
        assert [line["msg"] for line in whole] == ["m" * 50]


@pytest.mark.parametrize(
    "path", ["results?only=x", "results?cut=-1", "logs?cut=x", "logs?number=1.5"]
)
def test_what_is_no_number_is_refused(tmp_path: Path, path: str) -> None:
    with asking(tmp_path) as server:
        assert server.ask("POST", "/streams/a", config_text("one")).status_code == 200
        found = server.client.get(f"/streams/a/{path}")
        assert found.status_code == 400 and "expected a number" in found.text
