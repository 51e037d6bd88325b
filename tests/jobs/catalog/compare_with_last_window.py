"""The mean load of five minutes where it is at least twice that of the window before."""

from __future__ import annotations

from collections import defaultdict

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_SIZE_S = 300


def _make_inputs(rng, number):
    hosts = [f"host-{n}" for n in range(30)]
    readings = []
    for n in range(number):
        at = round(BASE_S + n * 1.1, 1)
        host = rng.choice(hosts)
        # A mean doubles now and then, since a host has a load of its own in each ten minutes.
        level = sum(map(ord, f"{host}{int(at) // 600 * 31}")) * 37 % 50 + 1
        readings.append(
            (at, {"host": host, "at": format_time(at), "load": level + rng.randrange(3)})
        )
    return {"readings": shuffle_within(rng, readings, 29)}


def _expect(inputs):
    windows: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for one in inputs["readings"]:
        windows[one["host"], int(parse_time(one["at"])) // _SIZE_S].append(one["load"])
    out, before = [], dict[str, float]()
    for host, window in sorted(windows, key=lambda key: key[1]):
        loads = windows[host, window]
        load = sum(loads) / len(loads)
        if host in before and load >= 2 * before[host]:
            end = format_time((window + 1) * _SIZE_S)
            out.append({"host": host, "end": end, "load": load, "before": before[host]})
        before[host] = load
    return out


def _round(message):
    return {**message, "load": float(message["load"]), "before": float(message["before"])}


JOB = Job(
    recipe="compare_with_last_window", make_inputs=_make_inputs, expect=_expect, project=_round
)
