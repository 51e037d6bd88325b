"""Who decides about a canary, and what may have one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer.config import parse_config
from streamer.service.fleet.api_permissions import ApiPermissions
from streamer.service.run.canary_run import Outcome
from tests.service.api.asking import Asking, asking
from tests.service.fleet.pretended_canary import PretendedCanaryRun, pretend_canaries

PATH = "/streams/counts/canary"
CONFIG = """
input: { generate: { interval: 1s, mapping: 'root = {"at": now()}' } }
buffer: { tumbling_window: { timestamp_mapping: root = this.at, size: 1s } }
pipeline: { processors: [ { mapping: 'root = "one"' } ] }
output: { http_client: { url: 'http://ada:url-password@127.0.0.1:9/' } }
"""
CHANGED = CONFIG.replace("one", "two")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    pretend_canaries(monkeypatch)
    with asking(tmp_path / "state") as found:
        assert found.ask("POST", "/streams/counts", CONFIG).status_code == 200
        yield found


def begin(server: Asking, query: str = "", config: str = CHANGED) -> PretendedCanaryRun:
    answer = server.ask("POST", f"{PATH}?{query}", config)
    assert answer.status_code == 200, answer.text
    return PretendedCanaryRun.newest


def state(server: Asking) -> str:
    return str(server.ask("GET", PATH).json()["canary"]["state"])


def revision(server: Asking) -> int:
    return int(server.ask("GET", "/streams/counts").json()["revision"])


def test_a_rule_promotes_what_is_alike_and_drops_what_is_not(server: Asking) -> None:
    run = begin(server, "windows=3&promote=auto")
    run.compare(3, different=1)
    run.end(Outcome.DIFFERENT)
    assert (state(server), revision(server)) == ("dropped", 1)
    run = begin(server, "windows=3&promote=auto&max_differences=1")
    assert (run.settings.windows, run.settings.max_differences) == (3, 1)
    run.compare(3, different=1)
    run.end(Outcome.COMPARED)
    assert (state(server), revision(server)) == ("promoted", 2)
    assert server.stage.on["counts"] == CHANGED


@pytest.mark.parametrize("outcome", [Outcome.COMPARED, Outcome.DIFFERENT, Outcome.TIMEOUT])
def test_without_a_rule_somebody_decides(server: Asking, outcome: Outcome) -> None:
    begin(server).end(outcome)
    assert (state(server), revision(server)) == ("waiting", 1)
    answer = server.ask("POST", f"{PATH}/promote")
    assert answer.json()["revision"] == 2 and state(server) == "promoted"
    assert server.ask("DELETE", PATH).status_code == 409


@pytest.mark.parametrize("rule", ["auto", "manual"])
@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.CHANGED])
def test_one_that_fails_is_dropped(server: Asking, outcome: Outcome, rule: str) -> None:
    begin(server, f"promote={rule}").end(outcome, "it broke: url-password")
    assert (state(server), revision(server)) == ("dropped", 1)
    assert "url-password" not in server.ask("GET", PATH).text
    assert server.ask("POST", f"{PATH}/promote").status_code == 409


def test_the_differences_are_shown(server: Asking) -> None:
    begin(server).compare(5, different=2)
    canary = server.ask("GET", PATH).json()["canary"]
    assert (canary["state"], canary["compared"], canary["different"]) == ("comparing", 5, 2)
    assert len(canary["differences"]) == 2
    [field] = canary["differences"][0]["fields"]
    assert field == {"path": "sum", "old": "1", "new": json.dumps("<img src=x>"), "row": 0}


def test_a_stream_has_one_canary_at_a_time(server: Asking) -> None:
    begin(server)
    answer = server.ask("POST", PATH, CHANGED)
    assert answer.status_code == 409 and "has a canary already" in answer.text
    assert server.ask("DELETE", PATH).json()["state"] == "dropped"
    begin(server)


def test_one_that_is_overtaken_by_a_deploy_is_not_promoted(server: Asking) -> None:
    begin(server).end(Outcome.COMPARED)
    assert server.ask("PUT", "/streams/counts", CONFIG.replace("one", "three")).status_code == 200
    answer = server.ask("POST", f"{PATH}/promote")
    assert answer.status_code == 409 and "has changed since the canary began" in answer.text
    assert (state(server), revision(server)) == ("dropped", 2)


def test_marks_stand_for_the_secrets_of_the_running_revision(server: Asking) -> None:
    shown = server.ask("GET", "/streams/counts/config").json()["text"]
    assert "url-password" not in shown
    begin(server, config=shown.replace("one", "two"))
    server.ask("POST", f"{PATH}/promote")
    running = parse_config(server.stage.on["counts"], env={})
    assert running.output.config["url"] == parse_config(CHANGED, env={}).output.config["url"]


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (CONFIG.replace("1s }", "2s }"), "the change loses"),
        (CHANGED.replace("{ mapping", "{ http: { url: 'http://a' } }, { mapping"), "allow-calls"),
    ],
)
def test_what_cannot_be_tried_is_refused(server: Asking, config: str, text: str) -> None:
    answer = server.ask("POST", PATH, config)
    assert answer.status_code == 409 and text in answer.text
    assert server.ask("GET", PATH).json() == {"canary": None}


def test_a_stream_that_does_not_run_has_none(server: Asking) -> None:
    server.ask("POST", "/streams/counts/pause")
    answer = server.ask("POST", PATH, CHANGED)
    assert answer.status_code == 409 and "resume it first" in answer.text
    assert server.ask("POST", "/streams/nobody/canary", CHANGED).status_code == 404
    assert server.ask("DELETE", PATH).status_code == 409


@pytest.mark.parametrize(
    "query", ["windows=0", "windows=x", "promote=maybe", "within=1", "within=0s", "max_lag=1h"]
)
def test_parameters_that_are_wrong_are_refused(server: Asking, query: str) -> None:
    assert server.ask("POST", f"{PATH}?{query}", CHANGED).status_code == 400


def test_configs_of_canaries_may_do_what_configs_of_the_api_may(server: Asking) -> None:
    assert ApiPermissions().local is False
    running = CHANGED.replace("http_client: { url: 'http://ada:url-password@127.0.0.1:9/' }", "")
    config = running.replace("output: {  }", "output: { file: { path: /tmp/x } }")
    answer = server.ask("POST", PATH, config)
    assert answer.status_code == 400 and "lint_errors" in answer.text


def test_a_service_that_stops_ends_its_canaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_canaries(monkeypatch)
    with asking(tmp_path / "state") as server:
        server.ask("POST", "/streams/counts", CONFIG)
        run = begin(server, "promote=auto")
    assert run.outcome == Outcome.DROPPED
