"""`streamer test`: what it prints, and its exit codes."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import click
import pytest

from streamer.cli.main import invoke

ROOT = Path(__file__).parents[2]
PIPELINE = "pipeline:\n  processors:\n    - mapping: root.v = this.v + 1\n"


def case(name: str, value: int) -> str:
    return (
        f"  - name: {name}\n"
        "    input_batch: [{ json_content: { v: 1 } }]\n"
        f"    output_batches: [[{{ json_equals: {{ v: {value} }} }}]]\n"
    )


GOOD = PIPELINE + "tests:\n" + case("one and one are two", 2)
BAD = PIPELINE + "tests:\n" + case("right", 2) + case("wrong", 3)
SAID = """\
wrong [line 8]:
batch 0 message 0: json_equals [line 10]: JSON content mismatch
  at v:
    expected: 3
    received: 2
batch 0 message 0: {"v":2}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "good.yaml": GOOD,
        "bad.yaml": BAD,
        "none.yaml": PIPELINE,
        "sub/beside.yaml": PIPELINE,
        "sub/beside_streamer_test.yaml": "tests:\n" + case("in a file", 2),
        "sub/beside_benthos_test.yaml": "tests:\n" + case("in another", 2),
        "sub/notes.txt": BAD,
        "sub/list.yaml": "[tests]",
        ".hidden/bad.yaml": BAD,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = invoke(["test", *arguments])
    out, err = capsys.readouterr()
    return code, re.sub(r"[\d.]+ ms", "N ms", out), err


def test_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    expected = "Test 'good.yaml' succeeded\n\n1 test: 1 passed\n"
    assert run(capsys, "good.yaml") == (0, expected, "")


def test_a_failure_is_shown_and_the_exit_code_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    expected = (
        "Test 'bad.yaml' failed\n\nFailures:\n\n--- bad.yaml ---\n\n"
        f"{SAID}\n2 tests: 1 passed, 1 failed\n"
    )
    assert run(capsys, "bad.yaml") == (1, expected, "")


def test_no_tests_are_a_failure_as_in_benthos(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "none.yaml") == (1, "No tests were found\n", "")


@pytest.mark.parametrize(
    "path",
    ["sub/beside.yaml", "sub/beside_streamer_test.yaml", "sub", "./sub/...", "sub/*.yaml"],
)
def test_a_config_and_its_files_of_tests_stand_for_each_other(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "-v", path)
    assert (code, out) == (
        0,
        "  - in a file: ok (N ms)\n  - in another: ok (N ms)\n"
        "Test 'sub/beside.yaml' succeeded\n\n2 tests: 2 passed\n",
    )


def test_a_directory_is_looked_through(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "./...")
    assert code == 1
    assert re.findall(r"Test '(.*)' (\w+)", out) == [
        ("bad.yaml", "failed"),
        ("good.yaml", "succeeded"),
        ("sub/beside.yaml", "succeeded"),
    ]
    assert out.endswith("5 tests: 4 passed, 1 failed\n")


def test_lint_findings_fail_a_config_that_is_tested(capsys: pytest.CaptureFixture[str]) -> None:
    Path("lint.yaml").write_text("inptu: {}\n" + GOOD)
    code, out, _ = run(capsys, "lint.yaml")
    assert code == 1
    assert (
        "Lint: lint.yaml(1,1) field inptu not recognised; did you mean input?\n"
        "\n1 test: 1 passed, 1 lint finding\n"
    ) in out


ELSEWHERE = """\
input: {nsq: {topic: x}}
pipeline:
  processors:
    - label: made
      mapping: root.a = 1
    - gcp_vertex_ai_chat: {model: x}
output: {broker: {outputs: [{azure_table_storage: {bucket: x}}]}}
cache_resources: [{label: c, couchbase: {url: x}}]
tests:
  - name: made
    target_processors: made
    input_batch: [content: "{}"]
    output_batches: [[json_equals: {a: 1}]]
"""


