"""What is counted of windows: how many close, how late, and how old events are."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.engine.report.stream_metrics import series_key

from tests.engine.stream import (Run, write_lines)

SECOND = 10**9
T = 1_700_000_000 * SECOND
AT = T // SECOND
DELAY = series_key("window_close_delay_seconds", {})
LAG = series_key("event_time_lag_seconds", {})
CLOSED = series_key("window_closed", {})
GRID = """
input: { file: { paths: [in] } }
buffer: { system_window: { timestamp_mapping: root = this.at, size: 10s } }
pipeline: { processors: [ { group_by_value: { value: '${! this.k }' } } ] }
spark: { shards: 2 }
"""
KEYED = """
input: { file: { paths: [in] } }
buffer:
  session_window:
    timestamp_mapping: root = this.at
    key_mapping: root = this.k
    gap: 5s
    end_of_input: keep
spark: { shards: 2 }
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "in"
    path.touch()
    return path


def test_a_window_that_several_shards_have_some_of_closes_once(source: Path) -> None:
    write_lines(source, [{"at": AT + 1, "k": n} for n in range(50)])
    run = Run(GRID)
    run.clock = T + 3 * SECOND
    run.step(T + 3 * SECOND, tries=2)
    assert all(status["held"] for status in run.delivery.statuses.values())
    run.clock = T + 12 * SECOND
    batch = run.step(T + 10 * SECOND, tries=3)
    meters = run.delivery.metrics
    assert meters.counts[CLOSED] == 1
    # A micro-batch whose commit failed comes again.
    run.delivery.deliver(run.state.number - 1, run.frames(batch))
    assert meters.counts[CLOSED] == 1
    times = meters.times()[DELAY]
    assert (times.count, times.total) == (1, 2 * SECOND)


def test_windows_of_keys_are_counted_by_their_shards(source: Path) -> None:
    write_lines(source, [{"at": AT + 1, "k": n} for n in range(40)])
    run = Run(KEYED)
    run.step(T + 3 * SECOND, tries=2)
    assert (run.snapshot.closed, run.snapshot.held) == (0, 40)
    assert run.snapshot.size > 40
    write_lines(source, [{"at": AT + 100, "k": n} for n in range(40)])
    run.step(T + 110 * SECOND, tries=2)
    assert run.snapshot.closed == 40
    assert run.delivery.metrics.times()[DELAY].count > 0


def test_the_age_of_the_newest_event_is_that_of_the_last_message(source: Path) -> None:
    write_lines(source, [{"at": AT - 90, "k": 1}, {"at": AT - 2, "k": 1}])
    run = Run(GRID)
    run.clock = T + SECOND // 2
    run.step(T, tries=2)
    counts = run.delivery.metrics.counts
    assert counts[LAG] == 2.5
    # Without messages there is nothing to tell it by.
    run.clock = T + 60 * SECOND
    run.step(T + 60 * SECOND)
    assert counts[LAG] == 2.5
    write_lines(source, [{"k": 1}])
    run.step(T + 61 * SECOND)
    assert counts[LAG] == 2.5


def test_every_micro_batch_is_timed(source: Path) -> None:
    run = Run(GRID)
    run.step(T)
    run.step(T + SECOND)
    assert run.delivery.metrics.times()[series_key("batch_duration_seconds", {})].count == 2
