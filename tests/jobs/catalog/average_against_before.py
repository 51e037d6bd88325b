"""Hosts whose average load of five minutes has risen by half since the five minutes before."""

from __future__ import annotations

from collections import defaultdict

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_HALF_S = 300


def _make_inputs(rng, number):
    readings = []
    for n in range(number):
        at = round(BASE_S + n * 1.1, 1)
        host = rng.randrange(30)
        # Some hosts are silent for some time, and all have another load in each ten minutes.
        if (host + int(at) // 600) % 7 == 0:
            continue
        level = (host * 17 + int(at) // 600 * 31) % 50 + 1
        load = level + rng.randrange(3)
        readings.append((at, {"host": f"host-{host}", "at": format_time(at), "load": load}))
    return {"readings": shuffle_within(rng, readings, 29)}


def _expect(inputs):
    halves: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for one in inputs["readings"]:
        halves[one["host"], int(parse_time(one["at"])) // _HALF_S].append(one["load"])
    averages = {key: sum(loads) / len(loads) for key, loads in halves.items()}
    out = []
    for (host, half), now in averages.items():
        before = averages.get((host, half - 1))
        if before is not None and now >= 1.5 * before:
            end = format_time((half + 1) * _HALF_S)
            out.append({"host": host, "at": end, "now": now, "before": before})
    return out


def _as_floats(message):
    return {**message, "now": float(message["now"]), "before": float(message["before"])}


JOB = Job(
    recipe="average_against_before", make_inputs=_make_inputs, expect=_expect, project=_as_floats
)
