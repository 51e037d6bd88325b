"""The history of figures over HTTP: of one of many streams, and of the only one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from streamer.engine.report.figure_history import FIGURES, BatchFigures
from streamer.service.monitoring.history_file import FILE_NAME, save_history
from streamer.service.monitoring.stream_figures import MarkerKind, StreamFigures
from tests.service.api.asking import asking
from tests.service.fleet.pretending import GENERATE
from tests.service.serving import serving

SECRET = """
input: { generate: { mapping: root = 1 } }
output:
  http_client:
    url: http://localhost:1/
    basic_auth: { enabled: true, username: ada, password: very-secret-word }
"""


def feed(figures: StreamFigures) -> None:
    """Let figures have 50 messages a second for the last five minutes."""
    now, output = time.time(), "root.output"
    figures.node_order = {"root.input": 0, output: 1}
    names = ("open_windows", "kafka_lag:orders/0")
    for at in range(-300, 0, 2):
        amounts = {"in": 100.0, "out": 100.0, f"busy:{output}": 1.6, "busy:root.gone": 1.0}
        since = now + at
        figures.history.record(
            BatchFigures(since, since + 2, since + 2, amounts, dict.fromkeys(names, 7.0))
        )
        figures.rates.add(since, since + 2, {"in": at * 50 + 15_100, "out": at * 50 + 15_100})


def test_the_history_of_a_stream_has_figures_nodes_partitions_and_markers(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        server.ask("POST", "/streams/a", SECRET)
        managed = server.service.manager.registry.get("a")
        feed(managed.figures)
        managed.log("ERROR", "refused: very-secret-word", {})
        document: Any = server.ask("GET", "/streams/a/history?from=4m").json()
        assert document["step"] == 5
        assert len(document["figures"]["in"]) == 49
        assert {one for one in document["figures"]["in"] if one is not None} == {50}
        assert document["figures"]["open_windows"][5] == 7
        assert list(document["nodes"]) == ["root.output"]
        assert document["nodes"]["root.output"]["busy"][5] == 0.8
        assert document["partitions"]["orders/0"][5] == 7
        assert [one["kind"] for one in document["markers"]] == ["error"]
        assert "very-secret-word" not in document["markers"][0]["text"]
        hour: Any = server.ask("GET", "/streams/a/history?from=1h&figures=out").json()
        assert (hour["step"], list(hour["figures"])) == (20, ["out"])
        assert hour["nodes"] == hour["partitions"] == {}


def test_a_stream_that_is_paused_has_the_history_of_before_the_service_started(
    tmp_path: Path,
) -> None:
    with asking(tmp_path) as server:
        server.ask("POST", "/streams/a", GENERATE)
        assert server.ask("POST", "/streams/a/pause").status_code == 200
        managed = server.service.manager.registry.get("a")
        before = StreamFigures()
        feed(before)
        directory = Path(managed.directory)
        (directory / "streamer.json").write_text('{"identity": "mine"}')
        save_history(directory / FILE_NAME, "mine", before)
        document = server.ask("GET", "/streams/a/history?from=1m&figures=in").json()
        assert document["figures"]["in"][3] == 50


def test_what_is_no_time_and_what_is_no_figure_is_refused(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        server.ask("POST", "/streams/a", GENERATE)
        for query, words in (
            ("from=soon", "from is 'soon'; expected a duration such as 15m"),
            ("figures=in,speed", "figures has 'speed'; expected some of in, out"),
        ):
            answer = server.ask("GET", f"/streams/a/history?{query}")
            assert answer.status_code == 400 and words in answer.text
        assert server.ask("GET", "/streams/b/history").status_code == 404
        assert server.ask("GET", "/streams?history=soon").status_code == 400
        at = "2026-01-02T15:04:05Z"
        assert server.ask("GET", f"/streams/a/history?from={at}").json()["step"] == 20


def test_lists_and_components_tell_the_same_rates(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        server.ask("POST", "/streams/a", GENERATE)
        row = server.ask("GET", "/streams").json()["a"]
        assert row["in_rate"] is None and "history" not in row
        feed(server.service.manager.registry.get("a").figures)
        row = server.ask("GET", "/streams?history=1m").json()["a"]
        assert row["in_rate"] == row["out_rate"] == pytest.approx(50, abs=0.1)
        assert row["history"]["figures"]["in"][3] == 50
        assert set(row["history"]["figures"]) == {"in", "out"}
        assert server.ask("GET", "/streams/a/progress").json()["in_rate"] == row["in_rate"]
        [output] = [
            one
            for one in server.ask("GET", "/streams/a/components").json()["components"]
            if one["path"] == "root.output"
        ]
        assert output["load"]["busy"] == pytest.approx(0.8) and output["load"]["holds"]


def test_the_server_of_one_stream_has_it_too() -> None:
    with serving() as server:
        feed(server.view.figures)
        server.view.figures.mark(MarkerKind.DEPLOY)
        document = server.json("/history?from=1m")
        assert document["figures"]["in"][3] == 50
        assert [one["kind"] for one in document["markers"]] == ["deploy"]
        assert server.get("/history?from=x")[0] == 400
        assert server.get("/benthos/history")[0] == 200


def test_all_figures_are_in_the_description_of_the_api(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        paths = server.ask("GET", "/openapi.json").json()["paths"]
        parameters = paths["/streams/{id}/history"]["get"]["parameters"]
        [figures] = [one for one in parameters if one["name"] == "figures"]
        assert all(f"`{one.name}`" in figures["description"] for one in FIGURES)
