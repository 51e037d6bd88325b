"""Totals of a shop by its local day, one of 25 hours among them; the last one of a day counts."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from tests.jobs.job import Job
from tests.jobs.times import format_time, shuffle_within

_ZONE = ZoneInfo("Europe/Berlin")
_FIRST_S = int(datetime(2026, 10, 23, tzinfo=_ZONE).timestamp())
_SPAN_S = 4 * 86_400


def _make_inputs(rng, number):
    sales = []
    for n in range(number):
        at = _FIRST_S + n * _SPAN_S // number
        shop = f"shop-{rng.randrange(20)}"
        sales.append((at, {"at": format_time(at), "shop": shop, "cents": rng.randrange(1, 5000)}))
    return {"sales": shuffle_within(rng, sales, 3000)}


def _expect(inputs):
    totals: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for sale in inputs["sales"]:
        day = datetime.fromisoformat(sale["at"]).astimezone(_ZONE).date().isoformat()
        total = totals[sale["shop"], day]
        total[0] += 1
        total[1] += sale["cents"]
    return [
        {"shop": shop, "day": day, "sales": sales, "cents": cents}
        for (shop, day), (sales, cents) in totals.items()
    ]


def _read(directory: Path):
    # Totals so far: a later one takes the place of those before it.
    latest = {}
    for line in (directory / "out.jsonl").read_bytes().splitlines():
        total = json.loads(line)
        key = total["shop"], total["day"]
        assert latest.get(key, total)["sales"] <= total["sales"], "a total became smaller"
        latest[key] = total
    return list(latest.values())


JOB = Job(recipe="daily_totals", make_inputs=_make_inputs, expect=_expect, read=_read)
