"""Results of windows are what the pipeline gives, by window and key, whatever it is made of."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamer.core.durations import SECOND
from streamer.core.timestamps import format_rfc3339, parse_rfc3339
from streamer.engine.driver.results_factory import open_store
from streamer.engine.report.result_frame import Frame, FrameKind
from streamer.engine.results.query import iterate_results
from streamer.engine.results.query_model import ResultQuery, WindowResult
from tests.engine.stream import Run, State, write_lines

T = 1_700_000_000  # seconds; a multiple of 10
RECIPE = Path(__file__).parents[3] / "configs" / "recipes" / "ksqldb_pageviews.yaml"
SUM = """
    - mapping: |
        root = if batch_index() == 0 {
          {"light": this.light, "n": json("n").from_all().sum()}
        } else { deleted() }
"""
BY_LIGHT = "- group_by_value: {value: '${! json(\"light\") }'}"
FORGETFUL = """
    - mapping: |
        meta = deleted()
        root = this
        root.kept = true
"""
SYSTEM = "system_window: {timestamp_mapping: root = this.ts, size: 10s, retention: 7d%s}"
EVENT = (
    "tumbling_window: {timestamp_mapping: root = this.ts, size: 10s, retention: 7d, "
    "end_of_input: keep%s}"
)
KEYED = ", key_mapping: root = this.light"


def config(buffer: str, processors: str) -> str:
    return f"""
input:
  file: {{paths: [cars.jsonl]}}
buffer:
  {buffer}
pipeline:
  processors:
    {processors}
