"""Revenue of each shop and hour: marks in their order, growing, and what holds at last."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_MARKS = re.compile(r"(early )*(on_time (late )*)?(final|flush) ")


def _make_inputs(rng, number):
    orders = []
    for n in range(number):
        at = BASE_S + n * 0.25
        order = {"at": format_time(round(at, 2)), "shop": f"shop-{rng.randrange(10)}"}
        orders.append((at, {**order, "price": rng.randrange(1, 100)}))
    return {"orders": shuffle_within(rng, orders, 3599)}


def _expect(inputs):
    revenues: defaultdict[tuple[str, int], int] = defaultdict(int)
    for one in inputs["orders"]:
        revenues[one["shop"], int(parse_time(one["at"])) // 3600] += one["price"]
    return [
        {"shop": shop, "hour": format_time(hour * 3600), "revenue": revenue}
        for (shop, hour), revenue in revenues.items()
    ]


def _read(directory: Path):
    # How many results come early or late depends on the micro-batches; the last one does not.
    results: defaultdict[tuple[str, str], list[dict]] = defaultdict(list)
    for line in (directory / "out.jsonl").read_bytes().splitlines():
        result = json.loads(line)
        results[result["shop"], result["hour"]].append(result)
    out, seen = [], set[str]()
    for some in results.values():
        marks = "".join(f"{one.pop('result')} " for one in some)
        assert _MARKS.fullmatch(marks), marks
        seen.update(marks.split())
        assert all(one["revenue"] <= two["revenue"] for one, two in pairwise(some)), some
        out.append(some[-1])
    assert {"early", "on_time", "late"} <= seen, seen
    return out


JOB = Job(
    recipe="hour_early_on_time_late",
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(
        "input.file.paths={in}/*.jsonl",
        "output.file.path={out}/out.jsonl",
        "spark.trigger_interval=0s",
    ),
    read=_read,
)
