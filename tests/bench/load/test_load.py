"""What is made of times and figures, without a stream: knees, slopes, quantiles, checks."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from tests.bench.load import growth, live, plots, ramp, soak
from tests.bench.load.live import Came, Reader
from tests.bench.load.ramp import Step
from tests.bench.speed import Speed


def _steps(*p99s: float) -> list[Step]:
    return [Step(1000.0 * (n + 1), 0.5, p99, 1.0, 0.0) for n, p99 in enumerate(p99s)]


def test_the_knee_is_the_fastest_step_that_is_not_late():
    assert ramp.knee(_steps(1.0, 1.1, 0.9, 1.2, 2.6, 9.0)).rate == 4000
    assert ramp.knee(_steps(1.0, 1.1, 1.2)).rate == 3000
    assert ramp.knee(_steps(1.0, 30.0)).rate == 1000
    assert ramp.knee(_steps(4.0, 1.0, 3.0, 1.0, 5.0)).rate == 4000


def test_the_page_of_the_load_gets_the_steps_that_were_measured():
    page = "Text.\n<!-- load: rate -->\nold\n<!-- end -->\nMore.\n"
    filled = ramp.fill_page(page, _steps(1.0, 3.0), _steps(0.5))
    rows = filled.splitlines()
    assert rows[:2] == ["Text.", "<!-- load: rate -->"] and rows[-2:] == ["<!-- end -->", "More."]
    assert [row.count("|") for row in rows[2:-2]] == [8] * 4
    assert rows[4].startswith("| 1,000 | ") and rows[5].startswith("| 2,000 | ")
    assert " 3.00 s |" in rows[5] and rows[5].endswith(" | | | |")
    assert ramp.fill_page(filled, _steps(1.0, 3.0), _steps(0.5)) == filled
    with pytest.raises(ValueError, match="no place"):
        ramp.fill_page("Text.", [], [])


def test_quantiles_count_lines_and_not_blocks():
    came = [Came(11.0, 10.0, 98, 98), Came(15.0, 10.0, 2, 2)]
    assert live.quantile(came, 0.5) == 1.0
    assert live.quantile(came, 0.98) == 1.0
    assert live.quantile(came, 0.99) == 5.0
    with pytest.raises(ValueError, match="nothing came"):
        live.quantile([], 0.5)


@pytest.mark.parametrize("kind", [live.WINDOWS, live.PASSING])
def test_lines_are_read_whole_however_the_pipe_cuts_them(kind):
    at = "2026-01-01T00:00:01.250Z"
    one = {"end": at, "events": 3} if kind == live.WINDOWS else {"at": at}
    text = (json.dumps(one | {"passengers": 1}, separators=(",", ":")) + "\n").encode() * 50
    read, write = os.pipe()
    reader = Reader(read, live._LINES[kind])
    for start in range(0, len(text), 37):
        os.write(write, text[start : start + 37])
    os.close(write)
    until = time.monotonic() + 10
    while sum(one.lines for one in reader.came) < 50 and time.monotonic() < until:
        time.sleep(0.01)
    assert sum(one.lines for one in reader.came) == 50
    assert sum(one.events for one in reader.came) == (150 if kind == live.WINDOWS else 50)
    assert {one.due for one in reader.came} == {1_767_225_601.25} == {reader.newest()}


def _course(values: Iterable[float]) -> soak.Course:
    return list(enumerate(values))


def test_a_slope_is_found_in_noise_and_none_where_there_is_none():
    rng = np.random.default_rng(3)
    grows = soak.trend(_course(100 + np.arange(25) * 2 + rng.normal(0, 3, 25)))
    assert grows.slope == pytest.approx(120, abs=grows.interval)
    assert grows.verdict == "GROWS"
    assert soak.trend(_course(100 + rng.normal(0, 0.3, 25))).verdict == "flat"
    assert soak.trend(_course([7.0] * 25)).verdict == "flat"
    # A slow wave, and what goes up and down by more than it may grow, say little.
    wave = 100 + 20 * np.sin(np.arange(25) / 4)
    assert soak.trend(_course(wave)).verdict.startswith("flat or not")
    # Unless the wave is so small that no two minutes differ by more.
    small = soak.trend(_course(100 + wave / 100))
    assert small.interval > 0.05 * small.mean
    assert small.verdict == "flat"
    assert soak.trend(_course(100 + rng.normal(0, 9, 25))).verdict.startswith("flat or not")
    with pytest.raises(ValueError, match="3 points are too few"):
        soak.trend(_course([1.0, 2.0, 3.0]))


def test_a_line_goes_by_the_times_of_its_figures():
    rare = soak.trend([(5.0 * at, 100 + at) for at in range(10)])
    assert rare.slope == pytest.approx(12)
    assert rare.verdict == "GROWS"


def test_what_lives_in_java_is_what_collections_of_all_of_it_leave():
    log = """[2026-11-23T18:00:00.000+0000] Using Serial
[2026-11-23T18:10:00.000+0000] GC(7) Pause Full (System.gc()) 333M->99M(500M) 301.000ms
[2026-11-23T18:15:30.500+0000] GC(8) Pause Young (Allocation Failure) 900M->500M(980M) 9.000ms
[2026-11-23T18:16:00.000+0000] GC(9) Pause Full (System.gc()) 500M->144M(980M) 301.234ms
[2026-11-23T18:21:00.000+0000] GC(10) Pause Full (Allocation Failure) 970M->145M(980M) 301.234ms
[2026-11-23T18:59:00.000+0000] GC(11) Pause Full (System.gc()) 333M->99M(500M) 301.000ms
"""
    began = datetime(2026, 11, 23, 18, tzinfo=UTC).timestamp()
    assert soak.collected(log, began, 45) == [(16.0, 144.0), (21.0, 145.0)]


def test_growth_counts_every_event():
    lines = [b'{"total_cars": 2, "passengers": 5}', b'{"total_cars": 1, "passengers": 1}']
    assert growth.count_events(3, 6, lines) == ""
    assert "3 cars with 6 passengers; 4 with 6" in growth.count_events(4, 6, lines)
    assert "3 cars with 6 passengers; 3 with 7" in growth.count_events(3, 7, lines)


def test_drawings_are_made(tmp_path: Path):
    found = {
        point: Speed(100, 1.0, 2.0, 3) for points in growth.CURVES.values() for point in points
    }
    plots.draw_growth(tmp_path / "growth.svg", found)
    plots.draw_ramp(tmp_path / "load.svg", _steps(1.0, 3.0), _steps(0.5, 0.6))
    plots.draw_soak(tmp_path / "soak.svg", {"memory, MB": _course([1.0, 1.1])})
    for name in ("growth", "load", "soak"):
        assert "<svg" in (tmp_path / f"{name}.svg").read_text()
