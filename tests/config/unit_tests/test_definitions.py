"""Definitions of tests: which file holds them, and what is wrong with them, with its place."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from streamer.config import lint_config
from streamer.config.read_context import LintOptions
from streamer.config.unit_tests.definitions import (
    find_definitions,
    find_tested_config,
    is_definition,
    read_definitions,
)

STREAM = "tests: [{name: a, target: stream, clock: 2026-01-01T00:00:00Z, "

BROKEN = {
    "no object": ("[]", "(1,1) a file of tests is an object, got an array; begin with `tests:`"),
    "no name": ("tests: [{}]", "(1,9) field name is required"),
    "tests are a list": (
        "tests: {name: a}",
        "(1,8) field tests: expected array value, got an object; write it as a list: `- …`",
    ),
    "an unknown condition": (
        "tests: [{name: a, output_batches: [[{json_is: 1}]]}]",
        "(1,38) field json_is not recognised; did you mean json_contains?",
    ),
    "a condition for a batch": (
        "tests: [{name: a, output_batches: [{json_equals: 1}]}]",
        "(1,36) field output_batches: expected array value, got an object; "
        "write it as a list: `- …`",
    ),
    "a mapping that is none": (
        "tests: [{name: a, output_batches: [[{bloblang: this.a.nope()}]]}]",
        "unrecognised method 'nope'",
    ),
    "a pattern that is none": (
        "tests: [{name: a, output_batches: [[{content_matches: '('}]]}]",
        "(1,55) field content_matches is not a regular expression (RE2): missing ): (",
    ),
    "a variable that is none": (
        "tests: [{name: a, environment: {A=B: c}}]",
        "(1,32) field environment has the variable 'A=B', which no environment can hold",
    ),
    "an unknown target": (
        "tests: [{name: a, target: streem}]",
        "(1,27) field target: value 'streem' is not one of processors, stream; "
        "did you mean stream?",
    ),
    "steps without a stream": (
        "tests: [{name: a, steps: [{advance: 1s}]}]",
        "(1,26) field steps belongs to stream tests; add `target: stream`",
    ),
    "a stream without a clock": (
        "tests: [{name: a, target: stream, steps: [{advance: 1s}]}]",
        "(1,27) a test with `target: stream` needs the field clock; "
        "write where the clock starts: `clock: 2026-01-01T00:00:00Z`",
    ),
    "a stream without steps": (
        STREAM + "}]",
        "(1,27) a test with `target: stream` needs steps",
    ),
    "a clock that is no time": (
        "tests: [{name: a, target: stream, clock: noon, steps: [{advance: 1s}]}]",
        "(1,42) field clock is no time: ",
    ),
    "a clock without a zone": (
        STREAM + "steps: [{clock: 2026-01-01T00:00:00}]}]",
        "expected a date-time with a zone",
    ),
    "a batch for a stream": (
        STREAM + "input_batch: [], steps: [{advance: 1s}]}]",
        "(1,77) field input_batch does not go with `target: stream`; "
        "what goes in are the messages of `steps`",
    ),
    "a step that moves the clock twice": (
        STREAM + "steps: [{advance: 1s, clock: 2026-01-01T00:00:09Z}]}]",
        "(1,93) a step moves the clock by `advance` or by `clock`, not by both; make two steps of",
    ),
    "a step that goes back": (
        STREAM + "steps: [{advance: -1s}]}]",
        "(1,82) field advance is negative; set the clock back with `clock`",
    ),
    "an advance that is no duration": (
        STREAM + "steps: [{advance: soon}]}]",
        "(1,82) field advance: ",
    ),
    "a restart that runs": (
        STREAM + "steps: [{restart: true, send: []}]}]",
        "(1,94) field send does not go with restart, which runs no micro-batch; make two steps",
    ),
    "an empty step": (STREAM + "steps: [{}]}]", "(1,71) step 0 is empty; remove it"),
    "messages after the end": (
        STREAM + "steps: [{end_of_input: true}, {send: [{}]}]}]",
        "(1,101) nothing can be sent after the end of the input; "
        "put a step with `restart: true` before it",
    ),
    "a negative partition": (
        STREAM + "steps: [{send: [{partition: -1}]}]}]",
        "(1,92) field partition is -1; expected 0 or more",
    ),
    "an unknown reason": (
        STREAM + "steps: [{advance: 1s}], dropped: {latte: 1}}]",
        "field dropped has the unknown reason 'latte'; expected one of timestamp, late, expired",
    ),
    "a negative count": (
        STREAM + "steps: [{advance: 1s}], dropped: {late: -1}}]",
        "field dropped has -1 for late; expected 0 or more",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_found_with_its_place(name: str, tmp_path: Path) -> None:
    text, expected = BROKEN[name]
    path = tmp_path / "a_streamer_test.yaml"
    path.write_text(text)
    definitions = read_definitions(str(path))
    assert definitions.cases == ()
    [lint] = definitions.lints
    assert expected in str(lint).removeprefix(str(path))
    assert lint_config(path) == definitions.lints


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "no object"])
def test_it_is_found_inside_of_a_config_too(name: str, tmp_path: Path) -> None:
    text, expected = BROKEN[name]
    path = tmp_path / "a.yaml"
    path.write_text(text)
    [lint] = lint_config(path)
    assert expected in str(lint).removeprefix(str(path))
    assert read_definitions(str(path)).lints == (lint,)


def test_what_else_is_wrong_with_a_config_does_not_keep_its_tests_from_being_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("inptu: {}\npipeline: {processors: [{nope: {}}]}\ntests: [{name: a}]\n")
    definitions = read_definitions(str(path))
    assert definitions.lints == ()
    assert [(case.parsed["name"], case.line) for case in definitions.cases] == [("a", 3)]


@pytest.mark.parametrize("text", ["", "input: {stdin: {}}\n", "# tests\n{}", "tests: []", "[1]"])
def test_a_file_without_tests_has_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    assert read_definitions(str(path)).cases == () == read_definitions(str(path)).lints


def test_variables_are_not_replaced_unless_they_must_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_NAME", "replaced")
    path = tmp_path / "a.yaml"
    path.write_text("tests: [{name: '${SOME_NAME}'}]")
    assert read_definitions(str(path)).cases[0].parsed["name"] == "${SOME_NAME}"
    # Without the value this is no YAML.
    path.write_text("pipeline: {threads: ${THREADS:2}}\ntests: [{name: a}]")
    assert read_definitions(str(path)).cases[0].parsed["name"] == "a"


def test_parallel_is_taken_in_a_file_of_tests_and_named_as_deprecated(tmp_path: Path) -> None:
    path = tmp_path / "a_benthos_test.yaml"
    path.write_text("parallel: true\ntests: [{name: a}]")
    assert len(read_definitions(str(path)).cases) == 1
    assert lint_config(path) == ()
    [lint] = lint_config(path, options=LintOptions(deprecated=True))
    assert str(lint) == f"{path}(1,1) field parallel is deprecated"


def test_a_mock_keeps_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a_streamer_test.yaml"
    path.write_text(
        dedent("""\
            tests:
              - name: a
                mocks:
                  foo:
                    mapping: root = this
            """)
    )
    mock = read_definitions(str(path)).cases[0].mocks["foo"]
    assert mock.source.locate(mock.start) == (5, 9)


def test_files_belong_together_by_their_names(tmp_path: Path) -> None:
    for name in ("a.yaml", "a_streamer_test.yaml", "a_benthos_test.yaml", "b.yml"):
        (tmp_path / name).touch()
    assert is_definition("x/a_streamer_test.yaml") and is_definition(Path("a_benthos_test.yml"))
    assert not is_definition("a.yaml") and not is_definition("streamer_test/a.yaml")
    assert find_tested_config("x/a_streamer_test.yaml") == "x/a.yaml"
    assert find_tested_config("a_benthos_test.yml") == "a.yml"
    a, b = str(tmp_path / "a.yaml"), str(tmp_path / "b.yml")
    assert [Path(path).name for path in find_definitions(a)] == [
        "a_streamer_test.yaml",
        "a_benthos_test.yaml",
    ]
    assert find_definitions(b) == []
