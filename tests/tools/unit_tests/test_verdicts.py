"""What passes and what fails, and the exact texts of what fails (`failures.txt`)."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import indent

import pytest

from streamer.config.unit_tests.fields import CONDITION_FIELDS
from streamer.tools.unit_tests.suite import SuiteResult, find_suites, run_suite
from streamer.tools.unit_tests.suite_environment import SuiteEnvironment

from .verdicts import CONFIG, FILES, RIGHT, WRONG, doc

TEXTS = Path(__file__).with_name("failures.txt")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VERDICTS_NAME", raising=False)
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def run(name: str, case: str) -> SuiteResult:
    Path("x.yaml").write_text(f"{CONFIG}tests:\n  - name: {name}\n{indent(case, '    ')}\n")
    [suite] = find_suites(["x.yaml"])
    return run_suite(suite, SuiteEnvironment(suite.config))


def texts(result: SuiteResult) -> str:
    lines = [line.text for case in result.cases for found in case.failures for line in found]
    return "\n".join(lines)


@pytest.mark.parametrize("name", RIGHT)
def test_a_case_that_is_right_passes(name: str) -> None:
    result = run(name, RIGHT[name])
    assert (texts(result), result.lints, result.failed) == ("", (), False)
    assert [case.name for case in result.cases] == [name]


@pytest.mark.parametrize("name", WRONG)
def test_a_case_that_is_wrong_fails_and_says_why(name: str) -> None:
    expected = dict(re.findall(r"^== (.*)\n((?:(?!== ).*\n)*)", TEXTS.read_text(), re.M))
    result = run(name, WRONG[name])
    assert result.failed and result.lints == ()
    assert texts(result) + "\n" == expected[name]


def test_every_condition_is_there_right_and_wrong() -> None:
    for field in CONDITION_FIELDS:
        for table in (RIGHT, WRONG):
            assert any(f"{field.name}:" in case for case in table.values()), field.name


@pytest.mark.parametrize(
    "case",
    [
        doc("file_equals: /dev/zero"),
        "input_batch: [{file_content: /dev/zero}]",
        "input_batch: [{}]\ntarget_mapping: /dev/zero",
    ],
)
def test_a_file_that_never_ends_is_a_failure(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamer.tools.unit_tests.files.MAX_FILE_BYTES", 1_000_000)
    assert "/dev/zero: has more than 1,000,000 bytes" in texts(run("endless", case))


@pytest.mark.parametrize(
    "case",
    [
        doc('file_equals: "a\\0b"'),
        'input_batch: [{file_content: "\\0"}]',
        'target_mapping: "\\0"',
        'target_processors: "a\\0b#/pipeline/processors"',
        "target_processors: '#'",
        "target_processors: '/'",
        "target_processors: ''",
        "mocks: {'': {mapping: root = this}}",
        "mocks: {/pipeline/processors: null}",
        "mocks: {/: {mapping: root = this}}",
    ],
)
def test_odd_names_are_failures_like_others(case: str) -> None:
    assert run("odd", case).failed
