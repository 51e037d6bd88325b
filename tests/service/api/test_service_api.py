"""The service's own page over HTTP: facts, log and settings, without secrets."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from streamer import __version__
from streamer.core.durations import SECOND
from streamer.engine.report.latency import LatencyHistogram
from streamer.engine.report.stream_metrics import Snapshot
from streamer.service.fleet.service_facts import CheckpointSizes
from streamer.service.fleet.service_log import ServiceLog
from streamer.service.monitoring.stream_view import StreamState
from tests.service.api.asking import asking
from tests.service.fleet.pretending import Stage, config_text

TOKEN = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
HTTP = f"bearer_auth: {{ enabled: true, tokens: [ {{ name: ci, token_hash: '{TOKEN}' }} ] }}"


def busy(stream_id: str, polls: int) -> StreamState:
    """A stream that spends its time in micro-batches, if it is called so."""
    times = LatencyHistogram()
    if stream_id == "busy":
        times.add(3 * SECOND, [(900, 1)], 0.0)
    delivered = time.time() - 7
    return StreamState(
        Snapshot(messages=7, batch=polls),
        {},
        times={("batch_duration_seconds", ()): times.times(0.0)},
        last_delivery=delivered,
    )


def test_the_service_tells_what_it_is_and_what_its_streams_cost(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("inptu: {}\n")
    with asking(tmp_path / "c", stage=Stage(now=busy), files={}) as server:
        for name in ("busy", "idle"):
            assert server.ask("POST", f"/streams/{name}", config_text(name)).status_code == 200
        registry = server.service.manager.registry
        registry.refused_files.refuse(
            "bad", str(bad), ["(1,1) inptu not recognised"], is_change=False
        )
        found = server.ask("GET", "/console/service").json()
        assert found["version"] == __version__ and found["python"] and found["spark"]
        # There is no Spark here, and nothing is said of it.
        assert found["java"] is None and found["executors"] is None and found["heap_used"] is None
        assert found["host"]["pid"] == os.getpid() and found["host"]["cores"] >= 1
        assert 0 <= found["uptime"] < 600
        first, second = found["streams"]
        assert (first["id"], first["batch_seconds"]) == ("busy", 3.0) and first["batch_share"] > 0
        assert first["condition"] == server.ask("GET", "/streams/busy").json()["condition"]["name"]
        assert (second["id"], second["batches"]) == ("idle", 0)
        assert second["batch_seconds"] is None and second["batch_share"] is None
        one = found["checkpoints"]["streams"][0]
        assert one["id"] == "busy" and one["bytes"] >= 0 and 6 < one["age"] < 60
        [refused] = found["refused_files"]
        assert (refused["id"], refused["file"]) == ("bad", str(bad))
        assert server.ask("GET", "/console/service/logs?after=x").status_code == 400


def test_it_shows_no_secret_and_nobody_who_is_not_known_sees_it(tmp_path: Path) -> None:
    sections = "metrics: { prometheus: { push_url: 'http://u:push-password@localhost:1/' } }\n"
    with asking(tmp_path, HTTP, sections=sections) as server:
        for path in ("/console/service", "/console/service/logs"):
            assert server.ask("GET", path).status_code == 401
        answer = server.ask("GET", "/console/service", Authorization="Bearer abc")
        assert answer.status_code == 200
        assert answer.json()["settings"]["http"]["bearer_auth"]["enabled"] is True
        assert TOKEN not in answer.text and "push-password" not in answer.text
    with asking(tmp_path / "no", enabled=False) as server:
        assert server.ask("GET", "/console/service").status_code == 404


def test_its_log_has_its_own_lines_without_secrets() -> None:
    written: list[Any] = []
    log = ServiceLog(lambda *line: written.append(line), {"hush-hush": "!!!"}, lambda: 5)
    log("INFO", "it is hush-hush", {"path": "hush-hush/x"})
    log("ERROR", "of a stream", {"stream": "a"})
    log("DEBUG", "fine", {})
    [line] = log.tail.lines_after(0)
    assert (line.text, line.fields["path"], line.time) == ("it is !!!", "!!!/x", 5)
    assert len(written) == 3


def test_the_size_of_a_checkpoint_is_measured_and_its_newest_commit_found(tmp_path: Path) -> None:
    with asking(tmp_path / "c", stage=Stage(fails={"broken"})) as server:
        assert server.ask("POST", "/streams/a", config_text("one")).status_code == 200
        managed = server.service.manager.registry.get("a")
        managed.view.set_running(lambda: StreamState(Snapshot(), {}))
        commits = Path(managed.directory) / "spark-2" / "commits"
        commits.mkdir(parents=True)
        (commits / "0").write_bytes(b"x" * 1000)
        os.utime(commits, (1_700_000_000, 1_700_000_000))
        sizes = CheckpointSizes(lambda: 1_700_000_060.0)
        [one] = sizes.describe({"a": managed}, "/somewhere")
        assert one["bytes"] == 1000 and one["age"] == 60.0
        assert one["last_commit"] == "2023-11-14T22:13:20Z"
        # Of what is elsewhere this machine has a part only.
        [one] = CheckpointSizes().describe({"a": managed}, "s3a://bucket/x")
        assert one["bytes"] is None and one["age"] is None


def test_labels_group_streams_outlive_a_start_and_go_with_their_stream(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        assert server.ask("POST", "/streams/a", config_text("one")).status_code == 200
        runs = len(server.stage.started)
        path = "/streams/a/labels"
        assert server.ask("GET", path).json() == {}
        sent = {"team": "payments", "tier": 1, "critical": True, "owner/x": ""}
        kept = {"critical": "true", "owner/x": "", "team": "payments", "tier": "1"}
        assert server.ask("PUT", path, sent).json() == kept
        assert server.ask("GET", "/streams").json()["a"]["labels"] == kept
        for body, text in (
            ("[1]", "labels are no object"),
            ({"a b": "x"}, "the label's name is 'a b', expected letters"),
            ({"a": "<b>"}, "the label a is '<b>', expected letters"),
            ({"a": {}}, "the label a is '{}'"),
            ({f"n{n}": "" for n in range(21)}, "there are 21 labels, expected 20 at most"),
        ):
            refused = server.ask("PUT", path, body)
            assert (refused.status_code, text in refused.text) == (400, True), refused.text
        assert server.ask("PUT", "/streams/nope/labels", {}).status_code == 404
        assert server.ask("GET", path).json() == kept
        assert len(server.stage.started) == runs, "the stream was touched"
    with asking(tmp_path) as server:
        assert server.ask("GET", "/streams/a/labels").json() == kept
        assert server.ask("DELETE", "/streams/a").status_code == 200
        assert server.ask("POST", "/streams/a", config_text("one")).status_code == 200
        assert server.ask("GET", "/streams/a/labels").json() == {}
