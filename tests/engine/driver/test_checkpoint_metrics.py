"""How large a checkpoint is, and what is free on its disk."""

from __future__ import annotations

from pathlib import Path

from streamer.engine.driver.checkpoint_metrics import CheckpointMetrics


def test_a_checkpoint_is_measured_once_a_minute_with_all_that_is_below_it(tmp_path: Path) -> None:
    (tmp_path / "state" / "0").mkdir(parents=True)
    (tmp_path / "state" / "0" / "1.delta").write_bytes(b"x" * 700)
    (tmp_path / "record").write_bytes(b"x" * 11)
    at = [0.0]
    figures = CheckpointMetrics(tmp_path, whole=True, now=lambda: at[0])
    assert figures.read_gauges()["checkpoint_bytes"] == 711
    (tmp_path / "more").write_bytes(b"x" * 5)
    at[0] = 59.0
    assert figures.read_gauges()["checkpoint_bytes"] == 711
    at[0] = 61.0
    found = figures.read_gauges()
    assert found["checkpoint_bytes"] == 716
    assert found["checkpoint_free_bytes"] > 0


def test_of_a_checkpoint_elsewhere_only_this_machines_disk_is_told(tmp_path: Path) -> None:
    assert set(CheckpointMetrics(tmp_path, whole=False).read_gauges()) == {"checkpoint_free_bytes"}


def test_one_that_is_gone_has_no_figures(tmp_path: Path) -> None:
    assert CheckpointMetrics(tmp_path / "gone", whole=True).read_gauges() == {}
