"""Figures of a stream after a restart: those of its checkpoint, with their time, and no zeros."""

from __future__ import annotations

from pathlib import Path

from streamer.config import parse_config
from streamer.engine.report.stream_metrics import Snapshot
from streamer.service.monitoring.earlier_figures import (
    NEW_FIGURES,
    UNKNOWN_FIGURES,
    EarlierFigures,
    FiguresFile,
)
from streamer.service.monitoring.stream_view import StreamState, StreamView, shown_figures

NEWEST = Snapshot(messages=900, open_windows=3, held=120, dropped={"late": 4}, batch=17, size=800)


def test_figures_outlive_the_program(tmp_path: Path) -> None:
    moments = iter((10.0, 10.5, 12.0, 12.1))
    (tmp_path / "streamer.json").touch()
    file = FiguresFile(tmp_path, lambda: next(moments))
    assert file.load() == UNKNOWN_FIGURES
    file.save(Snapshot(messages=1, batch=0))
    file.save(Snapshot(messages=2, batch=1))  # within a second of the one before
    assert FiguresFile(tmp_path).load().messages == 1
    file.save(NEWEST)
    loaded = FiguresFile(tmp_path).load()
    assert loaded == EarlierFigures(12.0, 900, 3, 120, 800, 17, {"late": 4})
    assert loaded.as_of_text == "1970-01-01T00:00:12Z"
    file.save(Snapshot(messages=5, batch=18), at_once=True)
    assert FiguresFile(tmp_path).load().messages == 5
    file.delete()
    assert file.load() == UNKNOWN_FIGURES


def test_without_a_checkpoint_they_are_zero_and_a_damaged_file_is_unknown(tmp_path: Path) -> None:
    assert FiguresFile(tmp_path / "new").load() == NEW_FIGURES
    for text in ("{", "[]", '{"what": 1}', '"x"'):
        (tmp_path / "figures.json").write_text(text)
        assert FiguresFile(tmp_path).load() == UNKNOWN_FIGURES
    # A disk that is full, or a directory that is gone, is no error of the stream.
    FiguresFile(tmp_path / "nowhere").save(NEWEST)


def test_they_are_shown_until_the_new_run_has_delivered_something() -> None:
    view = StreamView(parse_config("input: { generate: { mapping: root = 1 } }", env={}))
    view.earlier_figures = EarlierFigures(12.0, 900, 3, 120, 800, 17, {})
    assert shown_figures(view, view.current_state()) == view.earlier_figures
    view.set_running(lambda: StreamState(Snapshot(), {}))
    assert shown_figures(view, view.current_state()).as_of == 12.0
    now = StreamState(Snapshot(messages=901, open_windows=3, batch=18), {})
    figures = shown_figures(view, now)
    assert (figures.as_of, figures.messages, figures.micro_batch) == (None, 901, 18)