def test_processors_are_tested_though_other_components_are_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("x.yaml").write_text(ELSEWHERE)
    code, out, _ = run(capsys, "x.yaml")
    assert (code, out) == (0, "Test 'x.yaml' succeeded\n\n1 test: 1 passed\n")


OF_STREAM = """\
target: stream
    clock: 2026-01-01T00:00:00Z
    steps: [send: [content: "{}"]]
    output_batches: []
"""


@pytest.mark.parametrize(
    ("case", "missing"),
    [
        ("target_processors: /pipeline/processors", "x.yaml(6,7) processor 'gcp_vertex_ai_chat'"),
        (OF_STREAM, "x.yaml(1,9) input 'nsq' is not available"),
    ],
)
def test_a_test_that_needs_a_missing_component_fails(
    case: str, missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config, _, rest = ELSEWHERE.partition("target_processors: made")
    Path("x.yaml").write_text(config + case + ("" if case == OF_STREAM else rest))
    code, out, _ = run(capsys, "x.yaml")
    assert code == 1 and missing in out and out.endswith("1 test: 0 passed, 1 failed\n")


def test_tests_that_cannot_be_understood_are_findings(capsys: pytest.CaptureFixture[str]) -> None:
    Path("good_streamer_test.yaml").write_text("tests: [{nmae: x}]")
    code, out, _ = run(capsys, "good.yaml")
    assert code == 1
    assert out.count("Lint: good_streamer_test.yaml(1,") == 2
    assert out.endswith("1 test: 1 passed, 2 lint findings\n")


def test_a_missing_config_is_named_by_the_tests_that_need_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("gone_streamer_test.yaml").write_text(
        "tests:\n" + case("needs it", 2) + case("does not", 2) + "    target_mapping: root.v = 2\n"
    )
    code, out, _ = run(capsys, "-v", "gone_streamer_test.yaml")
    assert code == 1
    assert "  - needs it: failed (N ms)\n  - does not: ok (N ms)\n" in out
    assert (
        "needs it [gone_streamer_test.yaml:2]:\n"
        "the test cannot be run: there is no config gone.yaml; tests in a file of their own are "
        "about the config of the same name beside it, or name another: `target_processors: "
        "FILE#/pipeline/processors`\n"
    ) in out
    assert run(capsys, "-v", "gone.yaml")[:2] == (1, out)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nope.yaml", "there is no file or directory 'nope.yaml'"),
        ("nope/...", "there is no file or directory 'nope/'"),
        ("n*pe.yaml", "there is no file that matches 'n*pe.yaml'"),
    ],
)
def test_a_path_that_does_not_exist_is_named(
    path: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "good.yaml", path)
    assert (code, out, err) == (1, "", f"error: {said}; name a config, or a file of tests\n")


def test_junit_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--junit", "out.xml", "good.yaml", "bad.yaml")[0] == 1
    root = ET.parse("out.xml").getroot()
    assert [(root.get(n)) for n in ("tests", "failures", "errors")] == ["3", "1", "0"]
    names = [case.get("name") for case in root.iter("testcase")]
    assert names == ["right", "wrong", "one and one are two"]
    code, out, err = run(capsys, "--junit", "no/such/out.xml", "bad.yaml")
    assert (code, err) == (1, "error: --junit no/such/out.xml: no such file or directory\n")
    assert SAID in out


def test_components_log_when_they_are_asked_to(capsys: pytest.CaptureFixture[str]) -> None:
    text = GOOD.replace(
        "processors:\n", "processors:\n    - log: { message: 'v is ${! this.v }' }\n"
    )
    Path("log.yaml").write_text(text)
    code, _, err = run(capsys, "log.yaml")
    assert (code, err) == (0, "")
    code, out, err = run(capsys, "--log", "info", "log.yaml")
    assert code == 0 and "v is 1" in err and "v is 1" not in out
    assert run(capsys, "--log", "error", "log.yaml")[2] == ""


