"""Totals of each shop by the hour and by the day, from one stream that is read once."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_SPAN_S = 6 * 86_400


def _make_inputs(rng, number):
    orders = []
    for n in range(number):
        at = round(BASE_S + n * _SPAN_S / number, 2)
        order = {"ts": format_time(at), "shop": f"shop-{rng.randrange(20)}"}
        orders.append((at, {**order, "amount": rng.randrange(1, 500)}))
    return {"orders": shuffle_within(rng, orders, 299)}


def _expect(inputs):
    hours: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for one in inputs["orders"]:
        hours[one["shop"], int(parse_time(one["ts"])) // 3600].append(one["amount"])
    days: defaultdict[tuple[str, int], list[list[int]]] = defaultdict(list)
    out = []
    for (shop, hour), amounts in hours.items():
        days[shop, hour // 24].append(amounts)
        at = format_time(hour * 3600)
        out.append({"shop": shop, "hour": at, "orders": len(amounts), "amount": sum(amounts)})
    for (shop, day), some in days.items():
        sums = [sum(amounts) for amounts in some]
        out.append(
            {
                "shop": shop,
                "day": format_time(day * 86_400)[:10],
                "orders": sum(map(len, some)),
                "amount": sum(sums),
                "best_hour": max(sums),
            }
        )
    return out


def _read(directory: Path):
    return [
        json.loads(line)
        for path in directory.glob("*.jsonl")
        for line in path.read_bytes().splitlines()
    ]


JOB = Job(
    recipe="hourly_and_daily_totals",
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(
        "input.file.paths={in}/*.jsonl",
        "buffers.0.output.file.path={out}/hourly.jsonl",
        "buffers.1.output.file.path={out}/daily.jsonl",
    ),
    read=_read,
)
