"""`window_join`: orders and their shipments, a file each, joined when they are close.

About three quarters of the shipments are close enough to their order; an order may have none, or
several.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np

from tests.bench import answers, report
from tests.bench.peers import lines_of
from tests.bench.windows import jobs, measure
from tests.bench.windows.settings import Settings

MOST = 5_000_000
"""Events of a side."""

PACE = 10_000
"""Events of a side in a second of event time."""

WITHIN_MS = 10_000
APART_MS = -5_000, 15_000
"""How much later than its order a shipment may be."""

LATENESS = 300
"""Seconds: the sides are read side by side, but nothing says how evenly."""

ORIGIN = np.datetime64("2026-01-01T00:00:00.000")

Pairs = Counter[tuple[str, int]]
"""Order and shipment."""


def write(directory: Path, events: int) -> tuple[Path, Path]:
    """Write so many orders, and as many shipments, in the order of their times."""
    directory.mkdir(parents=True)
    rng = np.random.default_rng(7)
    ordered = np.arange(events) * 1_000 // PACE
    of = rng.integers(0, events, events)
    shipped = ordered[of] + rng.integers(*APART_MS, events, endpoint=True)
    sequence = np.argsort(shipped, kind="stable")
    of, shipped = of[sequence], shipped[sequence]
    left, right = directory / "orders.jsonl", directory / "shipments.jsonl"
    with left.open("w") as out:
        out.writelines(
            f'{{"order_id":"o{number:08}","at":"{at}Z","amount":{number % 997}}}\n'
            for number, at in enumerate(_shown(ordered))
        )
    with right.open("w") as out:
        out.writelines(
            f'{{"shipment":{number},"order_id":"o{order:08}","at":"{at}Z"}}\n'
            for number, (order, at) in enumerate(zip(of.tolist(), _shown(shipped), strict=True))
        )
    return left, right


def _shown(times: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[str]:
    found: list[str] = np.datetime_as_string(ORIGIN + times.astype("timedelta64[ms]")).tolist()
    return found


def expected(left: Iterable[bytes], right: Iterable[bytes], within_ms: int = WITHIN_MS) -> Pairs:
    """Say which order and which shipment are a pair."""
    within = timedelta(milliseconds=within_ms)
    orders = {
        order["order_id"]: datetime.fromisoformat(order["at"]) for order in map(json.loads, left)
    }
    return Counter(
        (shipment["order_id"], shipment["shipment"])
        for shipment in map(json.loads, right)
        if abs(datetime.fromisoformat(shipment["at"]) - orders[shipment["order_id"]]) <= within
    )


def given(lines: Iterable[bytes]) -> Pairs:
    """Read what a job wrote, a JSON object a line."""
    return Counter((pair["order_id"], pair["shipment"]) for pair in map(json.loads, lines))


def differences(left: Path, right: Path, lines: Iterable[bytes]) -> str:
    """Compare lines with the pairs of two files."""
    want = expected(lines_of([left]), lines_of([right]))
    return answers.differences(want, given(lines))


def join(work: Path, wanted: Settings) -> None:
    """Join two files."""
    events = min(MOST, wanted.events)
    report.heading(f"window_join: {events:,} events a side, {WITHIN_MS} ms, {wanted.master}")
    left, right = write(work / "files", events)
    source = jobs.joined(left, right, WITHIN_MS, LATENESS)

    def config(out: Path) -> str:
        return jobs.ending(source, jobs.PAIR, out, wanted.master)

    check = partial(differences, left, right)
    both = measure.run("join, both sides", config, check, work / "run", 2 * events)
    report.figure("join, events a second of a side", both.rate / 2, "events/s", least=100_000)
    shutil.rmtree(work)
