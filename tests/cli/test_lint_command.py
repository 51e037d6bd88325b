from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from streamer.cli import lint_files
from streamer.cli.main import invoke
from streamer.core.errors import Lint

GOOD = "input: {stdin: {}}\n"
BAD = "inptu: {}\n"
SAID = "(1,1) field inptu not recognised; did you mean input? [unknown_field]"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "good.yaml": GOOD,
        "bad.yaml": BAD,
        "notes.txt": BAD,
        "sub/deep/bad.yml": BAD,
        ".hidden/bad.yaml": BAD,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def lint(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = invoke(["lint", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.usefixtures("folder")
class TestLint:
    def test_nothing_is_printed_when_all_is_well(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert lint(capsys, "good.yaml") == (0, "", "")

    def test_findings_go_to_stderr_with_exit_1(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert lint(capsys, "good.yaml", "bad.yaml") == (1, "", f"bad.yaml{SAID}\n")

    @pytest.mark.parametrize("path", [".", "./...", "..."])
    def test_a_directory_is_walked(self, capsys: pytest.CaptureFixture[str], path: str) -> None:
        expected = f"bad.yaml{SAID}\nsub/deep/bad.yml{SAID}\n"
        assert lint(capsys, path) == (1, "", expected)

    def test_a_directory_below(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert lint(capsys, "sub/...") == (1, "", f"sub/deep/bad.yml{SAID}\n")

    def test_globs(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert lint(capsys, "g*.yaml") == (0, "", "")
        assert lint(capsys, "*.yaml", "bad.yaml") == (1, "", f"bad.yaml{SAID}\n")
        assert lint(capsys, "x*.yaml") == (
            1,
            "",
            "x*.yaml(1,1) there is no such file [unreadable]\n",
        )

    def test_verbose_names_every_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, out, _ = lint(capsys, "--verbose", ".")
        assert (code, out) == (1, "bad.yaml: FAILED\ngood.yaml: OK\nsub/deep/bad.yml: FAILED\n")

    def test_without_a_path_it_asks_for_one(self, capsys: pytest.CaptureFixture[str]) -> None:
        code, _, err = lint(capsys)
        assert code == 1
        assert "name a config file" in err

    def test_the_config_of_the_root_is_linted_too(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert invoke(["-c", "bad.yaml", "lint"]) == 1
        assert capsys.readouterr().err == f"bad.yaml{SAID}\n"


def test_a_directory_without_configs_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    said = "error: there is no .yaml or .yml file in empty, ./...\n"
    assert lint(capsys, "empty", "./...") == (1, "", said)


def test_a_fault_over_one_file_does_not_lose_the_findings_of_others(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = lint_files.lint_config

    def breaks(path: str, **more: Any) -> tuple[Lint, ...]:
        if path == "good.yaml":
            raise TypeError("unhashable type:\n'list'")
        return real(path, **more)

    monkeypatch.setattr(lint_files, "lint_config", breaks)
    code, out, err = lint(capsys, ".")
    assert (code, out) == (1, "")
    first, fault, last = err.splitlines()
    assert (first, last) == (f"bad.yaml{SAID}", f"sub/deep/bad.yml{SAID}")
    assert re.fullmatch(
        r"good\.yaml\(1,1\) lint broke down over this file: TypeError: unhashable type: 'list' "
        r"\(test_lint_command\.py:\d+\); this is a bug in the program; report it, with the file "
        r"\[lint_fault\]",
        fault,
    )


def test_flags_find_more(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "c.yaml").write_text("output: {file: {path: '${NOT_SET_ANYWHERE}'}}\n")
    assert lint(capsys, "c.yaml")[0] == 1
    assert lint(capsys, "--skip-env-var-check", "c.yaml") == (0, "", "")
    (folder / "n.yaml").write_text("pipeline:\n  threads: ${NOT_SET_ANYWHERE}\n  wat: 1\n")
    code, _, err = lint(capsys, "--skip-env-var-check", "n.yaml")
    assert err.startswith("n.yaml(3,3) field wat not recognised")
    code, _, err = lint(capsys, "--skip-env-var-check", "--labels", "c.yaml")
    assert (code, err) == (1, "c.yaml(1,9) label is required for file [missing_label]\n")


IMPURE = """pipeline:
  processors:
    - mapping: root = env("HOME")
    - log: {message: '${! hostname() }'}
"""


def test_impure_mappings_are_found_when_they_are_forbidden(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "impure.yaml"
    file.write_text(IMPURE)
    assert lint(capsys, str(file)) == (0, "", "")
    code, out, err = lint(capsys, "--no-impure", str(file))
    assert code == 1
    lines = (out + err).splitlines()
    assert [line.partition("function ")[2].split("; ")[0] for line in lines] == [
        "'env' is switched off here",
        "'hostname' is switched off here",
    ]


def test_a_config_with_impure_mappings_does_not_run_when_they_are_forbidden(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "impure.yaml"
    file.write_text(IMPURE)
    for arguments in (("explain", "--no-impure", str(file)), ("--no-impure", "-c", str(file))):
        assert invoke([*arguments]) == 1
        captured = capsys.readouterr()
        assert "function 'env' is switched off here" in captured.out + captured.err


def test_what_is_wrong_with_a_file_of_resources_for_a_config_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("c.yaml", "d.yaml"):
        (tmp_path / name).write_text("pipeline: {processors: [{resource: a}]}\n")
    (tmp_path / "more.yaml").write_text(
        "processor_resources:\n  - label: a\n    try:\n      - resource: b\n      - nop: {}\n"
    )
    (tmp_path / "whole.yaml").write_text("input: {stdin: {}}\n")
    code, out, err = lint(capsys, "--verbose", "-r", "more.yaml", "c.yaml", "d.yaml")
    assert (code, out) == (1, "c.yaml: OK\nd.yaml: OK\nmore.yaml: FAILED\n")
    assert err == (
        "more.yaml(4,19) there is no processor resource with the label 'b'; "
        "processor_resources has a [missing_resource]\n"
        "more.yaml(5,9) processor 'nop' is not known; did you mean noop? [unknown_component]\n"
    )
    code, _, err = lint(capsys, "-r", "more.yaml", "-r", "whole.yaml", "c.yaml")
    assert err.splitlines()[-1].startswith("whole.yaml(1,1) field input not recognised; ")
