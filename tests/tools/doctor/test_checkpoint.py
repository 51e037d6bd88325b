"""Checkpoints that are damaged, in use, or of something else: what is said, and the remedy."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from streamer.core.durations import SECOND
from streamer.spark.checkpoint.checkpoint import Checkpoint
from streamer.tools.doctor.checkpoint import check_checkpoint
from streamer.tools.doctor.diagnosis import Diagnosis, Severity

FINGERPRINT = {"input": "file", "window": "none", "key": "", "shards": 2}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint as a stream leaves it after two micro-batches."""
    directory = tmp_path / "c"
    held = Checkpoint(directory)
    held.bind(FINGERPRINT, {})
    held.close()
    for log in ("offsets", "commits"):
        (directory / "spark" / log).mkdir(parents=True)
        for number in range(2):
            (directory / "spark" / log / str(number)).write_text("v1\n{}")
    os.utime(directory / "spark" / "commits" / "1", (1_000, 1_000))
    os.utime(directory / "spark" / "commits" / "0", (1, 1))
    return directory


def examine(directory: Path, window: str = "none") -> list[Diagnosis]:
    wanted = {**FINGERPRINT, "window": window}
    return list(check_checkpoint(str(directory), wanted, lambda: 1_090 * SECOND))


def test_a_whole_one_says_its_format_and_age(checkpoint: Path) -> None:
    text = f"{checkpoint}: format 1, its newest micro-batch is 1m30s old"
    assert examine(checkpoint) == [Diagnosis("checkpoint", Severity.OK, text)]


def test_a_new_one_is_not_made(tmp_path: Path) -> None:
    (found,) = examine(tmp_path / "new")
    assert (found.severity, "new" in found.detail) == ("ok", True)
    assert not (tmp_path / "new").exists()
    (found,) = examine(tmp_path)
    assert found.detail.endswith("no stream has begun in it")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (found,) = examine(tmp_path / "file")
    assert (found.severity, found.remedy) == ("error", "name another one with --checkpoint")


def test_one_that_another_program_uses_names_it(checkpoint: Path) -> None:
    held = Checkpoint(checkpoint)
    try:
        warning, described = examine(checkpoint)
    finally:
        held.close()
    assert warning.severity == Severity.WARNING
    assert f":{os.getpid()})" in warning.detail
    assert "1m30s old" in described.detail


@pytest.mark.parametrize("text", ["", '{"format": 1', '{"format": 1, "checksum": 5}'])
def test_a_damaged_record_is_an_error(checkpoint: Path, text: str) -> None:
    (checkpoint / "streamer.json").write_text(text)
    (found,) = examine(checkpoint)
    assert found.severity == Severity.ERROR
    assert f"{checkpoint}/streamer.json cannot be read" in found.detail
    assert "backup" in found.remedy


def test_a_damaged_log_is_named_by_its_file(checkpoint: Path) -> None:
    (checkpoint / "spark" / "offsets" / "1").write_text("v1")
    (found,) = examine(checkpoint)
    assert found.severity == Severity.ERROR
    assert found.detail == f"{checkpoint}/spark/offsets/1 is damaged"
    assert "backup" in found.remedy


def test_one_of_another_format_asks_for_the_version_that_wrote_it(checkpoint: Path) -> None:
    record = json.loads((checkpoint / "streamer.json").read_text())
    del record["checksum"]
    (checkpoint / "streamer.json").write_text(json.dumps({**record, "format": 7}))
    (found,) = examine(checkpoint)
    assert "has format 7" in found.detail
    assert found.remedy.startswith("run the version that wrote it")


def test_one_that_a_config_does_not_fit_is_an_error(checkpoint: Path) -> None:
    fits, refused = examine(checkpoint, "session(1m)")
    assert (fits.severity, refused.severity) == ("ok", "error")
    assert refused.remedy


def test_those_of_a_service_are_all_checked(checkpoint: Path) -> None:
    other = checkpoint.parent / "other"
    other.mkdir()
    (other / "streamer.json").write_text("{")
    found = list(check_checkpoint(str(checkpoint.parent), None, lambda: 1_090 * SECOND))
    assert [one.severity for one in found] == ["ok", "error"]
    assert str(other) in found[1].detail