spark: {{shards: 2, master: "local[2]"}}
"""


@pytest.fixture
def cars(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "cars.jsonl"
    path.touch()
    return path


def car(ts: float, light: Any = "a", n: int = 1) -> dict[str, Any]:
    return {"ts": ts, "light": light, "n": n}


class Keeping:
    """A stream that keeps its results."""

    def __init__(self, text: str, directory: Path, state: State | None = None) -> None:
        self.lines: list[str] = []
        self.run = Run(text, state)
        self.store = open_store(
            self.run.plan,
            directory,
            afresh=state is None,
            log=lambda *line: self.lines.append(line),
        )
        delivery = self.run.delivery
        delivery._sinks = replace(delivery._sinks, results=self.store)
        self.directory = directory / "results"

    def results(self, **asked: Any) -> list[WindowResult]:
        return list(iterate_results(self.directory, ResultQuery(**asked), (T + 3600) * SECOND))


def delivered(run: Run) -> list[Frame]:
    """Return the frames that are delivered from now on."""
    frames: list[Frame] = []
    deliver = run.delivery.deliver

    def noting(number: int, found: list[Frame]) -> None:
        frames.extend(found)
        deliver(number, found)

    run.delivery.deliver = noting  # type: ignore[method-assign]
    return frames


def documents(results: list[WindowResult]) -> list[Any]:
    return [json.loads(result.content) for result in results]


def windows(results: list[WindowResult]) -> dict[tuple[str | None, str], list[Any]]:
    found = defaultdict(list)
    for result in results:
        key = None if result.key is None else json.loads(result.key)
        found[key, format_rfc3339(result.end)[14:19]].append(json.loads(result.content))
    return dict(found)


CARS = [car(T + 1), car(T + 2, "b"), car(T + 3), car(T + 11), car(T + 12, "c", 5), car(T + 25)]
FOLDED = {
    ("a", "13:30"): [{"light": "a", "n": 2}],
    ("b", "13:30"): [{"light": "b", "n": 1}],
    ("a", "13:40"): [{"light": "a", "n": 1}],
    ("c", "13:40"): [{"light": "c", "n": 5}],
}


@pytest.mark.parametrize(
    ("buffer", "processors"),
    [
        (SYSTEM % "", BY_LIGHT + SUM),
        (SYSTEM % "", BY_LIGHT + SUM + FORGETFUL),
        (SYSTEM % "", BY_LIGHT + SUM + "    - split: {}\n"),
        (EVENT % "", BY_LIGHT + SUM),
        (EVENT % KEYED, SUM.strip()),
        (EVENT % KEYED, SUM.strip() + FORGETFUL),
        (EVENT % (KEYED + ", clock_scope: key"), SUM.strip()),
    ],
)
def test_each_window_and_key_has_what_the_pipeline_made_of_it(cars, tmp_path, buffer, processors):
    kept = Keeping(config(buffer, processors), tmp_path)
    write_lines(cars, CARS)
    for second in (5, 11, 21):
        kept.run.step((T + second) * SECOND)
    found = windows(kept.results())
    expected = {key: [dict(one) for one in documents] for key, documents in FOLDED.items()}
    if "meta = deleted()" in processors:
        expected = {key: [{**one, "kept": True} for one in ones] for key, ones in expected.items()}
    if "clock_scope" in buffer:
        # The keys b and c have had nothing that would close their windows.
        expected = {key: ones for key, ones in expected.items() if key[0] == "a"}
    assert found == expected
    printed = kept.run.printed()
    assert sorted(map(str, printed)) == sorted(map(str, documents(kept.results())))


def test_the_recipe_of_ksqldbs_page_views_answers_its_pull_query(tmp_path, monkeypatch):
    # SELECT * FROM pageviews_per_region WHERE regionid = 'Region_6'
    #   AND WINDOWSTART >= '2026-01-01T09:59:50' AND WINDOWEND <= '2026-01-01T10:00:40';
    monkeypatch.chdir(tmp_path)
    text = RECIPE.read_text().partition("\ntests:")[0] + "\n"
    text = text.replace("    emit: changes\n", "    emit: changes\n    end_of_input: keep\n")
    text += "input: {file: {paths: [views.jsonl]}}\n"
    views = tmp_path / "views.jsonl"
    views.touch()
    kept = Keeping(text, tmp_path)
    noon = parse_rfc3339("2026-01-01T10:00:00Z").ns
    for second in (5, 15, 25):
        at = format_rfc3339(noon + second * SECOND)
        view = {"viewtime": at, "gender": "Female"}
        write_lines(views, [{**view, "regionid": f"Region_{n}"} for n in (6, 7, 16)])
        kept.run.step(noon + second * SECOND)
    asked = {"since": noon - 10 * SECOND, "until": noon + 40 * SECOND}
    found = list(
        iterate_results(kept.directory, ResultQuery("Region_6", **asked), noon + 3600 * SECOND)
    )
    assert [(one["windowstart"], one["count"]) for one in documents(found)] == [
        (1767261590000, 2),
        (1767261600000, 3),
        (1767261610000, 2),
    ]
    assert [one.revision for one in found] == [2, 3, 2]
    table = list(iterate_results(kept.directory, ResultQuery(), noon + 3600 * SECOND))
    assert {one.key for one in table} == {'"Region_6"', '"Region_16"'}


def test_messages_of_a_window_without_a_key_are_its_parts_in_order(cars, tmp_path):
    kept = Keeping(config(SYSTEM % "", "- mapping: root.n = this.n"), tmp_path)
    write_lines(cars, [car(T + 1, n=1), car(T + 2, n=2), car(T + 3, n=3)])
    kept.run.step((T + 11) * SECOND)
    found = kept.results()
    assert [(one.part, one.key) for one in found] == [(0, None), (1, None), (2, None)]
    assert documents(found) == [{"n": 1}, {"n": 2}, {"n": 3}] == kept.run.printed()
    assert {(one.start, one.end) for one in found} == {(T * SECOND, (T + 10) * SECOND)}


def test_windows_parted_by_checks_keep_all_their_parts(cars, tmp_path):
    checks = "- group_by: [{check: this.n > 1, processors: []}]" + SUM
    kept = Keeping(config(SYSTEM % "", checks), tmp_path)
    write_lines(cars, [car(T + 1, n=1), car(T + 2, n=2), car(T + 3, n=3)])
    kept.run.step((T + 11) * SECOND)
    assert sorted(one["n"] for one in documents(kept.results())) == [1, 5]
    assert sorted(one["n"] for one in kept.run.printed()) == [1, 5]


def test_a_window_that_begins_before_all_times_is_kept_from_the_first_one_on(cars, tmp_path):
    first = -9_223_372_036  # s: the least time is 0.85 s before
    event = EVENT.replace("tumbling_window", "sliding_window") % ", mode: event"
    kept = Keeping(config(event, "- mapping: root.n = this.n"), tmp_path)
    frames = delivered(kept.run)
    write_lines(cars, [car(first)])
    kept.run.step((T + 5) * SECOND)
    assert kept.run.printed() == [{"n": 1}]
    assert FrameKind.RESULT in {frame.kind for frame in frames}


def test_what_the_mapping_deletes_is_no_result(cars, tmp_path):
    few = "- mapping: 'root = if batch_size() > 1 { this } else { deleted() }'"
    kept = Keeping(config(EVENT % KEYED, few), tmp_path)
    write_lines(cars, CARS)
    kept.run.step((T + 5) * SECOND)
    assert set(windows(kept.results())) == {("a", "13:30")}


def test_keys_are_told_apart_as_json_and_found_in_any_spelling(cars, tmp_path):
    kept = Keeping(config(EVENT % KEYED, "- mapping: root.n = this.n"), tmp_path)
    keys = [1, "1", 1.0, None, {"b": 1, "a": [2]}, "x"]
    write_lines(cars, [*(car(T + 1, key, n) for n, key in enumerate(keys)), car(T + 20)])
    kept.run.step((T + 5) * SECOND)
    assert documents(kept.results(key="1")) == [{"n": 1}, {"n": 0}, {"n": 2}]
    assert {one.key for one in kept.results(key="1")} == {"1", '"1"'}
    assert documents(kept.results(key="1.0")) == documents(kept.results(key="1"))
    assert documents(kept.results(key="null")) == [{"n": 3}]
    assert documents(kept.results(key='{"a": [2.0], "b": 1}')) == [{"n": 4}]
    assert documents(kept.results(key='"x"')) == documents(kept.results(key="x")) == [{"n": 5}]


@pytest.mark.parametrize("emit", ["changes", "each"])
def test_the_latest_revision_of_a_window_counts(cars, tmp_path, emit):
    kept = Keeping(config(EVENT % f"{KEYED}, emit: {emit}", SUM.strip()), tmp_path)
    for n in range(4):
        write_lines(cars, [car(T + n, n=1), car(T + n, "b", n=10)])
        kept.run.step((T + n) * SECOND)
    found = kept.results()
    assert windows(found) == {
        ("a", "13:30"): [{"light": "a", "n": 4}],
        ("b", "13:30"): [{"light": "b", "n": 40}],
    }
    assert {one.revision for one in found} == {4}
    every_one = kept.results(key="a", revisions=True)
    assert [one.revision for one in every_one] == [1, 2, 3, 4]
    assert [one["n"] for one in documents(every_one)] == [1, 2, 3, 4]
    assert len(kept.run.printed()) == 8


def test_messages_that_are_forwarded_do_not_replace_one_another(cars, tmp_path):
    kept = Keeping(
        config(EVENT % f"{KEYED}, emit: forward", "- mapping: root.n = this.n"), tmp_path
    )
    for n in range(3):
        write_lines(cars, [car(T + n, n=n)])
        kept.run.step((T + n) * SECOND)
    assert documents(kept.results()) == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_a_session_that_has_grown_takes_the_place_of_what_it_was(cars, tmp_path):
    session = (
        "session_window: {timestamp_mapping: root = this.ts, gap: 5s, retention: 7d, "
        "end_of_input: keep, emit: changes, allowed_lateness: 60s, key_mapping: root = this.light}"
    )
    kept = Keeping(config(session, SUM.strip()), tmp_path)
    for n, ts in enumerate((10, 20, 13, 16, 40)):
        write_lines(cars, [car(T + ts)])
        kept.run.step((T + n) * SECOND)
    found = kept.results()
    bounds = [(one.start // SECOND - T, one.end // SECOND - T) for one in found]
    assert bounds == [(10, 20), (40, 40)]
    assert [one["n"] for one in documents(found)] == [4, 1]
    assert len(kept.results(revisions=True)) == 5


def test_a_micro_batch_that_comes_again_is_there_once(cars, tmp_path):
    kept = Keeping(config(SYSTEM % "", BY_LIGHT + SUM), tmp_path)
    write_lines(cars, CARS)
    kept.run.step((T + 5) * SECOND)
    frames = delivered(kept.run)
    kept.run.step((T + 11) * SECOND)
    once = kept.results(revisions=True)
    assert len(once) == 2
    frames = list(frames)
    kept.run.delivery.deliver(1, frames)
    assert kept.results(revisions=True) == once
    # Another time it may have another time, and so give something else: that counts.
    kept.run.delivery.deliver(1, [one for one in frames if one.kind != FrameKind.RESULT])
    assert kept.results(revisions=True) == []


def test_a_restart_goes_on_with_the_results_that_there_are(cars, tmp_path):
    text = config(SYSTEM % "", BY_LIGHT + SUM)
    first = Keeping(text, tmp_path)
    write_lines(cars, CARS)
    first.run.step((T + 5) * SECOND)
    first.run.step((T + 11) * SECOND)
    second = Keeping(text, tmp_path, first.run.state)
    second.run.step((T + 21) * SECOND)
    assert windows(second.results()) == FOLDED


def test_a_stream_without_retention_sends_no_results(cars, tmp_path):
    buffer = SYSTEM.replace(", retention: 7d", "") % ""
    run = Run(config(buffer, BY_LIGHT + SUM))
    assert open_store(run.plan, tmp_path, afresh=True, log=print) is None
    write_lines(cars, CARS)
    run.step((T + 5) * SECOND)
    frames = delivered(run)
    run.step((T + 11) * SECOND)
    kinds = {frame.kind for frame in frames}
    assert FrameKind.RESULT not in kinds and kinds & {FrameKind.DATA, FrameKind.MULTI_PART}
    assert len(run.printed()) == 2
