"""A stream that keeps up: how late its output is, and what running, waiting and starting cost."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from datetime import datetime
from pathlib import Path

from tests.bench import jobs, report, traffic
from tests.bench.product import Product, product

SKIPPED = 2
"""Windows after the start that are not measured: the first is not whole, Java is cold."""

SETTLE = 15.0
"""Seconds after the start until an idle stream is measured."""


class Lines:
    """What comes out of a pipe, with the time at which it came."""

    def __init__(self, run: Product) -> None:
        """Begin to read the program's standard output."""
        assert run.process.stdout is not None
        self._fd = run.process.stdout.fileno()
        self.blocks: list[tuple[float, bytes]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while block := os.read(self._fd, 1 << 20):
            self.blocks.append((time.time(), block))

    def windows(self) -> dict[str, tuple[float, float, int]]:
        """When the first and the last line of each window came, and how many, by its end."""
        found: dict[str, tuple[float, float, int]] = {}
        rest = b""
        for at, block in list(self.blocks):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                end = line.partition(b'"created_at":"')[2].partition(b'"')[0].decode()
                first, _, count = found.get(end, (at, at, 0))
                found[end] = first, at, count + 1
        return found


def latency(work: Path, windows: int) -> None:
    """A thousand events a second with default settings, windows of ten seconds."""
    report.heading(
        "latency: 1,000 events/s by generate, windows of 10 s, default settings → stdout"
    )
    directory = work / "latency"
    with product(jobs.live("10s"), directory, stdout=subprocess.PIPE) as run:
        lines = Lines(run)
        until = time.time() + 60 + 10 * (windows + SKIPPED)
        while len(lines.windows()) < windows + SKIPPED:
            if time.time() > until or run.process.poll() is not None:
                raise RuntimeError(f"too few windows came out: {run.troubles}{run.course()}")
            time.sleep(0.5)
        time.sleep(3)  # the last one may still be on its way
        found = dict(sorted(lines.windows().items())[SKIPPED:])
        ends = [datetime.fromisoformat(end).timestamp() for end in found]
        cpu = run.tree.cpu_at(ends[-1]) - run.tree.cpu_at(ends[0])
        peak = max(sample.memory for sample in run.tree.between(ends[0], ends[-1]))
        last = run.delivered[-1]
        batches = sum(1 for d in run.delivered if ends[0] <= d.at <= ends[-1])
    late = [at - end for (_, at, _), end in zip(found.values(), ends, strict=True)]
    first = [at - end for (at, _, _), end in zip(found.values(), ends, strict=True)]
    per_second = batches / (ends[-1] - ends[0])
    report.note(
        f"from the window's end to its last line on a pipe, {len(late)} windows of about "
        f"{sum(count for *_, count in found.values()) // len(found)} lines; {last.dropped} of "
        f"{last.messages:,} events dropped; {per_second:.2f} micro-batches a second"
    )
    report.note("each, s: " + " ".join(f"{value:.2f}" for value in late))
    report.figure("latency of the last line, p50", report.quantile(late, 0.5), "s", most=1)
    report.figure("latency of the last line, p99", report.quantile(late, 0.99), "s", most=2)
    report.figure("latency of the first line, p50", report.quantile(first, 0.5), "s")
    report.figure("cores", cpu / (ends[-1] - ends[0]), "", most=0.6)
    report.figure("memory of the process tree", peak / 2**20, "MiB")
    shutil.rmtree(directory)


def idle(work: Path, seconds: float, master: str) -> None:
    """A stream on whose standard input nothing comes."""
    report.heading(
        f"idle: stdin to which nothing comes, windows of a day, {master}, {seconds:.0f} s"
    )
    for name, count in (("no window open", 0), ("a window open", 1_000)):
        directory = work / "idle"
        config = jobs.filling(directory / "out.jsonl", "24h", master=master)
        with product(config, directory, stdin=subprocess.PIPE) as run:
            assert run.process.stdin is not None
            if count:
                run.process.stdin.write(b"".join(traffic.chunks(count, time.time(), count)))
                run.process.stdin.flush()
                run.wait_for_messages(count, 60)
                if not sum(run.delivered[-1].held):
                    raise RuntimeError(f"no window is open{run.course()}")
            else:
                run.wait_for_start(60)
            time.sleep(SETTLE)
            began = time.time()
            batches = len(run.delivered)
            time.sleep(seconds)
            ended = time.time()
            batches = len(run.delivered) - batches
            time.sleep(0.5)
            cpu = run.tree.cpu_at(ended) - run.tree.cpu_at(began)
        report.figure(f"cores, {name}", cpu / (ended - began), "", most=0.1)
        report.note(f"{batches} micro-batches meanwhile")
        shutil.rmtree(directory)
