"""`streamer doctor`: its exit code, its JSON, and configs that cannot run here."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from streamer.cli.main import invoke

Examine = Callable[..., tuple[int, dict[str, dict[str, str]]]]


@pytest.fixture
def examine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Examine:
    """Write a config, examine it, and return the exit code and the checks by their names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(config: str, *arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
        Path("c.yaml").write_text(f"http: {{enabled: false}}\n{config}")
        code = invoke(["doctor", "c.yaml", "--json", *arguments])
        out, err = capsys.readouterr()
        assert err == ""
        rows: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
        return code, {row["name"]: row for row in rows}

    return run


def test_a_config_that_can_run_has_no_error(examine: Examine) -> None:
    Path("in.txt").touch()
    code, checks = examine("input: {file: {paths: [in.txt]}}\noutput: {drop: {}}")
    assert code == 0
    assert {"config", "streamer", "java", "memory", "cores", "disk", "clock"} <= set(checks)
    assert checks["input: file"]["status"] == "ok"
    assert "new, a start makes it" in checks["checkpoint"]["detail"]
    assert "port" not in checks
    assert not Path("state").exists()


def test_a_variable_that_is_not_set_is_named(examine: Examine) -> None:
    code, checks = examine("input: {file: {paths: ['${NO_SUCH_VARIABLE}']}}")
    assert (code, checks["config"]["status"]) == (1, "error")
    assert "c.yaml(2,25)" in checks["config"]["detail"]
    assert "NO_SUCH_VARIABLE" in checks["config"]["detail"]


def test_a_package_that_is_not_installed_is_named_with_its_extra(
    examine: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "streamer.core.extras.find_spec", lambda name: None if name == "redis" else find_spec(name)
    )
    code, checks = examine("input: {redis_list: {url: 'redis://127.0.0.1', key: a}}")
    assert (code, checks["config"]["status"]) == (1, "error")
    assert "spark-streamer[redis]" in checks["config"]["detail"] + checks["config"]["remedy"]
    assert checks["extra redis"]["status"] == "none"


def test_a_file_and_a_server_that_are_away_are_named(examine: Examine) -> None:
    code, checks = examine(
        "input: {file: {paths: [none.txt]}}\n"
        "output: {redis_list: {url: 'redis://:hunter2@127.0.0.1:9', key: a}}\n"
    )
    assert code == 1
    assert checks["input: file"]["status"] == checks["output: redis_list"]["status"] == "error"
    assert checks["output: redis_list"]["remedy"].startswith("see that it runs")
    assert "hunter2" not in json.dumps(checks)


def test_a_config_that_is_not_there_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["doctor", str(tmp_path / "none.yaml")]) == 1
    out, _ = capsys.readouterr()
    assert "none.yaml" in out
    assert "→ check the path" in out
    assert " error" in out.splitlines()[-1]
