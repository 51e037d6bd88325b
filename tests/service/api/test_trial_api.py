"""The endpoints that try a config before a deploy: what each answers, and what none gives away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamer.core.redaction import SCRUBBED
from streamer.service.fleet.api_permissions import ApiPermissions
from tests.service.api.asking import Asking, asking

CONFIG = """\
input:
  generate:
    interval: 1s
    count: 3
    mapping: 'root = {"id": counter(), "at": "2026-01-01T00:00:00Z"}'
buffer: { tumbling_window: { timestamp_mapping: root = this.at, size: 1m } }
pipeline:
  processors:
    - label: count
      mapping: 'root = if batch_index() == 0 { {"n": batch_size()} } else { deleted() }'
output: { drop: {} }
"""
TESTS = """\
tests:
  - name: holds
    target_processors: count
    input_batch: [ { content: '{}' } ]
    output_batches: [ [ { json_equals: { n: 1 } } ] ]
  - name: does not
    target_processors: count
    input_batch: [ { content: '{}' } ]
    output_batches: [ [ { json_equals: { n: 2 } } ] ]
"""
TIMES = ("00:10", "01:20", "00:09")
MESSAGES = "\n".join(f'{{"at":"2026-01-01T00:{one}Z"}}' for one in TIMES)
SECRET = """\
input: { generate: { mapping: root = 1 } }
output: { socket: { network: tcp, address: '127.0.0.1:1' } }
pipeline:
  processors:
    - http:
        url: http://127.0.0.1:1/
        retries: 0
        basic_auth: { enabled: true, username: u, password: swordfish }
"""


PYTHON = """\
input: { generate: { count: 1, mapping: 'root = {}' } }
pipeline:
  processors:
    - label: run
      python:
        code: |
          def process(m: dict) -> dict:
              return {"ran": True}
output: { drop: {} }
tests:
  - name: runs
    target_processors: run
    input_batch: [ { content: '{}' } ]
    output_batches: [ [ { json_equals: { ran: true } } ] ]
