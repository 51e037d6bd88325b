"""One run of a peer over files: seconds, CPU seconds and memory from its launch to its last line.

What a run costs that is there with few events, too, is its start. It is measured by a run of its
own, and what is told of a million events is the difference between the two.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import machine
from tests.bench.process_tree import Tree
from tests.bench.product import ROOT

LONGEST = 300
"""Seconds that a run may take."""

STILL = 3.0
"""For so many seconds a job that never ends must have written nothing more."""


@dataclass(frozen=True)
class Launch:
    """What is started.

    Attributes:
        command: the program and its arguments.
        out: the file of its answers, or a directory of such files.
        ends: whether it ends when the files do; else it is ended.
    """

    command: Sequence[str]
    out: Path
    ends: bool = True

    def outputs(self) -> list[Path]:
        """Return the files of its answers that are there."""
        return sorted(self.out.glob("*.json")) if self.out.is_dir() else [self.out]


@dataclass(frozen=True)
class Run:
    """What was measured, from the launch to the last line of the output.

    Attributes:
        events: how many there were.
        seconds: they took so long.
        cpu: CPU seconds of the process and all that it started.
        memory: the most bytes that these had at once; a page that several have counts once.
    """

    events: int
    seconds: float
    cpu: float
    memory: int


@dataclass(frozen=True)
class Figures:
    """Two runs compared: a short one and a long one.

    Attributes:
        rate: events a second, without the start.
        cpu: CPU seconds for a million events, without the start.
        memory: bytes, of the long run.
        start: seconds that the short run took.
    """

    rate: float
    cpu: float
    memory: int
    start: float

    @classmethod
    def of(cls, short: Run, long: Run) -> Figures:
        """Compare two runs.

        Raises:
            RuntimeError: the long one took no longer.
        """
        events, seconds = long.events - short.events, long.seconds - short.seconds
        if seconds <= 0:
            raise RuntimeError(
                f"{long.events:,} events took {long.seconds:.1f} s, {short.events:,} took "
                f"{short.seconds:.1f} s: use more --events"
            )
        cpu = (long.cpu - short.cpu) / events * 1e6
        return cls(events / seconds, cpu, long.memory, short.seconds)


def measure(launch: Launch, events: int, lines: int, log: Path) -> Run:
    """Run it to its last line.

    Args:
        launch: what is started.
        events: in its files.
        lines: of its answer, by which one knows that a job which never ends is done.
        log: gets what it prints.

    Raises:
        RuntimeError: it failed, or is not done in time.
    """
    with log.open("wb") as said:
        began = time.time()
        running = subprocess.Popen(
            list(launch.command),
            cwd=ROOT,
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
        tree = Tree(running.pid, shared=True)
        try:
            _wait(running, launch, lines, began, log)
        finally:
            if running.poll() is None:
                running.terminate()
                try:
                    running.wait(20)
                except subprocess.TimeoutExpired:
                    running.kill()
                    running.wait()
            tree.stop()
    last = max((path.stat().st_mtime for path in launch.outputs()), default=began)
    memory = max(sample.memory for sample in tree.samples)
    return Run(events, last - began, tree.cpu_at(last), memory)


def _wait(
    running: subprocess.Popen[bytes], launch: Launch, lines: int, began: float, log: Path
) -> None:
    while running.poll() is None:
        if time.time() - began > LONGEST:
            found = f"{_count(launch):,} of {lines:,} lines"
            raise RuntimeError(f"it is not done after {LONGEST} s, {found} are there")
        if not launch.ends and _is_done(launch, lines):
            return
        time.sleep(0.2)
    if running.returncode or not launch.ends:
        text = log.read_text(errors="replace")[-1500:]
        raise RuntimeError(f"it ended with exit code {running.returncode}:\n{text}")


def _is_done(launch: Launch, lines: int) -> bool:
    """Tell whether all lines are there, and nothing has followed them for a while."""
    if _count(launch) < lines:
        return False
    return time.time() - max(path.stat().st_mtime for path in launch.outputs()) > STILL


def _count(launch: Launch) -> int:
    return sum(path.read_bytes().count(b"\n") for path in launch.outputs() if path.exists())


def _environment(outer: Mapping[str, str]) -> dict[str, str]:
    return {**outer, "PYTHONPATH": str(ROOT), "JAVA_HOME": str(machine.java_home())}
