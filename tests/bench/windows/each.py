"""`emit: each`: a line for every event, with what the window of its light holds by then."""

from __future__ import annotations

import json
import shutil
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache, partial
from pathlib import Path

from tests.bench import report, traffic
from tests.bench.peers import lines_of
from tests.bench.windows import jobs, measure
from tests.bench.windows.settings import Settings

MOST = 5_000_000
PACE = 20_000
"""Events a second of event time: about two hundred in a window of a light."""

ORIGIN = 1_767_225_600

Course = dict[str, "array[int]"]
"""By light, for its events in their order: the window's end, different cars, passengers."""


def expected(lines: Iterable[bytes]) -> Course:
    """Say what must come out for each event, by light."""
    plates: dict[tuple[str, int], set[str]] = defaultdict(set)
    passengers: dict[tuple[str, int], int] = defaultdict(int)
    found: Course = defaultdict(_numbers)
    for event in map(json.loads, lines):
        light = event["traffic_light"]
        end = (_unix(event["created_at"]) // jobs.SIZE + 1) * jobs.SIZE
        plates[light, end].add(event["registration_plate"])
        passengers[light, end] += event["passengers"]
        found[light].extend((end, len(plates[light, end]), passengers[light, end]))
    return dict(found)


def given(lines: Iterable[bytes]) -> Course:
    """Read what a job wrote, a JSON object a line, in its order."""
    found: Course = defaultdict(_numbers)
    for line in map(json.loads, lines):
        row = _unix(line["created_at"]), line["total_cars"], line["passengers"]
        found[line["traffic_light"]].extend(row)
    return dict(found)


def differences(want: Course, got: Course) -> str:
    """Return what is wrong, or an empty text."""
    if want == got:
        return ""
    lights = sorted(
        light for light in want.keys() | got.keys() if want.get(light) != got.get(light)
    )
    first = lights[0]
    rows = zip(_rows(want.get(first)), _rows(got.get(first)), strict=False)
    place, (w, g) = next(
        ((n, pair) for n, pair in enumerate(rows) if pair[0] != pair[1]), (-1, (None, None))
    )
    lengths = [len(some.get(first, ())) // 3 for some in (want, got)]
    return (
        f"{len(lights)} of {len(want)} lights are wrong; such as {first}, of which {lengths[1]} of "
        f"{lengths[0]} lines came, at {place} (end, cars, passengers): expected {w}, found {g}"
    )


def _numbers() -> array[int]:
    return array("q")


def _rows(numbers: array[int] | None) -> Iterator[tuple[int, int, int]]:
    flat = iter(numbers or ())
    return zip(flat, flat, flat, strict=True)


@cache
def _unix(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def _wrong(paths: list[Path], lines: Iterable[bytes]) -> str:
    return differences(expected(lines_of(paths)), given(lines))


def each(work: Path, wanted: Settings) -> None:
    """Let every event give a line."""
    events = min(MOST, wanted.events)
    report.heading(f"emit: each, tumbling windows of {jobs.SIZE} s, {wanted.master}")
    paths = traffic.write(work / "files", events, -(-events // measure.BATCH), ORIGIN, PACE)
    buffer = jobs.lights("tumbling_window", emit="each")
    files = work / "files" / "*.jsonl"

    def config(out: Path) -> str:
        return jobs.from_files(files, buffer, jobs.LIGHT, out, wanted.master)

    check = partial(_wrong, paths)
    measure.run("each", config, check, work / "run", events, least=100_000)
    shutil.rmtree(work)
