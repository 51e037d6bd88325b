"""Run one config over files, see that it took every event in, and measure it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.bench import report, speed
from tests.bench.peers import lines_of
from tests.bench.product import ROOT, Product, product
from tests.bench.speed import Speed

Check = Callable[[Iterable[bytes]], str]
"""Takes the lines that a job wrote; returns what is wrong with them, or an empty text."""

BATCH = 1_000_000
"""Events of a micro-batch, which is what the product takes at most."""


def run(
    name: str,
    config: Callable[[Path], str],
    check: Check,
    work: Path,
    events: int,
    least: int | None = None,
) -> Speed:
    """Run a config to its end, check what it wrote, print and return its speed.

    Args:
        name: of the figures.
        config: makes the config, given the path of the output.
        check: says what is wrong with the output.
        work: a directory that does not exist yet.
        events: in all inputs.
        least: how many the project wants in a second; None where it does not say.

    Raises:
        RuntimeError: it failed, an event was dropped, or an answer is wrong.
    """
    out = work / "out.jsonl"
    text = config(out)
    report.note(f"{name}: {kept(text, work.with_suffix('.yaml'))}")
    with product(text, work) as running:
        running.wait(120 + events / 5_000)
    last = running.delivered[-1]
    if last.messages != events or last.dropped:
        raise RuntimeError(
            f"{name}: {last.messages:,} of {events:,} events were taken, {last.dropped:,} dropped"
            + running.course()
        )
    accept(name, check, [out], running)
    found = speed.speed_of(running)
    report.figure(f"{name}, events a second", found.rate, "events/s", least=least)
    report.figure(f"{name}, CPU for a million events", found.cpu_per_million, "s")
    return found


def accept(name: str, check: Check, paths: list[Path], running: Product | None = None) -> None:
    """Check what was written.

    Raises:
        RuntimeError: an answer is wrong.
    """
    wrong = check(lines_of(paths))
    if wrong:
        course = "" if running is None else running.course()
        raise RuntimeError(f"{name}: the answers are wrong: {wrong}{course}")
    report.note(f"{name}: all answers are right")


def kept(config: str, path: Path) -> str:
    """Return what `streamer explain` says that windows keep."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(config)
    said = subprocess.run(
        [sys.executable, "-m", "streamer.cli.main", "explain", str(path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    path.unlink()
    found = [line.strip() for line in said.stdout.splitlines() if line.startswith("  keeps ")]
    if said.returncode or not found:
        raise RuntimeError(f"streamer explain says nothing of what is kept: {said.stderr}")
    return " ".join(found[0].split())
