"""Tumbling and hopping windows of each traffic light, against the peers and system_window."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from tests.bench import answers, report, speed, traffic
from tests.bench.peers import figures
from tests.bench.speed import Speed
from tests.bench.windows import jobs, measure, versus
from tests.bench.windows.settings import Settings

FILES = 10
ORIGIN = 1_767_225_600
PACE = 100_000
"""Events in a second of event time, where it need not pass: a hundred in one of a light."""


def lights(work: Path, wanted: Settings, *, tumbling: bool, hopping: bool) -> None:
    """Measure the one, the other or both, on the same files."""
    report.heading(f"windows of each traffic light, {jobs.SIZE} s, stream clock, {wanted.master}")
    paths = traffic.write(work / "files", wanted.events, FILES, ORIGIN, PACE)
    tumbled = _run("tumbling", "tumbling_window", jobs.SIZE, work, paths, wanted)
    if tumbling:
        _peers("tumbling", tumbled, jobs.SIZE, work, paths, wanted, versus.LIGHTS)
    if hopping:
        _hopping(tumbled, work, paths, wanted)
    shutil.rmtree(work)


def system(work: Path, wanted: Settings) -> None:
    """Measure tumbling windows of each light against system_window, on the same files."""
    report.heading(f"tumbling windows against system_window, {jobs.SIZE} s, {wanted.master}")
    report.note("system_window: groups instead of keys, files whose times pass meanwhile")
    system, paths = speed.windows(
        work / "system", wanted.events, wanted.pace, wanted.master, keep=True
    )
    figures("system_window", system)
    tumbled = _run("tumbling", "tumbling_window", jobs.SIZE, work, paths, wanted)
    _compare("tumbling / system_window", tumbled, system, 0.8)
    shutil.rmtree(work)


def _hopping(tumbled: Speed, work: Path, paths: list[Path], wanted: Settings) -> None:
    """Ten windows hold each event: folded panes, then whole messages, each against tumbling."""
    hopped = _run("hopping", "hopping_window", jobs.EVERY, work, paths, wanted)
    _compare("hopping / tumbling", hopped, tumbled, 0.6)
    one = _run("tumbling, whole", "tumbling_window", jobs.SIZE, work, paths, wanted, whole=True)
    many = _run("hopping, whole", "hopping_window", jobs.EVERY, work, paths, wanted, whole=True)
    _compare("hopping / tumbling, both whole", many, one, 1 / 3)
    _peers("hopping", hopped, jobs.EVERY, work, paths, wanted, versus.HOPPING)


def _compare(name: str, one: Speed, other: Speed, least: float) -> None:
    """Print how fast one is as a share of the other; by CPU time too, which load changes less."""
    report.figure(name, one.rate / other.rate, "", least=least)
    report.figure(f"{name}, by CPU time", other.cpu_per_million / one.cpu_per_million)


def _run(
    name: str,
    kind: str,
    slide: int,
    work: Path,
    paths: list[Path],
    wanted: Settings,
    whole: bool = False,
) -> Speed:
    fields = {} if slide == jobs.SIZE else {"every": f"{slide}s"}
    buffer = jobs.lights(kind, **fields)
    files = paths[0].parent / "*.jsonl"

    def config(out: Path) -> str:
        return jobs.from_files(files, buffer, jobs.LIGHT, out, wanted.master, whole=whole)

    check = partial(differences, paths, slide)
    directory = work / "run"
    found = measure.run(name, config, check, directory, wanted.events)
    shutil.rmtree(directory)
    return found


def differences(paths: list[Path], slide: int, lines: Iterable[bytes]) -> str:
    """Compare lines with what windows [end - 10 s, end) of these files hold."""
    want = answers.expected(answers.read(paths), jobs.SIZE, slide, closed="left")
    return answers.differences(want, answers.given(lines))


def _peers(
    name: str,
    ours: Speed,
    slide: int,
    work: Path,
    paths: list[Path],
    wanted: Settings,
    most: int,
) -> None:
    if wanted.alone:
        return
    some = versus.first(paths, min(most, wanted.events), work / "peers" / "files")
    check = partial(differences, some, slide)
    versus.versus(name, ours, check, some, work / "peers", wanted.master)
    shutil.rmtree(work / "peers")
