"""`streamer rescale` as it is called; what it does to windows is tested with Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.cli.main import invoke
from streamer.spark.checkpoint.checkpoint import Checkpoint
from tests.spark.checkpoint.test_rescaling import PLAN, begun, text_of


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("windows.yaml").write_text(text_of("folded", Path("in.jsonl"), "keep"))
    Path("plain.yaml").write_text("input: {stdin: {}}\n")


def call(*arguments: str) -> int:
    return invoke(["rescale", "windows.yaml", "--checkpoint", "c", *arguments])


def test_it_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    begun(Path("c")).close()
    assert call("--shards", "3") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "c: 2 shards are now 3; open windows: 0, messages in them: 0; " in first
    assert second.startswith("The former state stays in ") and "c/seed-1 until" in second
    checkpoint = Checkpoint("c")
    assert checkpoint.check_fingerprint(PLAN.fingerprint)["shards"] == 3
    checkpoint.close()


def test_the_same_number_is_nothing_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = begun(Path("c"))
    record = checkpoint.read_record()
    checkpoint.close()
    assert call("--shards", "2") == 0
    assert "has 2 shards already; nothing to do" in capsys.readouterr().out
    checkpoint = Checkpoint("c")
    assert checkpoint.read_record() == record
    checkpoint.close()


def test_a_stream_that_runs_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = begun(Path("c"))
    assert call("--shards", "3") == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "another streamer uses the checkpoint" in line
    checkpoint.close()


@pytest.mark.parametrize("number", ["0", "-1", "many", "1.5"])
def test_a_wrong_number_is_refused(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--shards", number) == 1
    assert "Invalid value for '--shards'" in capsys.readouterr().err


def test_without_a_checkpoint_nothing_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--shards", "3") == 1
    assert "there is no checkpoint c: set spark.shards" in capsys.readouterr().err
    assert not Path("c").exists()


def test_a_config_without_windows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    begun(Path("c")).close()
    assert invoke(["rescale", "plain.yaml", "--checkpoint", "c", "--shards", "3"]) == 1
    assert "has no windows" in capsys.readouterr().err
