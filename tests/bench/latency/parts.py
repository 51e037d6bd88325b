"""The parts of the latency benchmark, in the order in which they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import report
from tests.bench.latency import benthos, figures, floor, hops, kill, requests, streams
from tests.bench.latency.figures import Goal, Latency
from tests.bench.load import live, plots, ramp

PARTS = "floor", "benthos", "requests", "hops", "stateless", "windows", "kill", "knee"

_GOALS = {
    "requests": Goal(0.130, 0.300),
    "stateless": Goal(0.150, 0.500),
    "windows": Goal(0.250, 0.800),
}
_KNEE = 100_000
_KNEE_RATES = 20_000, 50_000, 75_000, 100_000, 125_000, 150_000
_KNEE_STEP_S = 12.0


@dataclass(frozen=True)
class Settings:
    """What is measured.

    Attributes:
        parts: of `PARTS`.
        sizes: seconds of windows.
        master: Spark's.
        drawings: a directory for figures and a drawing; those of former runs there stay, where
            they are not measured again. None for none.
        pages: documentation whose tables are written anew.
    """

    parts: Sequence[str]
    sizes: Sequence[int]
    master: str
    drawings: Path | None
    pages: Sequence[Path] = ()


def latency(work: Path, settings: Settings) -> None:
    """Measure latencies; print and draw them.

    Args:
        work: a directory for files.
        settings: what is measured.

    Raises:
        RuntimeError: parts failed, as where a message was lost, or came out twice.
    """
    former = figures.read(settings.drawings) if settings.drawings else []
    found: list[Latency] = []
    failed = ""
    for part in PARTS:
        if part not in settings.parts:
            continue
        try:
            found += _show(_measure(part, work / part, settings), [*former, *found])
        except RuntimeError as e:
            # What else was measured is kept.
            report.note(f"FAILED: {part}: {e}")
            failed = f"{failed}, {part}".removeprefix(", ")
    every = figures.merge(former, found)
    if settings.drawings:
        figures.write(settings.drawings, every)
        plots.draw_latency(settings.drawings / "latency.svg", every)
    for page in settings.pages:
        page.write_text(figures.fill_page(page.read_text(), every))
    if failed:
        raise RuntimeError(failed)


def _measure(part: str, work: Path, settings: Settings) -> list[Latency]:
    master = settings.master
    report.heading(f"latency: {part}, {master}")
    if part == "floor":
        return floor.floor(work, master)
    if part == "benthos":
        return _of_benthos(work)
    if part == "requests":
        return requests.of_product(work, master)
    if part == "hops":
        return hops.hops(work, master)
    if part == "stateless":
        return streams.passing_of_product(work, master)
    if part == "windows":
        sizes = [streams.windows(work / str(size), size, master) for size in settings.sizes]
        return [one for found in sizes for one in found]
    if part == "kill":
        kill.kill(work, master)
        return []
    steps = ramp.ramp(work, live.PASSING, _KNEE_STEP_S, rates=_KNEE_RATES)
    report.figure("knee, a core", ramp.knee(steps).rate, "events/s", least=_KNEE)
    return []


def _of_benthos(work: Path) -> list[Latency]:
    try:
        program = benthos.build()
    except benthos.NoGoError as e:
        report.note(str(e))
        return []
    found = requests.of_benthos(program, work / "requests")
    return [*found, *streams.passing_of_benthos(program, work / "stateless")]


def _show(found: Sequence[Latency], known: Sequence[Latency]) -> Sequence[Latency]:
    floors = {one.name: one for one in (*known, *found) if one.part == "floor"}
    for one in found:
        if one.part == "hops":
            continue
        bare = floors.get(floor.STATEFUL if one.part == "windows" else floor.STATELESS)
        goal = _GOALS.get(one.part) if one.program == "streamer" else None
        one.show(goal and goal.at_least(bare))
    return found
