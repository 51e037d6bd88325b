"""The three largest countries of each continent; the last one of a continent counts."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, shuffle_within

_COUNTRIES, _CONTINENTS = 200, 6


def _make_inputs(rng, number):
    changes = []
    for n in range(number):
        at, country = BASE_S + n, rng.randrange(_COUNTRIES)
        change = {
            "at": format_time(at),
            "continent": f"continent-{country % _CONTINENTS}",
            "country": f"country-{country}",
            # No two countries have one size, so that the order is never a matter of chance.
            "size": rng.randrange(1000) * _COUNTRIES + country,
        }
        changes.append((at, change))
    return {"changes": shuffle_within(rng, changes, 2000)}


def _expect(inputs):
    sizes: dict[tuple[str, str], int] = {}
    for one in sorted(inputs["changes"], key=lambda one: one["at"]):
        sizes[one["continent"], one["country"]] = one["size"]
    continents: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for (continent, country), size in sizes.items():
        continents[continent].append((size, country))
    return [
        {"continent": continent, "top": [country for _, country in sorted(some)[:-4:-1]]}
        for continent, some in continents.items()
    ]


def _read(directory: Path):
    messages = map(json.loads, (directory / "out.jsonl").read_bytes().splitlines())
    return list({one["continent"]: one for one in messages}.values())


JOB = Job(recipe="running_top_k", make_inputs=_make_inputs, expect=_expect, read=_read)
