from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamer.cli.main import invoke


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "in/good.yaml": "output: {drop: {}}\n",
        "in/good_benthos_test.yaml": "tests: [{name: a, input_batch: [], output_batches: []}]\n",
        "in/deep/lacking.yaml": "output: {pusher: {}}\n",
        "in/deep/wrong.yaml": "inptu: {}\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_a_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["migrate", "in"]) == 1
    out = capsys.readouterr().out
    assert "in/good.yaml: runs unchanged, 1 unit test\n" in out
    assert "in/deep/lacking.yaml: lacks components\n  (1,10) output pusher is missing" in out
    assert "in/deep/wrong.yaml: needs changes\n  (1,1) field inptu not recognised" in out
    assert "\n     1  output pusher\n" in out
    assert out.endswith(
        "3 configs: 1 unchanged, 1 with changes, 1 not yet. "
        "1 unit test: `streamer test` runs them.\n"
    )


def test_all_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["migrate", "in/good.yaml"]) == 0
    out = capsys.readouterr().out
    assert "Missing components" not in out
    assert "0.0.0.0:4195" in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["migrate", "--format", "json", "in"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["file"]: row["verdict"] for row in rows} == {
        "in/deep/lacking.yaml": "lacks_components",
        "in/deep/wrong.yaml": "needs_changes",
        "in/good.yaml": "runs",
    }


def test_nothing_is_written_unless_asked(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    invoke(["migrate", "in"])
    assert sorted(folder.rglob("*")) == before


def test_copies_are_written_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["migrate", "--write", "out", "in"]) == 1
    copies = sorted(str(path.relative_to(folder)) for path in folder.glob("out/**/*.yaml"))
    assert copies == ["out/deep/lacking.yaml", "out/deep/wrong.yaml", "out/good.yaml"]
    assert (folder / "in/good.yaml").read_text() == "output: {drop: {}}\n"
    capsys.readouterr()
    assert invoke(["migrate", "--write", "out", "in"]) == 1
    assert "is there already; name another directory" in capsys.readouterr().err


def test_a_directory_without_configs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "empty").mkdir()
    assert invoke(["migrate", "empty"]) == 1
    assert "there is no config in empty" in capsys.readouterr().err
