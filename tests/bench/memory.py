"""Memory of the process tree while a window fills, and what its release adds."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.bench import answers, jobs, report, traffic
from tests.bench.process_tree import Sample
from tests.bench.product import Product, product, size_of

SIZE = 86_400
"""The window, seconds: it does not end by itself."""

SETTLED = 0.3
"""Share of the filling in which the JVM's heap and the workers grow to their working size."""


def memory(work: Path, events: int, rate: float, master: str, whole: bool) -> None:
    """Fill a window from the standard input at a steady rate, then end the input."""
    kept = "whole messages" if whole else "folded groups"
    report.heading(f"memory: one window with {events:,} events, {kept}, stdin → file, {master}")
    files, out = work / "memory" / "files", work / "memory" / "run" / "out.jsonl"
    paths = traffic.write(files, events, 1, _origin(), events / 600)
    config = jobs.filling(out, f"{SIZE}s", master=master, whole=whole)
    with product(config, work / "memory" / "run", stdin=subprocess.PIPE, every=0.1) as run:
        run.wait_for_start(60)
        feeder = threading.Thread(target=_feed, args=(run, paths[0], rate), daemon=True)
        feeder.start()
        run.wait_for_messages(events, 120 + 2 * events / rate)
        feeder.join()
        filled = time.time() + 4  # the commit, and the collectors, are given a moment
        time.sleep(4)
        state = size_of(run.checkpoint / "spark" / "state")
        assert run.process.stdin is not None
        run.process.stdin.close()
        run.wait(120)
    held = run.delivered[-2].held
    want = answers.expected(answers.read(paths), SIZE, SIZE)
    with out.open("rb") as lines:
        wrong = answers.differences(want, answers.given(lines))
    if wrong:
        raise RuntimeError(f"the answers are wrong: {wrong}{run.course()}")
    _filling(run, filled)
    report.figure("state on disk for an event", state / events, "bytes", most=20)
    _release(run, filled, max(held))
    shutil.rmtree(work / "memory")


def _origin() -> float:
    """A moment in today's window that leaves room for all events; the window ends much later."""
    now = time.time()
    left = SIZE - now % SIZE
    return now if left > 1_800 else now + left + 1


def _feed(run: Product, path: Path, rate: float) -> None:
    """Write lines to the program's standard input, ten times a second."""
    assert run.process.stdin is not None
    began = time.monotonic()
    written = 0
    with path.open("rb") as file:
        length = len(file.readline())
        file.seek(0)
        while block := file.read(max(1, round(rate / 10)) * length):
            run.process.stdin.write(block)
            run.process.stdin.flush()
            written += len(block) // length
            time.sleep(max(0.0, began + written / rate - time.monotonic()))


def _filling(run: Product, until: float) -> None:
    filled = run.filled()
    begun, total = filled[0].at, filled[-1].messages
    report.note(f"all answers are right; the window filled in {filled[-1].at - begun:.0f} s")
    samples = run.tree.between(begun, until)
    _table(run, samples)
    # The first sample after each micro-batch, and what was held then.
    late = [d for d in filled if d.messages >= SETTLED * total]
    if len(late) < 3:
        raise RuntimeError("too few micro-batches to tell: use more events, or a lower --rate")
    after = [next(s for s in samples if s.at >= d.at) for d in late]
    held = [sum(d.held) for d in late]
    for kind in ("python", "java", "driver"):
        slope = _slope(held, [s.rss[kind] for s in after])
        report.figure(f"growth of {kind}, for an event held", slope, "bytes")
    whole = _slope(held, [s.memory for s in after])
    report.figure("growth of the whole tree, for an event held", whole, "bytes")
    report.note(
        f"fitted to {len(late)} micro-batches, from {SETTLED:.0%} of the events on; flat is about 0"
    )


def _table(run: Product, samples: Sequence[Sample]) -> None:
    print(f"  {'s':>8} {'held':>12} {'tree MiB':>10} {'python':>8} {'java':>8} {'driver':>8}")
    for sample in samples[:: max(1, len(samples) // 12)]:
        held = max((sum(d.held) for d in run.delivered if d.at <= sample.at), default=0)
        mib = [size / 2**20 for size in (sample.memory, *_kinds(sample))]
        print(
            f"  {sample.at - run.launched:8.1f} {held:12,} {mib[0]:10,.0f} {mib[1]:8,.0f} "
            f"{mib[2]:8,.0f} {mib[3]:8,.0f}"
        )


def _kinds(sample: Sample) -> tuple[int, int, int]:
    return sample.rss["python"], sample.rss["java"], sample.rss["driver"]


def _slope(held: Sequence[int], sizes: Sequence[int]) -> float:
    """Bytes for an event, by least squares."""
    return float(np.polyfit(np.array(held) - held[0], sizes, 1)[0])


def _release(run: Product, filled: float, largest: int) -> None:
    before = run.tree.between(filled - 3, filled)
    calm = float(np.median([s.memory for s in before]))
    after = run.tree.between(filled, run.delivered[-1].at + 1)
    peak = max(after, key=lambda sample: sample.memory)
    grown = peak.memory - calm
    report.note(
        f"before the release {calm / 2**20:,.0f} MiB, at its peak {peak.memory / 2**20:,.0f} MiB; "
        f"the largest shard held {largest:,} events; the shards are released side by side"
    )
    report.figure("release, for an event of the largest shard", grown / largest, "bytes", most=300)
