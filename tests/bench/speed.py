"""Events a second when the stream is behind: tumbling, sliding, and without a window."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from tests.bench import answers, jobs, report, traffic
from tests.bench.product import Product, product

START = 12.0
"""Seconds from the launch to the first event's time: what starting takes, and a little more, since
what is ahead of the clock waits, and what is behind it is lost."""

WRITTEN = 350_000
"""Events that this script writes in a second, at least."""

PREPARED = 3.0
"""Seconds until the first is written, at most."""

LEFT_OUT = 2
"""Micro-batches at the beginning that are not measured: Python and Java warm up."""


@dataclass(frozen=True)
class Speed:
    """What a run reached, after the first two micro-batches up to its last output."""

    events: int
    seconds: float
    cpu: float
    micro_batches: int

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / self.seconds

    @property
    def cpu_per_million(self) -> float:
        """CPU seconds of the whole process tree for a million events."""
        return self.cpu / self.events * 1e6


def speed_of(run: Product) -> Speed:
    """Measure a run that has ended; a short one, to try the benchmark itself, from its launch."""
    filled = run.filled()
    if len(filled) <= LEFT_OUT:
        report.note(
            f"only {len(filled)} micro-batches brought events, so that the start is in the "
            "figures, which mean little: use more --events"
        )
        last = run.delivered[-1]
        return Speed(last.messages, last.at - run.launched, run.tree.cpu_at(last.at), len(filled))
    first = filled[LEFT_OUT - 1]
    last = max([*filled, *(d for d in run.delivered if d.bytes)], key=lambda d: d.at)
    return Speed(
        last.messages - first.messages,
        last.at - first.at,
        run.tree.cpu_at(last.at) - run.tree.cpu_at(first.at),
        len(filled) - LEFT_OUT,
    )


def paced_files(
    directory: Path, events: int, pace: float, size: int = 10
) -> tuple[list[Path], float]:
    """Write the workload into ten files, its times beginning soon; return when to launch, too."""
    shutil.rmtree(directory, ignore_errors=True)
    began = time.time()
    origin = (began + PREPARED + events / WRITTEN + START) // size * size + size
    paths = traffic.write(directory, events, 10, origin, pace)
    took = time.time() - began
    launch = origin - START
    if time.time() > launch:
        raise RuntimeError(f"writing {events:,} events took {took:.0f} s, too long for their times")
    report.note(
        f"{events:,} events in {len(paths)} files, {sum(p.stat().st_size for p in paths):,} bytes, "
        f"written in {took:.0f} s; {pace:,.0f} to a second of event time, which begins "
        f"{START:.0f} s after the launch"
    )
    return paths, launch


def windows(
    work: Path,
    events: int,
    pace: float,
    master: str,
    slide: str = "",
    keep: bool = False,
    whole: bool = False,
) -> tuple[Speed, list[Path]]:
    """Run the windowed job over fresh files and check its answers; return the files, if kept."""
    paths, launch = paced_files(work / "files", events, pace)
    time.sleep(max(0.0, launch - time.time()))
    out = work / "run" / "out.jsonl"
    files = work / "files" / "*.jsonl"
    config = jobs.windowed(files, out, "10s", slide, master=master, whole=whole)
    with product(config, work / "run") as run:
        run.wait(60 + events / 10_000)
    speed = speed_of(run)
    check(run, out, paths, 10, int(slide.removesuffix("s") or 10))
    _details(run, speed)
    if not slide:
        _state(run)
    shutil.rmtree(work / "run")
    if not keep:
        shutil.rmtree(work / "files")
    return speed, paths


def check(run: Product, out: Path, paths: list[Path], size: int, slide: int) -> None:
    """Compare all that was written with what it must be.

    Raises:
        RuntimeError: an event was dropped, or an answer is wrong.
    """
    last = run.delivered[-1]
    if last.dropped:
        raise RuntimeError(
            f"{last.dropped:,} of {last.messages:,} events were dropped: the machine does not keep "
            f"up with the events' times; use a smaller --pace{run.course()}"
        )
    want = answers.expected(answers.read(paths), size, slide)
    with out.open("rb") as lines:
        wrong = answers.differences(want, answers.given(lines))
    if wrong:
        raise RuntimeError(f"the answers are wrong: {wrong}{run.course()}")
    report.note(f"all {len(want):,} answers are right, none of {last.messages:,} events dropped")


def _details(run: Product, speed: Speed) -> None:
    peak = max(run.tree.samples, key=lambda sample: sample.memory)
    emitting = sum(1 for d in run.delivered if d.bytes)
    report.note(
        f"measured: {speed.micro_batches} micro-batches with {speed.events:,} events in "
        f"{speed.seconds:.1f} s, the first {LEFT_OUT} left out; output in {emitting} "
        f"micro-batches; {run.delivered[-1].at - run.launched:.1f} s from the launch to the end"
    )
    kinds = ", ".join(f"{name} {size / 2**20:,.0f}" for name, size in sorted(peak.rss.items()))
    report.note(f"memory of the process tree at its peak: {peak.memory / 2**20:,.0f} MiB ({kinds})")


def _state(run: Product) -> None:
    most = max(size for _, size in run.state)
    held = max(sum(d.held) for d in run.delivered)
    report.figure("state on disk, at its largest", most / 2**20, "MiB")
    if held:
        report.figure("… by the most events held at once", most / held, "bytes")
        report.note(
            "all of checkpoint/spark/state: with the older versions that Spark keeps for recovery, "
            "which hold events of closed windows; `memory` has the figure without them"
        )


def throughput(work: Path, events: int, pace: float, master: str, whole: bool) -> Speed:
    """The main job: tumbling windows of ten seconds."""
    kept = "whole messages" if whole else "folded groups"
    report.heading(f"throughput: tumbling windows of 10 s, {kept}, file → file, {master}")
    speed, _ = windows(work / "throughput", events, pace, master, whole=whole)
    report.figure("events a second", speed.rate, "events/s", least=400_000)
    report.figure("CPU for a million events", speed.cpu_per_million, "s", most=6)
    if pace > 1.2 * speed.rate or pace < 0.5 * speed.rate:
        report.note(f"--pace {speed.rate:.0f} would let windows close as fast as events come in")
    return speed


def stateless(work: Path, events: int, master: str) -> Speed:
    """One mapping, no window, no output."""
    report.heading(f"stateless: mapping, file → drop, {master}")
    files = work / "stateless" / "files"
    traffic.write(files, events, 10, time.time(), 400_000)
    config = jobs.stateless(files / "*.jsonl", master=master)
    with product(config, work / "stateless" / "run") as run:
        run.wait(60 + events / 10_000)
    if run.delivered[-1].messages != events:
        raise RuntimeError(f"{run.delivered[-1].messages:,} of {events:,} events were processed")
    speed = speed_of(run)
    _details(run, speed)
    report.figure("events a second", speed.rate, "events/s", least=450_000)
    report.figure("CPU for a million events", speed.cpu_per_million, "s")
    shutil.rmtree(work / "stateless")
    return speed


def sliding(
    work: Path, events: int, pace: float, sliding_pace: float, master: str, whole: bool
) -> None:
    """Windows of ten seconds every second, against tumbling ones, one after the other."""
    kept = "whole messages" if whole else "folded groups"
    report.heading(f"sliding: windows of 10 s every second, {kept}, file → file, {master}")
    tumbled, _ = windows(work / "tumbling", events, pace, master, whole=whole)
    report.figure("tumbling, for comparison", tumbled.rate, "events/s")
    report.figure("CPU for a million events, tumbling", tumbled.cpu_per_million, "s")
    slid, _ = windows(work / "sliding", events, sliding_pace, master, slide="1s", whole=whole)
    report.figure("sliding", slid.rate, "events/s")
    report.figure("CPU for a million events, sliding", slid.cpu_per_million, "s")
    report.figure("sliding / tumbling", slid.rate / tumbled.rate, "", least=1 / 3)
