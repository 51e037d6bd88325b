"""Results by a URL's parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamer.core.durations import SECOND
from streamer.core.json.dump import dump_json
from streamer.engine.results.http_query import answer_query
from streamer.engine.results.layout import NoResultsError
from streamer.engine.results.query_model import ResultQueryError

from .kept import Row, T, keep, portion, store


def asked(directory: Path, **parameters: str) -> Any:
    given = {name.rstrip("_"): value for name, value in parameters.items()}
    return json.loads(dump_json(answer_query(directory, given, T)))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    keep(tmp_path, *(Row(f"k{n % 3}", T + n * 10 * SECOND, b'{"n":%d}' % n) for n in range(9)))
    return tmp_path


def test_results_come_page_by_page(results: Path) -> None:
    first = asked(results, limit="5")
    assert [one["content"]["n"] for one in first["results"]] == [0, 1, 2, 3, 4]
    second = asked(results, limit="5", after=first["next"])
    assert [one["content"]["n"] for one in second["results"]] == [5, 6, 7, 8]
    assert second["next"] is None


def test_key_and_times_choose(results: Path) -> None:
    assert [one["content"]["n"] for one in asked(results, key="k1")["results"]] == [1, 4, 7]
    found = asked(results, key="k1", from_="1700000020", to="2023-11-14T22:14:00Z")["results"]
    assert [one["content"]["n"] for one in found] == [4]
    assert found[0]["start"] == "2023-11-14T22:13:50Z"


def test_revisions_are_asked_for_by_name(tmp_path: Path) -> None:
    kept = store(tmp_path)
    for batch in range(3):
        kept.write(batch, [portion([Row("a", T, b"%d" % batch, emit="each")])], T)
    assert [one["revision"] for one in asked(tmp_path)["results"]] == [3]
    assert [one["revision"] for one in asked(tmp_path, revisions="all")["results"]] == [1, 2, 3]
    sql = "SELECT count(*) FROM results"
    assert asked(tmp_path, sql=sql)["rows"] == [[1]]
    assert asked(tmp_path, sql=sql, revisions="all")["rows"] == [[3]]


def test_sql_gives_columns_and_rows(results: Path) -> None:
    found = asked(results, sql="SELECT key, window_end FROM results ORDER BY 2", limit="2")
    assert found == {
        "columns": ["key", "window_end"],
        "rows": [["k0", "2023-11-14T22:13:20Z"], ["k1", "2023-11-14T22:13:30Z"]],
        "cut": True,
    }


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"keys": "a"}, "keys is not a parameter, expected key, from, to"),
        ({"limit": "many"}, "limit is 'many', expected a number"),
        ({"limit": "0"}, "limit is 0, expected 1 to 10000"),
        ({"limit": "-1"}, "limit is '-1', expected a number"),
        ({"limit": "9" * 5000}, "limit is '9{40}', expected a number"),
        ({"from_": "soon"}, "from is 'soon', expected a time"),
        ({"from_": "2", "to": "1"}, "no window lies between them"),
        ({"revisions": "some"}, "revisions is 'some', expected latest or all"),
        ({"after": "x"}, "is no place among results"),
        ({"sql": "SELECT 1", "key": "a"}, "leave out key"),
        ({"sql": "SELECT 1", "limit": "0"}, "limit is 0"),
        ({"sql": "DELETE FROM results"}, "expected a SELECT"),
    ],
)
def test_what_makes_no_sense_is_refused(
    results: Path, parameters: dict[str, str], problem: str
) -> None:
    with pytest.raises(ResultQueryError, match=problem):
        asked(results, **parameters)


def test_a_stream_without_results_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NoResultsError, match="there are no results"):
        asked(tmp_path)
