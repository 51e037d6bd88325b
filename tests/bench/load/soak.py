"""Long below the knee: does anything grow that should not?

Each figure is a mean of a minute; what lives in Java's heap is what a collection of all of it
leaves. A straight line is put through them, the first minutes left out, and its slope is told with
the interval that holds it in 95 of 100 cases.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from tests.bench import report
from tests.bench.load import live
from tests.bench.load.live import MIB, Came, Live
from tests.bench.load.plots import draw_soak
from tests.bench.product import size_of
from tests.faults.vitals import memory
from tests.processes import descendants

WARMING = 15
"""Minutes that are not in the line: Java's heap, all of which is collected each five minutes, grows
to its size in two or three of these rounds, and the state to its twenty versions."""

EVERY = 5.0
"""Seconds between two looks."""

Course = Sequence[tuple[float, float]]
"""A figure: minutes since the beginning, and what it was."""

_COLLECTED = re.compile(r"\[([^]]+)\] GC\(\d+\) Pause Full .*->(\d+)M\(")
"""Of Java's log: when all of the heap was collected, and what was left."""

FEWEST = 4
"""Points that a line needs."""

FLAT = 0.05
"""The share of its mean by which a figure may grow in an hour and still be called flat."""


@dataclass(frozen=True)
class Trend:
    """A line through the minutes of a figure.

    Attributes:
        mean: of all minutes.
        slope: by which it grows in an hour.
        interval: by how much the slope may be off, at 95 %.
        least: of all minutes.
        greatest: of all minutes.
        hours: from the first minute to the last.
    """

    mean: float
    slope: float
    interval: float
    least: float
    greatest: float
    hours: float

    @property
    def verdict(self) -> str:
        """What can be said: flat is what grows in an hour by at most `FLAT` of its mean.

        For sure that is so by the slope and its interval, or when no two minutes differ by more
        than that, as of a figure whose slow waves are small: they make the interval wide.
        """
        most = FLAT * self.mean
        if self.slope - self.interval > most:
            return "GROWS"
        if self.slope + self.interval <= most or self.greatest - self.least <= most * self.hours:
            return "flat"
        return "flat or not: too few minutes"


def trend(course: Course) -> Trend:
    """Put a line through a figure, by least squares.

    How far its slope may be off takes into account that a minute is like the one before it: of
    alike ones fewer count (Santer et al., J. Geophys. Res. 105, 2000, D6).

    Raises:
        ValueError: there are fewer than `FEWEST`.
    """
    count = len(course)
    if count < FEWEST:
        raise ValueError(f"{count} points are too few for a line")
    hours, values = np.asarray(course, dtype=float).T / [[60], [1]]
    slope, at_zero = np.polyfit(hours, values, 1)
    rest = values - (slope * hours + at_zero)
    # What goes up and down slowly says less in as many minutes: neighbours tell the same.
    alike = float((rest[1:] * rest[:-1]).sum() / square) if (square := (rest**2).sum()) else 0.0
    free = max(count * (1 - max(alike, 0)) / (1 + max(alike, 0)) - 2, 1.0)
    spread = np.sqrt(square / free / ((hours - hours.mean()) ** 2).sum())
    from scipy import stats  # half a second, of which all tests would have their share

    interval = stats.t.ppf(0.975, free) * spread
    return Trend(
        float(values.mean()),
        float(slope),
        float(interval),
        float(values.min()),
        float(values.max()),
        float(hours[-1] - hours[0]),
    )


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
    work.mkdir()
    log = work / "java.log"
    options = {"spark.driver.extraJavaOptions": f"-Xlog:gc:file={log}:time:filecount=0"}
    with live.live(live.WINDOWS, work / "stream", seed, options) as running:
        running.feeder.rate.value = rate
        began, end = time.time(), ""
        while not end and time.time() < began + seconds:
            time.sleep(EVERY)
            try:
                running.check()
                looks.append((time.time(), _look(running)))
            except RuntimeError as e:
                end = str(e)
        # Before all is counted: figures that took so long are told whatever comes of that.
        took = (time.time() - began) / 60
        courses = _minutes(looks, running.reader.came, began, int(took))
        courses["lives in Java, MB"] = collected(log.read_text(), began, took)
        grows = [name for name, course in courses.items() if not _told(name, course)]
        if drawing is not None:
            draw_soak(drawing, {name: course for name, course in courses.items() if course})
        if end:
            raise RuntimeError(end)
    report.note(running.account())
    if grows:
        raise RuntimeError(f"grows: {', '.join(grows)}")


def collected(log: str, began: float, minutes: float) -> Course:
    """Return what was left of Java's heap when all of it was collected, MB.

    Args:
        log: Java's, of its collections.
        began: Unix time.
        minutes: how long; what was before `WARMING` and after them is left out.
    """
    found = [
        ((datetime.strptime(at, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp() - began) / 60, float(left))
        for at, left in _COLLECTED.findall(log)
    ]
    return [(at, left) for at, left in found if WARMING <= at <= minutes]


def _minutes(
    looks: Sequence[tuple[float, dict[str, float]]],
    came: Sequence[Came],
    began: float,
    count: int,
) -> dict[str, Course]:
    """Return the mean of each figure in each minute, and p99."""
    found: dict[str, list[tuple[float, float]]] = {}
    for number in range(WARMING, count):
        first = began + 60 * number
        seen = [figures for at, figures in looks if first <= at < first + 60]
        for name in seen[0]:
            mean = float(np.mean([one[name] for one in seen]))
            found.setdefault(name, []).append((number, mean))
        # Where the stream has ended, the last ones are still to come.
        if due := [one for one in came if first <= one.due < first + 60]:
            found.setdefault("p99, s", []).append((number, live.quantile(due, 0.99)))
    return dict(found)


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


def _told(name: str, course: Course) -> bool:
    """Tell what there is to tell of a figure; return whether it may be flat."""
    if len(course) < FEWEST:
        print(f"  {name:<21} too few minutes for a line: let it run longer", flush=True)
        return True
    found = trend(course)
    print(
        f"  {name:<21} {found.mean:>10,.2f} ({found.least:,.2f} to {found.greatest:,.2f})   "
        f"{found.slope:>+10,.2f} ± {found.interval:,.2f} in an hour, "
        f"at most {(found.slope + found.interval) / found.mean:+.0%}: {found.verdict}",
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