"""


@pytest.mark.parametrize("allowed", [False, True])
def test_code_in_python_is_tried_only_where_it_may_run(tmp_path: Path, allowed: bool) -> None:
    allowance = ApiPermissions(programs=True, local=True, python=allowed)
    with asking(tmp_path, allowance=allowance) as server:
        for kind in ("tests", "dry-run", "timeline"):
            answer = server.ask("POST", f"/console/trial/{kind}", {"config": PYTHON})
            assert ("--allow-python" in answer.text) is not allowed, (kind, answer.text)


def ask(server: Asking, kind: str, **fields: str) -> Any:
    answer = server.ask("POST", f"/console/trial/{kind}", fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("trial")
    filed = directory / "filed.yaml"
    filed.write_text(CONFIG)
    (directory / "filed_streamer_test.yaml").write_text(TESTS)
    with asking(directory, files={"filed": str(filed)}) as found:
        yield found


def test_tests_pass_or_say_what_differs_and_where(server: Asking) -> None:
    found = ask(server, "tests", config=CONFIG + TESTS)
    holds, differs = found["tests"]
    assert (holds["name"], holds["passed"], holds["line"]) == ("holds", True, 13)
    assert (differs["passed"], differs["line"], differs["file"]) == (False, 17, "")
    assert {"text": "    expected: 2", "tone": "expected"} in differs["failures"][0]
    assert (found["problem"], found["cut"]) == ("", False)


def test_tests_beside_the_file_of_a_stream_are_run(server: Asking) -> None:
    found = ask(server, "tests", config=CONFIG, stream="filed")
    assert [(one["file"], one["line"], one["passed"]) for one in found["tests"]] == [
        ("filed_streamer_test.yaml", 2, True),
        ("filed_streamer_test.yaml", 6, False),
    ]


def test_a_timeline_has_windows_messages_and_a_drawing(server: Asking) -> None:
    found = ask(server, "timeline", config=CONFIG, messages=MESSAGES + "\n{}" * 400)
    assert [one["windows"] for one in found["messages"][:3]] == [[1], [2], []]
    assert found["messages"][2]["dropped"] == "late"
    assert [(one["start"], one["messages"]) for one in found["windows"]][:1] == [
        ("2026-01-01T00:00:00Z", 1)
    ]
    assert found["svg"].startswith("<svg")
    assert (len(found["messages"]), found["left_out"]) == (300, 103)


def test_a_tap_shows_messages_after_each_component(server: Asking) -> None:
    given = ask(server, "tap", config=CONFIG, messages=MESSAGES)["stages"]
    assert [one["path"] for one in given] == [
        *("input", "buffer", "pipeline.processors.0", "output"),
    ]
    assert given[1]["dropped"][0]["metadata"]["window_drop_reason"] == "late"
    assert [one[0]["content"] for one in given[2]["batches"]] == ['{"n":1}', '{"n":1}']
    # Without messages, those of the input are taken.
    made = ask(server, "tap", config=CONFIG)["stages"]
    assert made[0]["messages"] == 3 and made[2]["batches"][0][0]["content"] == '{"n":3}'


def test_a_dry_run_says_what_does_not_connect_and_no_secret(server: Asking) -> None:
    assert server.ask("POST", "/streams/kept", SECRET).status_code == 200
    shown = server.ask("GET", "/streams/kept/config").json()["text"]
    assert SCRUBBED in shown
    answer = server.ask("POST", "/console/trial/dry-run", {"config": shown, "stream": "kept"})
    checks = {one["name"]: one for one in answer.json()["checks"]}
    assert checks["output: socket"]["ok"] is False
    assert "swordfish" not in answer.text
    answer = server.ask(
        "POST", "/console/trial/tap", {"config": shown, "stream": "kept", "messages": "1"}
    )
    assert "refused" in answer.text and "swordfish" not in answer.text
    server.ask("DELETE", "/streams/kept")


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"config": "a: ["}, 400, "lint_errors"),
        ({"config": CONFIG.replace("drop: {}", "file: { path: /tmp/x }")}, 400, "allow-local"),
        ({"config": CONFIG, "stream": "nope"}, 404, "not found"),
        ({"config": CONFIG, "clock": "soon"}, 400, "clock"),
        ({"config": CONFIG, "step": "-1s"}, 400, "backwards"),
        ({"config": 1}, 400, "string"),
        ("[", 400, "JSON"),
        ({}, 400, "config"),
    ],
)
def test_what_is_not_right_is_refused(body: Any, status: int, text: str, server: Asking) -> None:
    answer = server.ask("POST", "/console/trial/timeline", body)
    assert (answer.status_code, text in answer.text) == (status, True), answer.text


def test_what_cannot_be_tried_says_why(server: Asking) -> None:
    plain = "input: { generate: { mapping: root = 1 } }\noutput: { drop: {} }\n"
    assert "windows" in ask(server, "timeline", config=plain)["problem"]
    kafka = "kafka: { addresses: [x:1], topics: [t], consumer_group: g }"
    reads = plain.replace("generate: { mapping: root = 1 }", kafka)
    assert "messages" in ask(server, "tap", config=reads)["problem"]


def test_pages_of_other_sites_may_not_try(tmp_path: Path, server: Asking) -> None:
    answer = server.ask(
        "POST", "/console/trial/dry-run", {"config": CONFIG}, Origin="http://elsewhere"
    )
    assert answer.status_code == 403


def test_a_new_stream_has_configs_to_begin_with_and_an_id_that_is_free(server: Asking) -> None:
    starters = server.ask("GET", "/console/starters").json()
    assert starters[0]["name"] == "tumbling_counts" and "tumbling_window" in starters[0]["text"]
    for one in starters:
        assert server.ask("POST", "/lint", one["text"]).json() == {"lints": []}, one["name"]
    for given, problem in (
        ("fresh", ""),
        ("filed", "already"),
        ("metrics", "of its own"),
        ("a%2Fb", "no id"),
        ("", "no id"),
    ):
        found = server.ask("GET", f"/console/new-id?id={given}").json()["problem"]
        assert problem in found and bool(problem) == bool(found)


def test_with_allow_local_tests_may_name_files_beside_a_file_and_see_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIAL_VARIABLE", "seen")
    (tmp_path / "given.json").write_text('{"a":1}')
    filed = tmp_path / "filed.yaml"
    text = CONFIG + (
        "tests:\n"
        "  - name: reads\n"
        "    target_processors: count\n"
        "    input_batch: [ { file_content: given.json } ]\n"
        "    output_batches: [ [ { json_equals: { n: 1 } } ] ]\n"
        "  - name: sees\n"
        "    target_mapping: 'root = env(\"TRIAL_VARIABLE\")'\n"
        "    input_batch: [ { content: '{}' } ]\n"
        "    output_batches: [ [ { content_equals: seen } ] ]\n"
    )
    filed.write_text(text)
    local = ApiPermissions(local=True)
    with asking(tmp_path / "state", files={"filed": str(filed)}, allowance=local) as server:
        found = ask(server, "tests", config=text, stream="filed")
    assert [(one["passed"], one["failures"]) for one in found["tests"]] == [(True, [])] * 2
