"""New packages: of each kind there is one whose own tests pass, and that can be loaded."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from streamer.cli.create import create_cli
from streamer.cli.main import cli
from streamer.core.errors import StreamerError
from streamer.sdk.spec import Kind
from streamer.tools.component_kit.new_package import (
    PACKAGE_KINDS,
    make_package_files,
    write_package,
)

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("kind", PACKAGE_KINDS)
def test_a_package_names_its_component(kind: Kind) -> None:
    files = make_package_files(kind, "my_name")
    assert sorted(files) == [
        "README.md",
        "config.yaml",
        "pyproject.toml",
        "src/streamer_my_name/__init__.py",
        "src/streamer_my_name/my_name.py",
        "tests/test_my_name.py",
    ]
    project = tomllib.loads(files["pyproject.toml"])["project"]
    points = project["entry-points"]["streamer.components"]
    assert points == {f"{kind}.my_name": "streamer_my_name.my_name"}
    assert not [path for path, text in files.items() if "$" in text.replace("${!", "")]


@pytest.mark.slow
@pytest.mark.parametrize("kind", PACKAGE_KINDS)
def test_its_own_tests_pass(kind: Kind, tmp_path: Path) -> None:
    write_package(tmp_path / "package", kind, f"my_{kind}")
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=tmp_path / "package",
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout and "failed" not in done.stdout


@pytest.mark.parametrize("name", ["", "My", "a-b", "1a", "class", "a" * 61, "../x"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(StreamerError, match="expected small letters"):
        make_package_files(Kind.PROCESSOR, name)


def test_a_name_of_ours_is_refused() -> None:
    with pytest.raises(StreamerError, match="streamer has a processor 'mapping' itself"):
        make_package_files(Kind.PROCESSOR, "mapping")


def test_the_command_writes_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["create", "--component", "cache", "my_name"]
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    assert done.return_value == 0
    assert "streamer-my-name/src/streamer_my_name/my_name.py\n" in done.output
    assert (tmp_path / "streamer-my-name" / "pyproject.toml").exists()
    again = CliRunner().invoke(cli, words, standalone_mode=False)
    assert isinstance(again.exception, StreamerError)
    assert "has files already" in str(again.exception)
    other = CliRunner().invoke(
        cli, [*words, "--directory", str(tmp_path / "other")], standalone_mode=False
    )
    assert other.return_value == 0 and (tmp_path / "other" / "README.md").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--component", "cache"], "name the component"),
        (["--component", "cache", "my_name", "--small"], "--small is for configs"),
        (["--directory", "x", "stdin//stdout"], "--directory goes with --component only"),
        (["--component", "window", "my_name"], "is not one of"),
    ],
)
def test_what_does_not_go_together_is_said(words: list[str], text: str) -> None:
    done = CliRunner().invoke(create_cli, words)
    assert done.exit_code == 2 and text in done.output


def test_the_kinds_of_the_command_are_those_with_templates() -> None:
    [option] = [one for one in create_cli.params if one.name == "kind"]
    assert list(option.type.to_info_dict()["choices"]) == [str(kind) for kind in PACKAGE_KINDS]
