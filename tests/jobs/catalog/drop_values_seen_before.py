"""The first message of each value, whatever restarts there are."""

from __future__ import annotations

import json

from tests.jobs.job import Job


def _make_inputs(rng, number):
    values = [rng.randrange(number // 3) for _ in range(number)]
    return {"ids": [{"id": str(v) if v % 5 == 0 else v, "n": n} for n, v in enumerate(values)]}


def _expect(inputs):
    first: dict[str, dict] = {}
    for one in inputs["ids"]:
        first.setdefault(json.dumps(one["id"]), one)
    return list(first.values())


JOB = Job(recipe="drop_values_seen_before", make_inputs=_make_inputs, expect=_expect)
