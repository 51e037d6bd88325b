"""Latencies that were measured, on the terminal, in a file and beside what is to be reached."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench import report

FLOOR_RATIO = 1.3
"""Where bare Spark takes longer than a goal: how many times its figure is as good."""

FILE = "latency.json"


@dataclass(frozen=True)
class Goal:
    """Seconds that are to be reached.

    Attributes:
        p50: of half of all.
        p99: of 99 in 100.
    """

    p50: float
    p99: float

    def at_least(self, floor: Latency | None) -> Goal:
        """Return the goal that holds where bare Spark needs so long."""
        if floor is None:
            return self
        p50, p99 = FLOOR_RATIO * floor.p50, FLOOR_RATIO * floor.p99
        return Goal(max(self.p50, p50), max(self.p99, p99))


@dataclass(frozen=True)
class Latency:
    """What was measured of one thing.

    Attributes:
        program: `streamer`, `Benthos` or `bare Spark`.
        part: `floor`, `requests`, `hops`, `stateless` or `windows`.
        name: what it is, in words.
        rate: events a second, or requests at once.
        p50: seconds.
        p99: seconds.
        cores: that the program took.
        count: how many were measured.
        size: seconds of a window; 0 without.
        fed_late: the most seconds by which events were sent after their time; p50 and p99 have it.
    """

    program: str
    part: str
    name: str
    rate: float
    p50: float
    p99: float
    cores: float
    count: int
    size: float = 0.0
    fed_late: float = 0.0

    def show(self, goal: Goal | None = None) -> None:
        """Print it."""
        name = f"{self.program}: {self.name}"
        report.figure(f"{name}, p50", self.p50 * 1e3, "ms", most=goal and round(goal.p50 * 1e3))
        report.figure("  p99", self.p99 * 1e3, "ms", most=goal and round(goal.p99 * 1e3))
        late = f", sent up to {self.fed_late * 1e3:.0f} ms late" if self.fed_late else ""
        report.note(f"{self.count:,} measured, {self.cores:.2f} cores{late}")


def of_seconds(
    program: str, part: str, name: str, rate: float, seconds: Sequence[float], cores: float
) -> Latency:
    """Return the latency of single times.

    Raises:
        RuntimeError: nothing was measured.
    """
    if not seconds:
        raise RuntimeError(f"{program}: {name}: nothing came")
    p50, p99 = report.quantile(seconds, 0.5), report.quantile(seconds, 0.99)
    return Latency(program, part, name, rate, p50, p99, cores, len(seconds))


def read(directory: Path) -> list[Latency]:
    """Return what a directory of drawings has of former runs."""
    path = directory / FILE
    return [Latency(**one) for one in json.loads(path.read_text())] if path.exists() else []


def merge(former: Iterable[Latency], found: Iterable[Latency]) -> list[Latency]:
    """Return all latencies; what was measured again stands in place of the former."""
    latest = {(one.program, one.part, one.name): one for one in (*former, *found)}
    return [*latest.values()]


def write(directory: Path, found: Sequence[Latency]) -> None:
    """Keep latencies beside the drawings."""
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps([asdict(one) for one in found], indent=1)
    (directory / FILE).write_text(text + "\n")


_TABLE = re.compile(r"(<!-- latency: ([a-z]+) -->\n).*?(<!-- end -->)", re.S)
_HEADS = {
    "requests": "requests at once",
    "stateless": "events/s",
    "windows": "windows",
    "floor": "bare Spark",
    "hops": "until",
}


def fill_page(text: str, found: Sequence[Latency]) -> str:
    """Return a page whose tables, each between two marks, have these latencies.

    A mark names a part: `<!-- latency: stateless -->`, up to `<!-- end -->`.
    """

    def fill(match: re.Match[str]) -> str:
        return f"{match[1]}\n{make_table(match[2], found)}\n{match[3]}"

    return _TABLE.sub(fill, text)


def make_table(part: str, found: Sequence[Latency]) -> str:
    """Return a Markdown table of a part: a row for each thing, columns for each program."""
    mine = [one for one in found if one.part == part]
    programs = sorted(dict.fromkeys(one.program for one in mine), key="streamer".__ne__)
    head = [_HEADS[part]]
    for program in programs:
        prefix = f"{program}, " if len(programs) > 1 else ""
        head += [f"{prefix}p50", "p99", "cores"][: _columns(part)]
    rows = [head, ["---"] * len(head)]
    for label in dict.fromkeys(_label(one) for one in mine):
        cells = [label]
        for program in programs:
            one = next((x for x in mine if (x.program, _label(x)) == (program, label)), None)
            cells += (["", "", ""] if one is None else _cells(one))[: _columns(part)]
        rows.append(cells)
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _label(one: Latency) -> str:
    if one.part in ("requests", "stateless"):
        return f"{one.rate:,.0f}"
    return one.name.removeprefix("windows of ")


def _columns(part: str) -> int:
    """Return how many figures of a part stand in its table: hops have no cores of their own."""
    return 2 if part == "hops" else 3


def _cells(one: Latency) -> list[str]:
    return [_milliseconds(one.p50), _milliseconds(one.p99), f"{one.cores:.2f}"]


def _milliseconds(seconds: float) -> str:
    ms = seconds * 1e3
    return f"{ms:,.0f} ms" if ms >= 10 else f"{ms:.2g} ms"
