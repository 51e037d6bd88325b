"""Long below the knee: does anything grow that should not?

Each figure is a mean of a minute. A straight line is put through them, the first minutes left out,
and its slope is told with the interval that holds it in 95 of 100 cases.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.bench import report
from tests.bench.load import live
from tests.bench.load.live import MIB, Came, Live
from tests.bench.load.plots import draw_soak
from tests.bench.product import size_of
from tests.faults.vitals import descendants, memory

WARMING = 15
"""Minutes that are not in the line: Java's heap, all of which is collected each five minutes, grows
to its size in two or three of these rounds, and the state to its twenty versions."""

EVERY = 5.0
"""Seconds between two looks."""

FLAT = 0.05
"""The share of its mean by which a figure may grow in an hour and still be called flat."""


@dataclass(frozen=True)
class Trend:
    """A line through the minutes of a figure.

    Attributes:
        mean: of all minutes.
        slope: by which it grows in an hour.
        interval: by how much the slope may be off, at 95 %.
    """

    mean: float
    slope: float
    interval: float

    @property
    def verdict(self) -> str:
        """What can be said: flat is what grows in an hour by at most `FLAT` of its mean."""
        most = FLAT * self.mean
        if self.slope - self.interval > most:
            return "GROWS"
        return "flat" if self.slope + self.interval <= most else "flat or not: too few minutes"


def trend(minutes: Sequence[float]) -> Trend:
    """Put a line through the figures of minutes, by least squares.

    How far its slope may be off takes into account that a minute is like the one before it.

    Raises:
        RuntimeError: there are fewer than four.
    """
    count = len(minutes)
    if count < 4:
        raise RuntimeError(f"{count} minutes are too few for a line: let it run longer")
    hours, values = np.arange(count) / 60, np.asarray(minutes, dtype=float)
    slope, at_zero = np.polyfit(hours, values, 1)
    rest = values - (slope * hours + at_zero)
    # What goes up and down slowly says less in as many minutes: neighbours tell the same.
    alike = float((rest[1:] * rest[:-1]).sum() / square) if (square := (rest**2).sum()) else 0.0
    free = max(count * (1 - max(alike, 0)) / (1 + max(alike, 0)) - 2, 1.0)
    spread = np.sqrt(square / free / ((hours - hours.mean()) ** 2).sum())
    # Student's t is below this, and 2 for many.
    t = 2.0 + 12 / free
    return Trend(float(values.mean()), float(slope), float(t * spread))


def soak(work: Path, rate: float, seconds: float, drawing: Path | None, seed: int = 1) -> None:
    """Send at a rate for a while; print and draw what was seen, minute by minute.

    Args:
        work: a directory that does not exist yet.
        rate: events a second.
        seconds: how long.
        drawing: an SVG file; None for none.
        seed: of the events.

    Raises:
        RuntimeError: an event was lost or doubled, or something grows.
    """
    report.heading(f"soak: {rate:,.0f} events/s, windows of a second, {seconds / 60:.0f} minutes")
    looks: list[tuple[float, dict[str, float]]] = []
    with live.live(live.WINDOWS, work, seed) as running:
        running.feeder.rate.value = rate
        began = time.time()
        while time.time() < began + seconds:
            time.sleep(EVERY)
            running.check()
            looks.append((time.time(), _look(running)))
        # Before all is counted: figures that took so long are told whatever comes of that.
        minutes = _minutes(looks, running.reader.came, began, int(seconds // 60))
        grows = [name for name, values in minutes.items() if not _told(name, trend(values))]
        if drawing is not None:
            draw_soak(drawing, minutes)
    report.note(running.account())
    if grows:
        raise RuntimeError(f"grows: {', '.join(grows)}")


def _minutes(
    looks: Sequence[tuple[float, dict[str, float]]],
    came: Sequence[Came],
    began: float,
    count: int,
) -> dict[str, list[float]]:
    """Return the mean of each figure in each minute, and p99."""
    found: dict[str, list[float]] = {}
    for number in range(WARMING, count):
        first = began + 60 * number
        seen = [figures for at, figures in looks if first <= at < first + 60]
        for name in seen[0]:
            found.setdefault(name, []).append(float(np.mean([one[name] for one in seen])))
        due = [one for one in came if first <= one.due < first + 60]
        found.setdefault("p99, s", []).append(live.quantile(due, 0.99))
    return found


def _look(running: Live) -> dict[str, float]:
    ours = descendants(running.stream.process.pid)
    java = {pid for pid in ours if _name(pid) == "java"}
    return {
        "memory of Java, MB": sum(map(memory, java)),
        "memory of Python, MB": sum(map(memory, ours - java)),
        "file descriptors": float(sum(_entries(pid, "fd") for pid in ours)),
        "threads": float(sum(_entries(pid, "task") for pid in ours)),
        "processes": float(len(ours)),
        "checkpoint, MB": size_of(running.stream.checkpoint) / MIB,
    }


def _told(name: str, found: Trend) -> bool:
    print(
        f"  {name:<21} {found.mean:>10,.2f}   {found.slope:>+10,.2f} ± {found.interval:,.2f} in an "
        f"hour: {found.verdict}",
        flush=True,
    )
    return found.verdict != "GROWS"


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # it has just ended
        return ""


def _entries(pid: int, what: str) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/{what}"))
    except OSError:  # it has just ended
        return 0
