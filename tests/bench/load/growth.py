"""What makes an event dearer: keys, shards, the size of windows. One changes, the others stay.

The stream is behind, on files, and takes all cores: CPU seconds for a million events are measured,
not how late something is. Every event is counted in what comes out.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tests.bench import report, traffic
from tests.bench.speed import Speed
from tests.bench.windows import jobs, measure

FILES = 10
ORIGIN = 1_767_225_600
PACE = 100_000
"""Events in a second of event time."""

KEYS = 1, 100, 1_000, 10_000, 100_000, 1_000_000
SHARDS = 1, 2, 4, 8, 16
SIZES = 1, 10, 60, 3_600, 86_400


@dataclass(frozen=True)
class Point:
    """What is measured.

    Attributes:
        keys: traffic lights, which are drawn at random.
        shards: of the state.
        size: of a window, seconds.
    """

    keys: int = 1_000
    shards: int = 2
    size: int = 10


USUAL = Point()
CURVES: dict[str, tuple[Point, ...]] = {
    "keys": tuple(replace(USUAL, keys=one) for one in KEYS),
    "shards": tuple(replace(USUAL, shards=one) for one in SHARDS),
    "size": tuple(replace(USUAL, size=one) for one in SIZES),
}
"""Points by the field in which they differ."""


def growth(work: Path, events: int, master: str) -> dict[Point, Speed]:
    """Measure the points of all curves.

    Args:
        work: a directory that does not exist yet.
        events: of each run.
        master: Spark's.

    Raises:
        RuntimeError: an answer is wrong.
    """
    report.heading(f"growth: {events:,} events, {PACE:,} in a second of event time, {master}")
    found: dict[Point, Speed] = {}
    for keys in KEYS:
        paths = traffic.write(work / "files", events, FILES, ORIGIN, PACE, keys)
        passengers = sum(int(line[-3:-2]) for path in paths for line in path.open("rb"))
        check = partial(count_events, events, passengers)
        for point in dict.fromkeys(one for curve in CURVES.values() for one in curve):
            if point.keys == keys:
                config = partial(_config, paths[0].parent / "*.jsonl", point, master)
                found[point] = _measured(point, config, check, work / "run", events)
        shutil.rmtree(work / "files")
    return found


def _measured(
    point: Point,
    config: Callable[[Path], str],
    check: measure.Check,
    work: Path,
    events: int,
) -> Speed:
    name = f"{point.keys:,} keys, {point.shards} shards, {point.size} s"
    speed = measure.run(name, config, check, work, events)
    shutil.rmtree(work)
    return speed


def _config(files: Path, point: Point, master: str, out: Path) -> str:
    buffer = jobs.lights("tumbling_window", size=f"{point.size}s", end_of_input="flush")
    text = jobs.from_files(files, buffer, jobs.COUNTED_LIGHT, out, master)
    return f"{text}  shards: {point.shards}\n"


def count_events(events: int, passengers: int, lines: Iterable[bytes]) -> str:
    """See that every event is in one window, with its passengers."""
    counted = carried = 0
    for line in lines:
        one = json.loads(line)
        counted += one["total_cars"]
        carried += one["passengers"]
    if (counted, carried) == (events, passengers):
        return ""
    return f"{counted:,} cars with {carried:,} passengers; {events:,} with {passengers:,} passed"
