"""Customers per city from the changes of a table; the last number of a city counts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.jobs.changes import change_rows
from tests.jobs.job import Job, read_file_instead

_RECIPE = "customers_per_city_from_cdc"


def _make_inputs(rng, number):
    cities = [f"city-{n}" for n in range(300)]
    changes = change_rows(rng, number, lambda: {"city": rng.choice(cities), "orders": rng.random()})
    # Numbers of customers do not depend on the order in which the changes come in.
    rng.shuffle(changes)
    return {"changes": [{"payload": one} if n % 2 else one for n, one in enumerate(changes)]}


def _expect(inputs):
    rows, seen = {}, set()
    changes = [one.get("payload", one) for one in inputs["changes"]]
    for change in sorted(changes, key=lambda one: one["ts_ms"]):
        before, after = change["before"], change["after"]
        rows[(before or after)["id"]] = after
        if (before or {}).get("city") != (after or {}).get("city"):
            seen |= {row["city"] for row in (before, after) if row}
    customers = Counter(row["city"] for row in rows.values() if row)
    return [{"city": city, "customers": customers[city]} for city in seen]


def _read(directory: Path):
    messages = map(json.loads, (directory / "out.jsonl").read_bytes().splitlines())
    return list({one["city"]: one for one in messages}.values())


JOB = Job(
    recipe=_RECIPE,
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(
        read_file_instead(_RECIPE, "{in}/changes.jsonl"),
        "output.file.path={out}/out.jsonl",
    ),
    read=_read,
)
