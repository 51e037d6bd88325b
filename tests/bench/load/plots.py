"""Drawings of what was measured, for the docs: SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.latency.figures import Latency
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


def draw_latency(path: Path, found: Sequence[Latency]) -> None:
    """Draw what a message takes by rate, and a window after its close by size, beside others."""
    figure, (events, windows) = _figure(2)
    for program, color in (("streamer", "C0"), ("Benthos", "C1")):
        lines = [one for one in found if (one.program, one.part) == (program, "stateless")]
        _draw_quantiles(events, [one.rate for one in lines], lines, program, color)
    for name, color in (("without keys", "C0"), ("of 1,000 keys", "C2")):
        for rate, shade in ((100, 0.5), (1_000, 1.0)):
            lines = [one for one in found if one.size and name in one.name and one.rate == rate]
            label = f"{name}, {rate:,}/s"
            _draw_quantiles(windows, [one.size for one in lines], lines, label, color, shade)
    for axes, with_state in ((events, False), (windows, True)):
        bare = [one for one in found if one.part == "floor" and ("state" in one.name) is with_state]
        for one in bare:
            axes.axhline(one.p50 * 1e3, color="0.6", linewidth=0.8, label="bare Spark, p50")
        axes.set(xscale="log", yscale="log")
        if axes.get_legend_handles_labels()[1]:
            axes.legend(frameon=False, fontsize=7)
    events.set(xlabel="events a second", ylabel="ms, p50 solid, p99 dotted")
    windows.set(xlabel="size of a window, seconds")
    _save(figure, path)


def _draw_quantiles(
    axes: Any,
    places: Sequence[float],
    found: Sequence[Latency],
    label: str,
    color: str,
    shade: float = 1.0,
) -> None:
    if found:
        p50, p99 = ([getattr(one, q) * 1e3 for one in found] for q in ("p50", "p99"))
        axes.plot(places, p50, "o-", color=color, alpha=shade, label=label, markersize=3)
        axes.plot(places, p99, "o:", color=color, alpha=shade, markersize=3)


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
