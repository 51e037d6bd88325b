"""The windows of a backfill are those of the stream, whatever kind they are."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.engine.offline.arrival_clock import ArrivalTimes
from streamer.engine.offline.scripted import ScriptedMessage
from streamer.service.backfill.division import choose_division
from streamer.service.backfill.tasks import Bounds
from streamer.tools.simulation.simulate import simulate_stream

from .made_events import (
    MONTH_S,
    NEW_YEAR_S,
    make_events,
    make_stream_plan,
    run_backfill,
    run_stream,
    write_events,
)

SEED = int(time.time()) // 3600
TIME = "timestamp_mapping: root = this.t"
KEYED = "key_mapping: root = this.k"

BUFFERS = {
    "tumbling": ("ranges", f"tumbling_window: {{{TIME}, size: 6h, allowed_lateness: 1h}}"),
    "hopping": (
        "ranges",
        f"hopping_window: {{{TIME}, {KEYED}, size: 9h, every: 2h, allowed_lateness: 3h}}",
    ),
    "days": (
        "ranges",
        f"tumbling_window: {{{TIME}, {KEYED}, size: 1d, timezone: Europe/Berlin}}",
    ),
    "each": ("ranges", f"tumbling_window: {{{TIME}, {KEYED}, size: 8h, emit: each}}"),
    "forward": (
        "ranges",
        f"sliding_window: {{{TIME}, {KEYED}, size: 5h, mode: forward, allowed_lateness: 1h}}",
    ),
    "kafka": ("ranges", f"sliding_window: {{{TIME}, {KEYED}, size: 5h, mode: kafka}}"),
    "event": (
        "ranges",
        f"sliding_window: {{{TIME}, {KEYED}, size: 5h, mode: event, allowed_lateness: 1h}}",
    ),
    "session": (
        "keys",
        f"session_window: {{{TIME}, {KEYED}, gap: 2h30m, allowed_lateness: 1h}}",
    ),
    "cut session": (
        "keys",
        f"session_window: {{{TIME}, {KEYED}, gap: 6h, max_duration: 1d}}",
    ),
    "session of all": ("whole", f"session_window: {{{TIME}, gap: 20m}}"),
    "own clocks": (
        "keys",
        f"tumbling_window: {{{TIME}, {KEYED}, size: 6h, clock_scope: key}}",
    ),
    "count": ("keys", f"count_window: {{{KEYED}, count: 7, every: 3}}"),
}


@pytest.mark.parametrize("name", BUFFERS)
def test_ten_ranges_give_the_windows_of_the_stream(name: str, tmp_path: Path) -> None:
    division, buffer = BUFFERS[name]
    events = make_events(SEED, 500)
    write_events(tmp_path, events)
    plan = make_stream_plan(tmp_path, f"buffer:\n  {buffer}")
    assert choose_division(plan).kind == division

    outcome, rows = run_backfill(tmp_path, plan)

    cut = random.Random(SEED).randint(20, 200)
    assert rows == run_stream(plan, events, cut), f"seed {SEED}"
    assert outcome.tasks == {"ranges": 10, "keys": 3, "whole": 1}[division]
    assert len(rows) > 20


@pytest.mark.parametrize("slide", ["", ", slide: 6h"])
def test_windows_by_the_clock_on_the_wall_take_event_times_for_arrivals(
    slide: str, tmp_path: Path
) -> None:
    events = make_events(SEED, 150)
    write_events(tmp_path, events)
    buffer = f"system_window: {{{TIME}, size: 24h, allowed_lateness: 1h{slide}}}"
    plan = make_stream_plan(tmp_path, f"buffer:\n  {buffer}")

    _, rows = run_backfill(tmp_path, plan, micro_batch=15)

    sample = [ScriptedMessage(Message.from_value(one)) for one in events]
    simulated = simulate_stream(plan, sample, ArrivalTimes(), lambda: 0)
    assert rows == sorted(one.message.raw.decode() for one in simulated.emitted), f"seed {SEED}"


def test_late_messages_are_dropped_once_wherever_ranges_are_cut(tmp_path: Path) -> None:
    write_events(tmp_path, make_events(SEED, 500))
    buffer = BUFFERS["tumbling"][1]
    plan = make_stream_plan(tmp_path, f"buffer:\n  {buffer}")

    counts = []
    for ranges in (1, 3, 11):
        outcome, _ = run_backfill(tmp_path, plan, ranges, work=f"work-{ranges}")
        counts.append((outcome.windows, outcome.dropped))

    assert counts[0] == counts[1] == counts[2]
    assert counts[0][1] is not None and counts[0][1]["late"] > 5


@pytest.mark.parametrize("name", ["tumbling", "hopping", "forward", "session"])
def test_bounds_choose_windows_by_their_ends(name: str, tmp_path: Path) -> None:
    events = make_events(SEED, 500)
    write_events(tmp_path, events)
    plan = make_stream_plan(tmp_path, f"buffer:\n  {BUFFERS[name][1]}")
    third = MONTH_S // 3
    times = [None, *((NEW_YEAR_S + third * n) * SECOND for n in (1, 2)), None]

    rows: list[str] = []
    for number in range(3):
        bounds = Bounds(times[number], times[number + 1])
        rows += run_backfill(tmp_path, plan, 4, 40, bounds, work=f"work-{number}")[1]

    assert sorted(rows) == run_stream(plan, events, 100), f"seed {SEED}"


def test_a_stream_without_windows_is_processed_once(tmp_path: Path) -> None:
    events = make_events(SEED, 300)
    write_events(tmp_path, events)
    mapping = "pipeline: {processors: [{mapping: 'root = this.id.string()'}]}\n"
    plan = make_stream_plan(tmp_path, "", mapping)

    _, rows = run_backfill(tmp_path, plan)

    assert rows == sorted(str(one["id"]) for one in events)


def test_windows_behind_windows_run_as_one_range(tmp_path: Path) -> None:
    events = make_events(SEED, 400)
    write_events(tmp_path, events)
    buffers = f"""
buffers:
  - label: hours
    tumbling_window: {{{TIME}, {KEYED}, size: 3h, allowed_lateness: 1h}}
    pipeline:
      processors:
        - mapping: |
            root = {{"n": batch_size(), "k": @window_key}}
            root = if batch_index() > 0 {{ deleted() }}
  - label: days
    from: hours
    tumbling_window: {{size: 1d}}
    pipeline:
      processors:
        - mapping: |
            root.end = @window_end_timestamp
            root.sum = json("n").from_all().sum()
            root = if batch_index() > 0 {{ deleted() }}
"""
    plan = make_stream_plan(tmp_path, buffers, "")
    assert choose_division(plan).kind == "whole"

    _, rows = run_backfill(tmp_path, plan)

    assert rows == run_stream(plan, events, 400)
