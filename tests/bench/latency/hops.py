"""Where the time of a request goes: from station to station, one request at a time."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.bench import report
from tests.bench.latency import traced
from tests.bench.latency.figures import Latency, of_seconds
from tests.bench.latency.requests import CONFIG, ask, free_port
from tests.bench.product import product

STATIONS = (
    ("received", "the request is received"),
    ("spooled", "it is on disk"),
    ("planned", "the micro-batch is planned"),
    ("logged", "its offset is written"),
    ("called", "Spark has planned the query"),
    ("computed", "the tasks' results are on the driver"),
    ("answered", "they are delivered, and the request is answered"),
    ("committed", "the micro-batch is committed"),
)
"""Stations, in their order, and what each means."""

_SECONDS = 12.0
_WARM_UP_S = 6.0


def hops(work: Path, master: str) -> list[Latency]:
    """Measure what a request takes from each station to the next one."""
    port, noted = free_port(), work / "hops.jsonl"
    work.mkdir(parents=True)
    config = CONFIG.format(port=port) + f'spark: {{master: "{master}"}}\n'
    module = traced.__name__, str(noted)
    with product(config, work / "run", module=module, watches_state=False) as run:
        run.wait_for_start(180)
        ask(port, 1, _WARM_UP_S)
        first = os.stat(noted).st_size
        ask(port, 1, _SECONDS)
        lines = noted.read_bytes()[first:].splitlines()
        times = measure(map(json.loads, lines), read_logs(run.checkpoint / "spark"))
    found = []
    for (_, before), (station, name) in zip(STATIONS, STATIONS[1:], strict=False):
        one = of_seconds("streamer", "hops", name, 1, times[station], 0.0)
        report.figure(f"{before} → {name}, p50", one.p50 * 1e3, "ms")
        found.append(one)
    return found


def read_logs(spark: Path) -> dict[int, dict[str, float]]:
    """Return when micro-batches were planned, logged and committed, by number: Unix s."""
    found: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for station, name in (("logged", "offsets"), ("committed", "commits")):
        for path in (spark / name).iterdir():
            if path.name.isdigit():
                found[int(path.name)][station] = path.stat().st_mtime
                if station == "logged":
                    offset = json.loads(path.read_text().splitlines()[2])
                    found[int(path.name)]["planned"] = offset["time"] / 1e9
    return dict(found)


def measure(
    notes: Iterable[Mapping[str, object]], logs: Mapping[int, Mapping[str, float]]
) -> dict[str, list[float]]:
    """Return seconds to each station from the one before it, of requests that have passed all.

    Args:
        notes: of the product, in their order; one request at a time.
        logs: what Spark's logs say, by the number of the micro-batch.
    """
    took: defaultdict[str, list[float]] = defaultdict(list)
    passed: dict[str, float] = {}
    for note in notes:
        station, at, number = str(note["station"]), float(str(note["at"])), note["number"]
        if station == "received":
            passed = {}
        passed[station] = at
        if station != "answered" or not isinstance(number, int):
            continue
        passed |= logs.get(number, {})
        if passed.keys() >= {name for name, _ in STATIONS}:
            for (before, _), (after, _) in zip(STATIONS, STATIONS[1:], strict=False):
                took[after].append(max(passed[after] - passed[before], 0.0))
        passed = {}
    return took
