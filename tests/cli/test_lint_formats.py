"""`streamer lint` for programs (JSON, SARIF) and for many files at once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from streamer.cli.lint_files import LintJob
from streamer.cli.main import invoke
from streamer.config import LintOptions
from streamer.config.lint.rules import RULES
from tests.slowness import relative_cpu

ROOT = Path(__file__).parents[2]
FILES = {
    "good.yaml": "input: {stdin: {}}\n",
    "bad.yaml": "inptu: {}\noutput_resources:\n  - drop: {}\n",
    "sub/a:b é.yaml": "output:\n  drop: {}\noutput_resources:\n  - {label: é, drop: {}}\n",
    "1:2.yaml": "[]\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = invoke(["lint", *arguments])
    out, err = capsys.readouterr()
    assert err == ""
    return code, json.loads(out)


@pytest.mark.usefixtures("folder")
def test_json_has_every_finding(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = printed(capsys, "--format", "json", "good.yaml", "bad.yaml", "nope.yaml")
    assert (code, found) == (
        1,
        {
            "files": 3,
            "findings": [
                {
                    "file": "bad.yaml",
                    "line": 1,
                    "column": 1,
                    "code": "unknown_field",
                    "level": "error",
                    "message": "field inptu not recognised",
                    "suggestion": "did you mean input?",
                },
                {
                    "file": "bad.yaml",
                    "line": 3,
                    "column": 5,
                    "code": "missing_label",
                    "level": "error",
                    "message": "this output resource has no label",
                    "suggestion": "add `label: …`",
                },
                {
                    "file": "nope.yaml",
                    "line": 1,
                    "column": 1,
                    "code": "unreadable",
                    "level": "error",
                    "message": "there is no such file",
                    "suggestion": "",
                },
            ],
        },
    )


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("form", ["json", "sarif"])
def test_without_findings_there_is_an_empty_list(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = printed(capsys, "--format", form, "good.yaml")
    assert code == 0
    assert (found["findings"] if form == "json" else found["runs"][0]["results"]) == []


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT = {"type": "string", "minLength": 1}
PLACE = _object(artifactLocation=_object(uri={"type": "string", "format": "uri-reference"}))
PLACE["properties"]["region"] = _object(
    startLine={"type": "integer", "minimum": 1}, startColumn={"type": "integer", "minimum": 1}
)
LEVEL = {"enum": ["none", "note", "warning", "error"]}
# The parts of SARIF 2.1.0 (OASIS) that are written, with what the standard says of them.
SARIF = _object(
    **{"$schema": TEXT},
    version={"const": "2.1.0"},
    runs={
        "type": "array",
        "minItems": 1,
        "items": _object(
            tool=_object(
                driver=_object(
                    name=TEXT,
                    semanticVersion=TEXT,
                    rules={
                        "type": "array",
                        "uniqueItems": True,
                        "items": _object(
                            id=TEXT,
                            shortDescription=_object(text=TEXT),
                            fullDescription=_object(text=TEXT),
                            help=_object(text=TEXT, markdown=TEXT),
                            defaultConfiguration=_object(level=LEVEL),
                        ),
                    },
                )
            ),
            columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            artifacts={
                "type": "array",
                "uniqueItems": True,
                "items": _object(location=_object(uri=TEXT)),
            },
            results={
                "type": "array",
                "items": _object(
                    ruleId=TEXT,
                    ruleIndex={"type": "integer", "minimum": 0},
                    level=LEVEL,
                    message=_object(text=TEXT),
                    locations={
                        "type": "array",
                        "items": _object(physicalLocation=PLACE),
                    },
                ),
            },
        ),
    },
)


@pytest.mark.usefixtures("folder")
def test_sarif_is_as_the_standard_says(capsys: pytest.CaptureFixture[str]) -> None:
    code, log = printed(capsys, "--format", "sarif", ".", "1:2.yaml", "nope.yaml")
    assert code == 1
    assert [error.message for error in Draft7Validator(SARIF).iter_errors(log)] == []
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    assert run["results"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    uris = [artifact["location"]["uri"] for artifact in run["artifacts"]]
    assert uris == ["1%3A2.yaml", "bad.yaml", "good.yaml", "sub/a%3Ab%20%C3%A9.yaml", "nope.yaml"]


def test_an_absolute_path_is_a_file_uri(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, log = printed(capsys, "--format", "sarif", str(folder / "bad.yaml"))
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == (folder / "bad.yaml").as_uri()


@pytest.mark.usefixtures("folder")
def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["lint", "--quiet", "bad.yaml"]) == 1
    assert invoke(["lint", "-q", "good.yaml"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("other", ["--quiet", "--format=json", "--format=sarif"])
def test_verbose_goes_with_text_only(other: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["lint", "--verbose", other, "good.yaml"]) == 1
    said = other.replace("=", " ")
    assert f"--verbose does not go with {said}" in capsys.readouterr().err


def test_resource_files_are_known_and_checked_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "main.yaml").write_text("pipeline: {processors: [{resource: clean}]}\n")
    (folder / "also.yaml").write_text("pipeline: {processors: [{resource: clean}]}\n")
    (folder / "res.yaml").write_text("processor_resources: [{label: clean, noop: {}}]\nx: 1\n")
    assert invoke(["lint", "main.yaml"]) == 1
    assert "there is no processor resource with the label 'clean'" in capsys.readouterr().err
    for before, after in ((["-r", "r*.yaml"], []), ([], ["-r", "r*.yaml"])):
        assert invoke([*before, "lint", *after, "main.yaml", "also.yaml"]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("res.yaml(2,1) field x not recognised")


_IN_PROCESSES = """
import os, signal, sys, threading
from streamer.cli import lint_files
from streamer.cli.lint_files import LintJob, LintOptions
files, job, forked = sys.argv[2:], LintJob(LintOptions(thorough=True)), []
alone = list(lint_files.lint_files(files, job))
# A program that runs a stream has taken the signal over by which a pool ends its processes.
signal.signal(signal.SIGTERM, lambda number, frame: None)
lint_files._FILES_PER_PROCESS, lint_files._count_cores = 10, lambda: 2
os.register_at_fork(before=lambda: forked.append(True))
if sys.argv[1] == "threads":
    threading.Thread(target=threading.Event().wait, daemon=True).start()
