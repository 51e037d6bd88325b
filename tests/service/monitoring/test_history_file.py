"""The file of figures: a restart finds them, and what is damaged or foreign is left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamer.engine.report.figure_history import BatchFigures
from streamer.service.monitoring.history_file import (
    MAX_FILE_BYTES,
    load_history,
    load_history_at_rest,
    save_history,
)
from streamer.service.monitoring.stream_figures import MarkerKind, StreamFigures

NOW = 1_700_000_000.0
MINE = "this-checkpoint"


def saved(path: Path, columns: int = 0) -> StreamFigures:
    figures = StreamFigures(lambda: NOW)
    busy = {f"busy:root.pipeline.processors.{n}": 0.1 * n for n in range(columns)}
    for number in range(400):
        at = NOW - 3_600 + number * 9
        figures.history.record(BatchFigures(at, at + 9, at + 9, {"in": 450.0 + number, **busy}))
    figures.mark(MarkerKind.DEPLOY, "revision 2")
    save_history(path, MINE, figures)
    return figures


def read(figures: StreamFigures) -> object:
    return figures.history.read(NOW - 3_600, NOW, lambda _: True)


def test_a_restart_finds_figures_and_markers(tmp_path: Path) -> None:
    path = tmp_path / "history"
    before, after = saved(path, 20), StreamFigures(lambda: NOW)
    after.mark(MarkerKind.START)
    assert load_history(path, MINE, after) == ""
    assert read(after) == read(before)
    assert [one.kind for one in after.markers()] == ["deploy", "start"]
    assert path.stat().st_size < 60_000
    assert path.stat().st_mode & 0o077 == 0
    assert [one.name for one in tmp_path.iterdir()] == ["history"]
    # A run in the same program has them already.
    save_history(path, MINE, StreamFigures(lambda: NOW))
    assert load_history(path, MINE, after) == ""
    assert read(after) == read(before)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda whole: whole[:-7], "check sum"),
        (lambda whole: whole[:40] + b"?" + whole[41:], "check sum"),
        (lambda whole: b"", "begins with something else"),
        (lambda whole: b"PK\x03\x04" + whole, "begins with something else"),
        (lambda whole: whole + b"x" * MAX_FILE_BYTES, "more than 1,000,000 bytes"),
    ],
)
def test_a_damaged_file_is_left_out(
    tmp_path: Path, damage: Callable[[bytes], bytes], reason: str
) -> None:
    path = tmp_path / "history"
    saved(path)
    path.write_bytes(damage(path.read_bytes()))
    figures = StreamFigures(lambda: NOW)
    assert reason in load_history(path, MINE, figures)
    assert figures.history.is_empty and figures.markers() == []


def test_a_stream_that_does_not_run_has_the_history_of_its_last_run(tmp_path: Path) -> None:
    saved(tmp_path / "history")
    figures = StreamFigures(lambda: NOW)
    load_history_at_rest(tmp_path, figures)
    assert figures.history.is_empty  # without a record, nobody knows whose it is
    for record in (b"not JSON", b"[1]", b'{"identity": "another"}'):
        (tmp_path / "streamer.json").write_bytes(record)
        load_history_at_rest(tmp_path, figures)
        assert figures.history.is_empty
    (tmp_path / "streamer.json").write_text(f'{{"identity": "{MINE}"}}')
    load_history_at_rest(tmp_path, figures)
    assert not figures.history.is_empty


def test_a_file_of_another_checkpoint_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "history"
    saved(path)
    figures = StreamFigures(lambda: NOW)
    assert load_history(path, "another", figures) == "it is of another checkpoint"
    assert figures.history.is_empty
    assert load_history(tmp_path / "nothing", MINE, figures) == ""
