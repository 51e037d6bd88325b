"""A stream to which nothing comes: the cores that it takes."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from tests.bench import jobs, report, traffic
from tests.bench.product import product

SETTLE = 15.0
"""Seconds after the start until an idle stream is measured."""


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