assert list(lint_files.lint_files(files, job)) == alone
print(bool(forked), [lints[0].message for _, lints in alone][:2])
"""


@pytest.mark.parametrize(("beside", "forks"), [("alone", True), ("threads", False)])
def test_several_processes_find_the_same_in_the_same_order(
    beside: str, forks: bool, tmp_path: Path
) -> None:
    """A process with other threads is not forked: one may hold a lock, for ever in the child."""
    files = []
    for number in range(40):
        path = tmp_path / f"c{number}.yaml"
        path.write_text(f"x{number}: 1\n")
        files.append(str(path))
    ran = subprocess.run(
        [sys.executable, "-c", _IN_PROCESSES, beside, *files],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stderr == ""
    expected = ["field x0 not recognised", "field x1 not recognised"]
    assert ran.stdout == f"{forks} {expected}\n"


def _cpu(*arguments: str) -> float:
    """Return the CPU seconds of a command, its start included."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "streamer.cli.main", *arguments], cwd=ROOT, check=True)
    after = os.times()
    return after.children_user - before.children_user


def test_one_file_is_linted_in_half_a_second() -> None:
    assert relative_cpu(0.5, lambda: _cpu("lint", "configs/sliding.yaml")) < 1


def test_a_file_among_many_costs_milliseconds(tmp_path: Path) -> None:
    """A thousand in three seconds on two cores are 6 ms each.

    No two files have the same mappings, so that nothing is kept from one to the next.
    """
    text = (ROOT / "configs" / "event_time_late.yaml").read_text(encoding="utf-8")
    files = []
    for number in range(60):
        path = tmp_path / f"c{number}.yaml"
        path.write_text(re.sub("celsius", f"celsius{number}", text), encoding="utf-8")
        files.append(str(path))
    job = LintJob(LintOptions(thorough=True))
    tries = []
    for part in range(3):
        began = time.process_time()
        for file in files[part * 20 : part * 20 + 20]:
            assert job.lint(file) == ()
        tries.append((time.process_time() - began) / 20)
    # No timed test: what would hurt is a cost that grows with the number of files.
    assert min(tries) < 0.03
