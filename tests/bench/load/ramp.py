"""A rate that rises by steps: p50 and p99 of each, and the knee behind which they grow."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import report
from tests.bench.load import live
from tests.bench.load.live import Live

RATES = 1_000, 10_000, 50_000, 100_000, 150_000, 200_000, 300_000, 400_000, 500_000
SETTLE = 3.0
"""Seconds of a step that are not measured."""

COLLAPSED = 10.0
"""Seconds behind the clock at which no higher rate is tried."""

KNEE = 2.0
"""How many times the least p99 of all may be that of the knee."""

KEEPS_UP = 2.5
"""Seconds that the p99 of the knee may be in any case: large micro-batches take long, and a stream
that is quick when there is little to do would seem to bend early."""


@dataclass(frozen=True)
class Step:
    """A rate, and what it did.

    Attributes:
        rate: events a second.
        p50: seconds from the end of a window, or the time of an event, to the line that tells it.
        p99: the same.
        cores: that the stream took.
        fed_late: the most seconds by which events were sent after their time; p50 and p99 have it.
    """

    rate: float
    p50: float
    p99: float
    cores: float
    fed_late: float


def ramp(
    work: Path, kind: str, seconds: float, seed: int = 1, rates: Sequence[int] = RATES
) -> list[Step]:
    """Raise the rate until the stream no longer keeps up; print each step, and the knee.

    Args:
        work: a directory that does not exist yet.
        kind: `live.WINDOWS` or `live.PASSING`.
        seconds: of a step.
        seed: of the events.
        rates: events a second, one after another.
    """
    report.heading(f"load: {live.NAMES[kind]}, {seconds:.0f} s of each rate")
    spans: list[tuple[float, float, float, float]] = []
    with live.live(kind, work, seed) as running:
        for rate in rates:
            running.feeder.rate.value = float(rate)
            time.sleep(SETTLE)
            first, running.feeder.late.value = time.time(), 0.0
            time.sleep(max(0.0, seconds - SETTLE))
            running.check()
            spans.append((rate, first, time.time(), running.feeder.late.value))
            if running.behind() > COLLAPSED:
                break
    # All has come out by now, what was late as well.
    steps = [_step(running, *span) for span in spans]
    for step in steps:
        report.note(
            f"{step.rate:>9,.0f} events/s: p50 {step.p50:6.2f} s, p99 {step.p99:6.2f} s, "
            f"{step.cores:.2f} cores, fed up to {step.fed_late:.2f} s late"
        )
    report.figure(f"knee, {live.NAMES[kind]}", knee(steps).rate, "events/s")
    return steps


def knee(steps: Sequence[Step]) -> Step:
    """Return the fastest step whose p99 is at most `KNEE` times the least of all, or `KEEPS_UP`.

    Slow ones may be later than that, too: with little to do, micro-batches are rare.
    """
    most = max(KNEE * min(step.p99 for step in steps), KEEPS_UP)
    return max((step for step in steps if step.p99 <= most), key=lambda one: one.rate)


def make_table(windows: Sequence[Step], passing: Sequence[Step]) -> str:
    """Return a Markdown table: a row for each rate, columns for windows and for a mapping."""
    head = "| events/s | windows of a second, p50 | p99 | cores | a mapping, p50 | p99 | cores |"
    rows = [head, "|---" * 7 + "|"]
    for rate in sorted({step.rate for step in (*windows, *passing)}):
        cells = [f"{rate:,.0f}"]
        for steps in (windows, passing):
            one = next((step for step in steps if step.rate == rate), None)
            cells += _cells(one) if one else [""] * 3
        rows.append("".join(f"| {cell} " if cell else "| " for cell in cells) + "|")
    return "".join(f"{row}\n" for row in rows)


def fill_page(text: str, windows: Sequence[Step], passing: Sequence[Step]) -> str:
    """Return a page with these steps between `<!-- load: rate -->` and `<!-- end -->`."""
    before, begin, rest = text.partition("<!-- load: rate -->\n")
    _, end, after = rest.partition("<!-- end -->")
    if not end:
        raise ValueError("the page has no place for the table")
    return f"{before}{begin}{make_table(windows, passing)}{end}{after}"


def _cells(step: Step) -> list[str]:
    return [f"{step.p50:.2f} s", f"{step.p99:.2f} s", f"{step.cores:.2f}"]


def _step(running: Live, rate: float, first: float, last: float, late: float) -> Step:
    came = [one for one in running.reader.came if first <= one.due <= last]
    if not came:
        raise RuntimeError(f"nothing came of what was sent at {rate:,.0f} events a second")
    tree = running.stream.tree
    return Step(
        rate,
        live.quantile(came, 0.5),
        live.quantile(came, 0.99),
        (tree.cpu_at(last) - tree.cpu_at(first)) / (last - first),
        late,
    )