def test_a_name_stands_before_what_its_test_logs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("log.yaml").write_text(GOOD.replace("- mapping", "- log: { message: hey }\n    - mapping"))
    monkeypatch.setattr("sys.stderr", sys.stdout)
    code, out, _ = run(capsys, "-v", "--log", "info", "log.yaml")
    assert code == 0
    assert re.fullmatch(
        r"  - one and one are two:\n.*hey.*\n    ok \(N ms\)\nTest .*\n\n1 test: 1 passed\n", out
    )


def test_resource_files_may_be_globs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("late.yaml").write_text(
        "buffer: { system_window: { size: 1s, late_output: rest } }\n"
        "tests:\n  - name: a\n    target: stream\n    clock: 2026-01-01T00:00:00Z\n"
        "    steps: [{ advance: 1s }]\n"
    )
    Path("sub/rest.yml").write_text("output_resources: [{ label: rest, drop: {} }]\n")
    code, out, _ = run(capsys, "late.yaml")
    assert code == 1 and "there is no output resource with the label 'rest'" in out
    assert run(capsys, "-r", "sub/*.yml", "late.yaml")[0] == 0
    assert run(capsys, "--resources", "sub/rest.yml", "late.yaml")[0] == 0


def test_what_is_wrong_with_a_resource_file_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("sub/rest.yml").write_text("output_resources: [{ label: rest, dorp: {} }]\n")
    code, out, _ = run(capsys, "-r", "sub/rest.yml", "good.yaml")
    assert code == 1
    assert "Lint: sub/rest.yml(1,35) output 'dorp' is not known; did you mean" in out
    assert out.count("sub/rest.yml(1,35)") == 1
    assert "[line 5]:\nthe test cannot be run: see the findings above\n" in out
    assert "gone.yml(1,1) there is no such file" in run(capsys, "-r", "gone.yml", "good.yaml")[1]


def test_the_environment_is_as_it_was(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_NAME", "outside")
    text = (
        'pipeline: { processors: [{ mapping: \'root = "${SOME_NAME} " + env("SOME_NAME")\' }] }\n'
    )
    text += "tests:\n"
    for name, set_to in (("a", "{ SOME_NAME: a }"), ("b", "{ SOME_NAME: b }"), ("outside", "{}")):
        text += (
            f"  - name: {name}\n    environment: {set_to}\n    input_batch: [{{}}]\n"
            f"    output_batches: [[{{ content_equals: {name} {name} }}]]\n"
        )
    Path("env.yaml").write_text(text)
    assert run(capsys, "env.yaml")[:2] == (0, "Test 'env.yaml' succeeded\n\n3 tests: 3 passed\n")


@pytest.mark.parametrize("arguments", [[], ["--junot"], ["--log", "loud", "good.yaml"]])
def test_a_wrong_use_is_explained(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (1, "") and "Usage: streamer test" in err


def test_fields_cannot_be_set(capsys: pytest.CaptureFixture[str]) -> None:
    code = invoke(["-s", "input.stdin={}", "test", "good.yaml"])
    assert code == 1 and "cannot be set with --set" in capsys.readouterr().err


def on_terminal(command: list[str], env: dict[str, str]) -> str:
    ours, its = pty.openpty()
    process = subprocess.Popen(command, stdout=its, stderr=its, env=env)
    os.close(its)
    out = b""
    with contextlib.suppress(OSError):  # what the end of a terminal is on Linux
        while read := os.read(ours, 65_536):
            out += read
    os.close(ours)
    assert process.wait(60) == 1
    return out.decode().replace("\r\n", "\n")


def test_a_pipe_gets_no_colours_and_a_terminal_does() -> None:
    command = [sys.executable, "-m", "streamer.cli.main", "test", "bad.yaml"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    piped = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    assert (piped.returncode, piped.stderr) == (1, "") and SAID in piped.stdout
    shown = on_terminal(command, env)
    assert "\x1b[32m    expected: 3\x1b[0m\n\x1b[31m    received: 2\x1b[0m\n" in shown
    assert click.unstyle(shown) == piped.stdout
