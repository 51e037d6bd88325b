"""Findings, the schema and judgements for who writes configs, and trials of mappings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamer.core.redaction import SCRUBBED
from streamer.engine.report.stream_metrics import Snapshot
from streamer.service.fleet.api_permissions import ApiPermissions
from streamer.service.monitoring.stream_view import StreamState
from tests.service.api.asking import asking
from tests.service.fleet.pretending import GENERATE, Stage, config_text

WINDOWS = "buffer: { system_window: { timestamp_mapping: root = now(), size: %s } }\n"
PIPELINE = "pipeline: { processors: [ { %s } ] }\n"
SECRET = """\
# By the orders' team.
input:
  http_client:
    url: http://127.0.0.1:1/   # where they are
    basic_auth: { enabled: true, username: u, password: swordfish }
output: { drop: {} }
"""


def test_findings_have_places_and_codes(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        text = (
            "inptu: {}\n"
            + GENERATE
            + "pipeline: { processors: [ { mapping: 'root = nope()' } ] }\n"
        )
        first, second = server.ask("POST", "/lint", text).json()["lints"]
        assert (first["line"], first["column"], first["code"]) == (1, 1, "unknown_field")
        assert (first["suggestion"], first["chilled"]) == ("did you mean input?", True)
        assert (second["line"], second["code"], second["chilled"]) == (4, "bad_bloblang", False)
        assert server.ask("POST", "/lint", GENERATE).json() == {"lints": []}
        assert server.ask("POST", "/lint", "a: [").json()["lints"][0]["line"] == 1
        assert server.ask("GET", "/streams").json() == {}


@pytest.mark.parametrize(
    "text",
    [
        GENERATE + "pipeline: { processors: [ { command: { name: ls } } ] }\n",
        GENERATE + "pipeline: { processors: [ { mapping: 'root = file(\"/etc/passwd\")' } ] }\n",
        GENERATE + "pipeline: { processors: [ { mapping: 'root = env(\"HOME\")' } ] }\n",
        "input: { generate: { mapping: 'root = \"${HOME}\"' } }\noutput: { drop: {} }\n",
        "input: { file: { paths: [ /etc/passwd ] } }\noutput: { drop: {} }\n",
    ],
)
def test_what_deploys_may_not_do_lint_says_and_does_not_do(text: str, tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        found = server.ask("POST", "/lint", text)
        assert found.json()["lints"] and "root:" not in found.text
        refused = server.ask("POST", "/streams/a", text).json()["lint_errors"]
        assert [one["message"] in refused[index] for index, one in enumerate(found.json()["lints"])]


def test_findings_that_chilled_configs_run_with_do_not_hide_others(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        text = "inptu: {}\n" + GENERATE + PIPELINE % "command: { name: ls }"
        codes = [one["code"] for one in server.ask("POST", "/lint", text).json()["lints"]]
        assert codes == ["unknown_field", "not_allowed"]


def test_a_config_is_shown_as_typed_without_secrets_and_deployed_with_them(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        ask = server.ask
        assert ask("POST", "/streams/a", SECRET).status_code == 200
        shown = ask("GET", "/streams/a/config").json()
        assert shown["text"] == SECRET.replace("swordfish", f'"{SCRUBBED}"')
        assert (shown["revision"], shown["of_api"]) == (1, True)
        edited = shown["text"].replace("drop: {}", "reject: no")
        assert ask("POST", "/lint?stream=a", edited).json() == {"lints": []}
        [alone] = ask("POST", "/lint", edited).json()["lints"]
        assert alone["code"] == "not_allowed"
        judged = ask("POST", "/streams/a/judgement", edited).json()
        assert [one["path"] for one in judged["changes"]] == ["output"]
        assert ask("PUT", "/streams/a", edited).status_code == 200
        assert server.stage.on["a"] == SECRET.replace("drop: {}", "reject: no").replace(
            "swordfish", '"swordfish"'
        )
        first = ask("GET", "/streams/a/revisions/1/config").json()
        assert first["text"] == shown["text"]
        assert ask("GET", "/streams/a/revisions/9/config").status_code == 400
        for path in ("/streams/b/config", "/streams/b/revisions/1/config"):
            assert ask("GET", path).status_code == 404
        assert ask("POST", "/lint?stream=b", edited).status_code == 404


def test_a_judgement_changes_nothing(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        ask = server.ask
        ask("POST", "/streams/a", GENERATE + WINDOWS % "10s")
        judged = ask("POST", "/streams/a/judgement", GENERATE + WINDOWS % "20s").json()
        assert judged["effect"] == "reset" and "windows of 10s" in judged["loses"][0]
        assert ask("POST", "/streams/a/judgement", GENERATE + WINDOWS % "10s").json() == {
            **{"effect": "none", "keeps_input": True, "loses": [], "changes": [], "held": None}
        }
        assert ask("POST", "/streams/a/judgement", "{").status_code == 400
        assert ask("POST", "/streams/b/judgement", GENERATE).status_code == 404
        assert [one["number"] for one in ask("GET", "/streams/a/revisions").json()] == [1]
        ask("PUT", "/streams/a?on_reset=discard", GENERATE + WINDOWS % "20s")
        back = ask("GET", "/streams/a/revisions/1/judgement").json()
        assert back["effect"] == "reset" and "windows of 20s" in back["loses"][0]


def test_a_judgement_says_how_much_is_held(tmp_path: Path) -> None:
    state = StreamState(Snapshot(open_windows=3, held=12, size=700, state_keys=5, batch=0), {})
    stage = Stage(now=lambda *_: state, windows=lambda *_: {"open": 3, "messages": 12})
    with asking(tmp_path, stage=stage) as server:
        server.ask("POST", "/streams/a", GENERATE + WINDOWS % "10s")
        path, text = "/streams/a/judgement", GENERATE + WINDOWS % "20s"
        held = server.ask("POST", path, text).json()["held"]
        [buffer] = held.pop("buffers")
        assert held == {"windows": 3, "messages": 12, "bytes": 700, "state_keys": 5}
        assert (buffer["windows"], buffer["messages"], buffer["label"]) == (3, 12, "")
        assert buffer["kind"].startswith("windows of 10s")
        # Windows that nobody counts are not none.
        state = StreamState(Snapshot(held=12, batch=1), {})
        assert server.ask("POST", path, text).json()["held"]["windows"] is None
        state = StreamState(Snapshot(), {})
        assert server.ask("POST", path, text).json()["held"] is None


def test_the_schema_is_that_of_the_program(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        found = server.ask("GET", "/schema").json()
        file = Path(__file__).parents[3] / "schemas" / "config.schema.json"
        assert found == json.loads(file.read_text())


def test_a_mapping_is_tried_within_bounds(tmp_path: Path) -> None:
    with asking(tmp_path) as server:

        def tried(mapping: str, given: str = "{}", **more: Any) -> Any:
            body = {"mapping": mapping, "input": given, **more}
            return server.ask("POST", "/bloblang", body).json()

        assert tried("root = this.a + 1", '{"a": 1}') == {"results": [{"output": "2"}]}
        [result] = tried('root = @x + "!"\nmeta z = 1', metadata={"x": "y"})["results"]
        assert result["output"] == "y!" and json.loads(result["metadata"]) == {"x": "y", "z": 1}
        problem = tried("root = this.a\nroot.b = nope(1)")["problem"]
        assert (problem["line"], problem["column"], problem["length"]) == (2, 10, 4)
        window = (
            'root = if batch_index() == 0 { [batch_size(), json("v").from_all().sum()] } '
            "else { deleted() }"
        )
        lines = '{"v":1,"u":"a"}\n{"v":2,"u":"b"}\n{"v":3,"u":"a"}'
        whole = tried(window, lines, batch=True)["results"]
        assert [one.get("output", "deleted").split() for one in whole] == [
            *(["[", "3,", "6", "]"], ["deleted"], ["deleted"]),
        ]
        grouped = tried(window, lines, batch=True, group_by="this.u")["results"]
        assert [(one["batch"], one.get("deleted", False)) for one in grouped] == [
            *((1, False), (1, True), (2, False)),
        ]
        assert "4" in grouped[0]["output"]
        assert "group by" in tried(window, lines, batch=True, group_by="nope(")["problem"]["text"]
        endless = "root = range(0, 9999).map_each(a -> range(0, 9999).map_each(b -> a * b))"
        stopped = str(tried(endless))  # by whichever bound it meets first
        assert "memory" in stopped or "seconds" in stopped
        assert tried("root = 1") == {"results": [{"output": "1"}]}
        for secret in ('env("PATH")', 'file("/etc/passwd")'):
            assert "root:" not in str(tried(f"root = {secret}"))
            assert "problem" in str(tried(f"root = {secret}"))
        for wrong in ("[]", "{", '{"mapping": 1, "input": ""}', '{"mapping": ""}'):
            assert server.ask("POST", "/bloblang", wrong).status_code == 400


def test_mappings_may_see_the_environment_where_configs_may(tmp_path: Path) -> None:
    with asking(tmp_path, allowance=ApiPermissions(local=True)) as server:
        body = {"mapping": 'root = env("PATH") != null', "input": "{}"}
        assert server.ask("POST", "/bloblang", body).json()["results"] == [{"output": "true"}]


@pytest.mark.parametrize("path", ["/lint", "/bloblang", "/streams/a/judgement"])
def test_pages_of_other_sites_may_not_ask(path: str, tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        server.ask("POST", "/streams/a", config_text("one"))
        body = '{"mapping": "root = 1", "input": ""}'
        assert server.ask("POST", path, body, Origin="http://elsewhere").status_code == 403
        own = {"Origin": server.url, "Content_Type": "application/x-www-form-urlencoded"}
        assert server.ask("POST", path, body, **own).status_code == 415


def test_the_documentation_is_searched_within_bounds(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        start, *_ = server.ask("GET", "/console/docs-index").json()
        assert start["title"] == "Start" and start["pages"][0]["name"] == "install"
        hits = server.ask("GET", "/console/docs-search?q=Late").json()
        assert len(hits) == 30
        [windows] = [hit for hit in hits if hit["page"] == "early-results"]
        assert hits.index(windows) < 5
        [sessions] = server.ask("GET", "/console/docs-search?q=own+sessions+gap+recipe").json()[:1]
        assert sessions["heading"].lower().replace(" ", "-") == sessions["slug"]
        assert any(part["is_match"] and part["text"] == "late" for part in windows["excerpt"])
        [kafka] = [
            hit
            for hit in server.ask("GET", "/console/docs-search?q=start_from_oldest+kafka").json()
            if hit["page"] == "components.inputs.kafka"
        ]
        assert kafka["section"] == "Components"
        assert server.ask("GET", "/console/docs-search").json() == []
        refused = server.ask("GET", "/console/docs-search?q=" + "x" * 201)
        assert refused.status_code == 400
        assert refused.text == "Error: q has 201 characters, and may have at most 200\n"


def test_the_documentation_is_served_with_links_that_lead_on(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        pages = server.ask("GET", "/console/docs").json()
        titles = {one["name"]: one["title"] for one in pages}
        assert "Windows" in titles["windows"] and "components.inputs.kafka" in titles
        tools = server.ask("GET", "/console/docs/tools").json()
        assert 'src="pictures/graph.svg"' in tools["html"]
        assert {"level": 1, "text": tools["title"], "slug": "tools-around-a-config"} in tools[
            "headings"
        ]
        windows = server.ask("GET", "/console/docs/windows").json()["html"]
        assert "<th>" in windows and "<th></th>" not in windows
        assert "&lt;!--" not in server.ask("GET", "/console/docs/install").json()["html"]
        assert (tools["section"], tools["previous"]["name"]) == ("Build pipelines", "testing")
        kafka = server.ask("GET", "/console/docs/components.inputs.kafka").json()
        assert kafka["above"] == {"name": "components.README", "title": "Components"}
        assert "previous" not in kafka
        assert server.ask("GET", "/console/docs/nope").status_code == 404
        assert server.ask("GET", "/console/docs/..%2f..%2fREADME").status_code == 404
