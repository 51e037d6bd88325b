"""Results as files: the same rows in each format, within bounds."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamer.core.durations import SECOND
from streamer.engine.results import exports
from streamer.engine.results.exports import ExportSummary, export_results, export_table
from streamer.engine.results.query import find_results
from streamer.engine.results.query_model import ResultPage, ResultQuery, ResultQueryError
from streamer.engine.results.sql_query import run_select

from .kept import Row, T, keep

ROWS = (
    Row('ä,"b"', T, b'{"n": 1.0, "text": "a\nb"}'.replace(b"\n", b"\\n")),
    Row([1, "x"], T + SECOND, b"\xff\xfe", metadata='{"topic":"t"}', error="it failed"),
    Row(None, T + 2 * SECOND + 1, b"plain"),
)


def export(directory: Path, form: str, **asked: Any) -> tuple[bytes, ExportSummary]:
    out = io.BytesIO()
    query = replace(ResultQuery(limit=exports.MAX_EXPORT_RESULTS), **asked)
    summary = export_results(out, form, query, lambda page: find_results(directory, page, T))
    return out.getvalue(), summary


def test_each_format_has_the_same_results(tmp_path: Path) -> None:
    keep(tmp_path, *ROWS)
    body, summary = export(tmp_path, "csv")
    assert summary == ExportSummary(3, False)
    first, second, third = csv.DictReader(io.StringIO(body.decode()))
    assert (first["key"], first["content"]) == ('ä,"b"', '{"n": 1.0, "text": "a\\nb"}')
    assert (second["key"], second["content_base64"]) == ('[1,"x"]', "//4=")
    assert (second["metadata"], second["error"]) == ('{"topic":"t"}', "it failed")
    assert (third["key"], third["end"]) == ("", "2023-11-14T22:13:22.000000001Z")
    lines = [json.loads(line) for line in export(tmp_path, "jsonl")[0].splitlines()]
    assert [line["key"] for line in lines] == ['ä,"b"', [1, "x"], None]
    assert lines[0]["content"] == {"n": 1.0, "text": "a\nb"}
    table = pq.read_table(io.BytesIO(export(tmp_path, "parquet")[0]))
    assert table.column("key").to_pylist() == ['ä,"b"', '[1,"x"]', None]
    assert table.column("end").cast("int64").to_pylist() == [row.end for row in ROWS]
    assert table.column("content").to_pylist()[2] == "plain"
    assert table.column("content_bytes").to_pylist() == [None, b"\xff\xfe", None]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_is_cut_at_its_bounds_and_says_so(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(tmp_path, *(Row("a", T + n, b'{"n":%d}' % n) for n in range(9)))
    monkeypatch.setattr(exports, "MAX_RESULTS", 2)
    assert export(tmp_path, form)[1] == ExportSummary(9, False)
    assert export(tmp_path, form, limit=5)[1] == ExportSummary(5, True)
    monkeypatch.setattr(exports, "MAX_EXPORT_BYTES", 1)
    body, summary = export(tmp_path, form)
    assert summary == ExportSummary(2, True)
    if form == "parquet":
        assert pq.read_table(io.BytesIO(body)).num_rows == 2
    monkeypatch.undo()
    times = iter([0.0, 61.0])
    out = io.BytesIO()
    query = ResultQuery(limit=9)
    late = export_results(
        out,
        form,
        query,
        lambda page: find_results(tmp_path, replace(page, limit=4), T),
        lambda: next(times),
    )
    assert late == ExportSummary(4, True)
    with pytest.raises(ResultQueryError, match="limit is 0, expected 1 to 1000000"):
        export(tmp_path, form, limit=0)


def test_no_results_are_a_file_without_rows(tmp_path: Path) -> None:
    keep(tmp_path, Row("a"))
    body, summary = export(tmp_path, "parquet", key="b")
    assert summary == ExportSummary(0, False)
    assert pq.read_table(io.BytesIO(body)).num_rows == 0
    assert export(tmp_path, "csv", key="b")[0].count(b"\n") == 1
    assert export(tmp_path, "jsonl", key="b")[0] == b""


def test_an_answer_in_sql_is_a_file_whatever_its_columns(tmp_path: Path) -> None:
    keep(tmp_path, *ROWS)
    sql = (
        "SELECT key, key, revision, window_end, 1.5::DECIMAL(4,2) AS d, "
        "{'a': 1} AS s, 170141183460469231731687303715884105727::HUGEINT AS h FROM results"
    )
    answer = run_select(tmp_path, sql, T)
    out = io.BytesIO()
    assert export_table(out, "parquet", answer) == ExportSummary(3, False)
    table = pq.read_table(out)
    assert table.num_rows == 3 and len(set(table.column_names)) == 7
    for form, begins in (("csv", b"key,key"), ("jsonl", b'{"d":1.5,')):
        out = io.BytesIO()
        export_table(out, form, answer)
        assert out.getvalue().startswith(begins)
    empty = run_select(tmp_path, "SELECT key FROM results WHERE false", T)
    out = io.BytesIO()
    assert export_table(out, "parquet", empty) == ExportSummary(0, False)


def test_a_page_without_results_ends_a_file() -> None:
    out = io.BytesIO()
    summary = export_results(out, "csv", ResultQuery(), lambda page: ResultPage(()))
    assert summary == ExportSummary(0, False)
