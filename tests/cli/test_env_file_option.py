"""`-e/--env-file`: variables out of files, before or after a command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streamer.cli.main import invoke

CONFIG = "input: {generate: {mapping: 'root = \"${GREETING}\"'}}\noutput: {drop: {}}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GREETING", raising=False)
    Path("c.yaml").write_text(CONFIG)
    Path("a.env").write_text("GREETING=good_morrow\n")
    Path("b.env").write_text('GREETING="good day"\n')
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["-e", "a.env", "lint", "c.yaml"],
        ["lint", "-e", "a.env", "c.yaml"],
        ["explain", "--env-file", "a.env", "c.yaml"],
        ["-e", "?.env", "dry-run", "c.yaml"],
    ],
)
def test_a_config_is_read_with_the_variables_of_the_file(arguments: list[str]) -> None:
    assert invoke(arguments) == 0
    assert "GREETING" not in os.environ


def test_the_later_file_wins_and_so_does_a_file_over_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GREETING", "hey")
    assert invoke(["-e", "a.env", "echo", "-e", "b.env", "--show-env", "c.yaml"]) == 0
    assert 'mapping: root = "good day"' in capsys.readouterr().out
    assert os.environ["GREETING"] == "hey"


def test_what_comes_out_of_a_file_is_shown_no_more_than_any_variable(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(["echo", "-e", "a.env", "c.yaml"]) == 0
    out = capsys.readouterr().out
    assert 'mapping: root = "${GREETING}"' in out
    assert "good_morrow" not in out


def test_mappings_see_the_variables_too(capsys: pytest.CaptureFixture[str]) -> None:
    Path("in.json").write_text("{}\n")
    assert invoke(["-e", "a.env", "blobl", "-i", "in.json", 'root = env("GREETING")']) == 0
    assert capsys.readouterr().out == "good_morrow\n"


def test_a_file_that_is_wrong_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.env").write_text("GREETING: good_morrow\n")
    assert invoke(["lint", "-e", "bad.env", "c.yaml"]) == 1
    assert invoke(["lint", "-e", "nope.env", "c.yaml"]) == 1
    assert capsys.readouterr().err == (
        "bad.env(1,1) expected NAME=value; begin comments with #\n"
        "nope.env(1,1) there is no such file\n"
    )
