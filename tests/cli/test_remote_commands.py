"""The commands that ask a service, against its API on pretended streams."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer.cli.deploy import _explain_timeout
from streamer.cli.main import invoke
from streamer.cli.remote_status import _format_lag
from streamer.connectors.locations.location_files import LocationFiles
from streamer.core.permissions import ALL
from tests.connectors.locations.conftest import run_s3
from tests.engine.results.kept import Row, T, keep
from tests.service.api.asking import Asking, asking
from tests.service.fleet.pretending import GENERATE, Stage, config_text


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    (tmp_path / "one.yaml").write_text(config_text("one"))
    (tmp_path / "wrong.yaml").write_text("inptu: {}")
    (tmp_path / "bad.yaml").write_text(config_text("bad"))
    with asking(tmp_path / "c", stage=Stage(fails={"bad"}, breaks={"broken"})) as served:
        monkeypatch.setenv("STREAMER_URL", served.url)
        monkeypatch.chdir(tmp_path)
        yield served


Captured = pytest.CaptureFixture[str]


def test_a_config_is_deployed_and_deployed_again(
    server: Asking, tmp_path: Path, capsys: Captured
) -> None:
    assert invoke(["deploy", "one.yaml"]) == 0
    said = capsys.readouterr()
    assert said.out == "created one, revision 1\n"
    assert said.err.startswith("creating one …\nrunning")
    (tmp_path / "one.yaml").write_text(config_text("two"))
    assert invoke(["deploy", "one.yaml", "--rollback-on-failure", "--timeout", "3s"]) == 0
    said = capsys.readouterr()
    assert "updated one, revision 2: in place\n" in said.out
    assert "pipeline.processors.0.mapping" in said.out and '"two"' in said.out
    assert invoke(["deploy", "one.yaml", "--id", "other", "--wait", "0"]) == 0
    assert set(server.stage.on) == {"one", "other"}


def test_a_config_in_a_store_is_deployed(
    server: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    with run_s3(tmp_path) as store:
        for name, text in store.environ.items():
            monkeypatch.setenv(name, text)
        root, files = store.make_root(), LocationFiles(ALL)
        for number in (1, 2):
            files.put(f"{root}cars.yaml", config_text(f"text {number}").encode())
            assert invoke(["deploy", f"{root}cars.yaml"]) == 0
        said = capsys.readouterr().out
        assert said.startswith("created cars, revision 1\nupdated cars, revision 2: in place\n")
        assert '"text 2"' in said and set(server.stage.on) == {"cars"}
        assert invoke(["deploy", f"{root}none.yaml"]) == 1
        assert "none.yaml" in capsys.readouterr().err


def test_what_is_wrong_is_said_with_its_place(server: Asking, capsys: Captured) -> None:
    assert invoke(["deploy", "wrong.yaml"]) == 1
    assert "wrong.yaml(1,1) field inptu not recognised" in capsys.readouterr().err
    assert invoke(["deploy", "bad.yaml"]) == 1
    assert "error: it cannot be started" in capsys.readouterr().err
    assert invoke(["pause", "nope"]) == 1
    assert "there is no stream 'nope'; `streamer list-streams` shows" in capsys.readouterr().err
    assert invoke(["pause", "nope", "--timeout", "soon"]) != 0
    assert "soon" in capsys.readouterr().err


def test_a_stream_that_breaks_at_once_is_no_success(
    server: Asking, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "broken.yaml").write_text(config_text("broken"))
    assert invoke(["deploy", "broken.yaml"]) == 1
    assert "broken has failed: it broke" in capsys.readouterr().err


def test_a_change_that_loses_windows_waits_to_be_asked_for(
    server: Asking, tmp_path: Path, capsys: Captured
) -> None:
    text = GENERATE + "buffer: { system_window: { timestamp_mapping: root = now(), size: %s } }\n"
    (tmp_path / "w.yaml").write_text(text % "10s")
    assert invoke(["deploy", "w.yaml"]) == 0
    (tmp_path / "w.yaml").write_text(text % "20s")
    assert invoke(["deploy", "w.yaml"]) == 1
    assert "--on-reset drain" in capsys.readouterr().err
    assert invoke(["deploy", "w.yaml", "--on-reset", "discard"]) == 0
    assert "revision 2: reset" in capsys.readouterr().out


def test_streams_are_listed_paused_resumed_and_rolled_back(
    server: Asking, tmp_path: Path, capsys: Captured
) -> None:
    invoke(["deploy", "one.yaml"])
    (tmp_path / "one.yaml").write_text(config_text("two"))
    invoke(["deploy", "one.yaml"])
    capsys.readouterr()
    assert invoke(["pause", "one"]) == 0
    assert invoke(["list-streams"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "paused one"
    head = "ID STATE UPTIME MESSAGES IN/S OUT/S LAG WINDOWS REVISION SOURCE"
    assert out[1].split() == head.split()
    assert out[2].split()[:2] == ["one", "paused"] and out[2].split()[-2:] == ["2", "api"]
    assert invoke(["resume", "one"]) == 0
    assert invoke(["rollback", "one"]) == 0
    assert "rolled back one, revision 3" in capsys.readouterr().out
    assert '"one"' in server.stage.on["one"]
    assert invoke(["rollback", "one", "9"]) == 1
    assert "there is no revision 9" in capsys.readouterr().err
    assert invoke(["list-streams", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["one"]["active"] is True


def test_a_lag_names_the_partition_in_which_most_messages_wait() -> None:
    worst = {"topic": "orders", "partition": "3", "lag": 900}
    assert _format_lag({"kafka_lag": 1200, "kafka_lag_worst": worst}) == "1,200 (orders/3: 900)"
    assert _format_lag({"kafka_lag": 0, "kafka_lag_worst": worst}) == "0"
    assert _format_lag({"kafka_lag": None, "backlog": 12}) == "12"
    assert _format_lag({}) == "–"


def test_windows_and_logs_of_a_stream_are_shown(server: Asking, capsys: Captured) -> None:
    invoke(["deploy", "one.yaml"])
    server.service.manager.registry.get("one").log("WARN", "look here", {"n": 1})
    capsys.readouterr()
    assert invoke(["windows", "one"]) == 0
    assert "one has no windows, or does not run" in capsys.readouterr().err
    assert invoke(["logs", "one", "-n", "1"]) == 0
    assert capsys.readouterr().out.endswith("WARN look here n=1\n")


def test_who_asks_must_be_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    digest = base64.b64encode(hashlib.sha256(b"t0ken").digest()).decode()
    http = f"bearer_auth: {{ enabled: true, tokens: [ {{ name: ci, token_hash: {digest} }} ] }}"
    with asking(tmp_path, http) as served:
        monkeypatch.setenv("STREAMER_URL", served.url)
        assert invoke(["list-streams"]) == 1
        assert "give --token or --user" in capsys.readouterr().err
        assert invoke(["list-streams", "--user", "ann:no"]) == 1
        assert "does not take what --user" in capsys.readouterr().err
        monkeypatch.setenv("STREAMER_TOKEN", "t0ken")
        assert invoke(["list-streams"]) == 0


def test_a_first_micro_batch_that_takes_long_is_no_failure_of_the_stream() -> None:
    progress = {"state": "running", "reason": "", "waits_for": "the first micro-batch: 5 messages"}
    text = _explain_timeout("lights", 30.0, progress)
    assert text.startswith(
        "lights is deployed and running, and has delivered nothing within 30 s: it waits for the "
        "first micro-batch: 5 messages."
    )
    assert "give --wait more time" in text


def test_results_of_a_stream_of_a_service_are_queried(server: Asking, capsys: Captured) -> None:
    assert invoke(["deploy", "one.yaml"]) == 0
    kept = Path(server.service.manager.registry.get("one").directory) / "results"
    keep(kept, *(Row("a", T + n * 10**9, b'{"n":%d}' % n) for n in range(3)))
    capsys.readouterr()
    assert invoke(["query", "--stream", "one", "--order", "newest", "--limit", "2"]) == 0
    said = capsys.readouterr()
    assert [line.split()[-1] for line in said.out.splitlines()] == ["content", '{"n":2}', '{"n":1}']
    assert "there is more; these are the first 2" in said.err
    assert invoke(["query", "--stream", "one", "--format", "csv", "--key", "a"]) == 0
    assert capsys.readouterr().out.count('""n""') == 3
    assert invoke(["query", "--stream", "one", "--sql", "SELECT count(*) AS c FROM results"]) == 0
    assert capsys.readouterr().out.split() == ["c", "3"]
    # The same question of the checkpoint itself.
    assert invoke(["query", str(kept.parent), "--order", "newest", "--limit", "1"]) == 0
    assert '{"n":2}' in capsys.readouterr().out
    assert invoke(["query", "--stream", "one", "--sql", "SELEC"]) == 1
    assert "syntax error at or near" in capsys.readouterr().err
    assert invoke(["query", "one.yaml", "--stream", "one"]) != 0
