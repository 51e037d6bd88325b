"""Drawings of what was measured, for the docs: SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.load.growth import CURVES, Point
from tests.bench.load.ramp import Step, knee
from tests.bench.speed import Speed

_WIDE = 7.2, 3.4
_LABELS = {
    "keys": "keys",
    "shards": "shards, on two cores",
    "size": "size of a window, seconds",
}


def draw_ramp(path: Path, windows: Sequence[Step], passing: Sequence[Step]) -> None:
    """Draw how late output is by rate, with the knees marked."""
    figure, axes = _figure()
    for steps, name, color in ((windows, "windows of 1 s", "C0"), (passing, "a mapping", "C1")):
        rates = [step.rate for step in steps]
        axes.plot(rates, [step.p99 for step in steps], "o-", color=color, label=f"{name}, p99")
        axes.plot(rates, [step.p50 for step in steps], "o:", color=color, label=f"{name}, p50")
        axes.axvline(knee(steps).rate, color=color, linewidth=0.8, linestyle="--")
    axes.set(xscale="log", yscale="log", xlabel="events a second", ylabel="seconds late")
    axes.legend(frameon=False)
    _save(figure, path)


def draw_growth(path: Path, found: Mapping[Point, Speed]) -> None:
    """Draw CPU for a million events by keys, shards and size of windows."""
    figure, rows = _figure(len(CURVES))
    for axes, (field, points) in zip(rows, CURVES.items(), strict=True):
        values = [found[point].cpu_per_million for point in points]
        axes.plot([getattr(point, field) for point in points], values, "o-")
        axes.set(xscale="log", xlabel=_LABELS[field], ylim=(0, None))
    rows[0].set_ylabel("CPU seconds for a million")
    _save(figure, path)


def draw_soak(path: Path, courses: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Draw figures by the minute, each as a share of its mean."""
    figure, axes = _figure()
    for name, course in courses.items():
        minutes, values = zip(*course, strict=True)
        mean = sum(values) / len(values)
        axes.plot(minutes, [value / mean for value in values], label=name)
    axes.set(xlabel="minutes", ylabel="of its mean", ylim=(0, 2))
    axes.legend(frameon=False, ncols=2)
    _save(figure, path)


def _figure(columns: int = 1) -> tuple[Any, Any]:
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    # The same figures give the same bytes, and text stays text.
    rcParams.update({"svg.hashsalt": "streamer", "svg.fonttype": "none", "font.size": 9})
    figure = Figure(figsize=_WIDE, layout="constrained")
    return figure, figure.subplots(1, columns, sharey=columns > 1)


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None})
