"""The recorder of a run: its history is in the checkpoint, and no fault of it ends the run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamer.config import parse_config
from streamer.engine.report.figure_history import BatchFigures
from streamer.plan import make_plan
from streamer.service.monitoring.stream_figures import StreamFigures
from streamer.service.run.run_recorder import SAVE_INTERVAL_S, RunRecorder
from streamer.spark.checkpoint.checkpoint import Checkpoint

PLAN = make_plan(parse_config("input: { generate: { mapping: root = 1 } }\noutput: { drop: {} }\n"))


class Run:
    """What a recorder asks of a stream."""

    plan = PLAN

    def __init__(self) -> None:
        self.run = self
        self.meters = self.delivery = self.signals = object()
        self.on_delivered: Any = None


def test_a_run_goes_on_with_the_history_of_the_one_before(tmp_path: Path) -> None:
    lines: list[tuple[str, str]] = []

    def log(level: str, text: str, fields: Mapping[str, Any]) -> None:
        lines.append((level, text))

    now = 1_700_000_000.0
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.bind({"input": "x"}, {})
    before = StreamFigures(lambda: now)
    recorder = RunRecorder(before, PLAN, checkpoint, log)
    recorder.mark_start()
    before.history.record(BatchFigures(now - 10, now, now, {"in": 500.0}))
    recorder.close()
    # Nothing flows any more.
    assert before.rates.rate("in") is None
    after = StreamFigures(lambda: now + SAVE_INTERVAL_S)
    RunRecorder(after, PLAN, checkpoint, log).mark_start()
    assert after.history.read(now - 10, now - 1, lambda _: True).values["in"] == [50, 50]
    assert [one.kind for one in after.markers()] == ["start", "stop", "restart"]
    assert lines == []
    (tmp_path / "checkpoint" / "history").write_bytes(b"not a history")
    begun = StreamFigures(lambda: now)
    RunRecorder(begun, PLAN, checkpoint, log)
    assert begun.history.is_empty
    [(level, text)] = lines
    assert level == "WARN" and "is left out: it is damaged" in text
    checkpoint.close()


def test_a_fault_of_the_recorder_ends_no_micro_batch_and_is_said_once(tmp_path: Path) -> None:
    lines: list[str] = []
    checkpoint = Checkpoint(tmp_path)
    recorder = RunRecorder(
        StreamFigures(), PLAN, checkpoint, lambda level, text, fields: lines.append(text)
    )
    run: Any = Run()
    recorder.attach(run)
    for _ in range(3):
        run.on_delivered(1.0, 2.0, 3.0)
    [line] = lines
    assert "The history leaves figures out: AttributeError" in line
    checkpoint.close()
