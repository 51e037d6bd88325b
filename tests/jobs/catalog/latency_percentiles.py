"""The median, the 95th and the 99th percentile of the latency of each service and minute."""

from __future__ import annotations

import statistics
from collections import defaultdict
from math import ceil

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_LEVELS = sorted({round(1.05**n) for n in range(150)})
"""Latencies that are so far apart that an approximate percentile tells which one is meant."""


def _make_inputs(rng, number):
    requests = []
    for n in range(number):
        at = round(BASE_S + n * 0.03, 2)
        ms = _LEVELS[min(int(rng.expovariate(0.02)), len(_LEVELS) - 1)]
        service = f"service-{rng.randrange(12)}"
        requests.append((at, {"at": format_time(at), "service": service, "ms": ms}))
    return {"requests": shuffle_within(rng, requests, 9)}


def _expect(inputs):
    minutes: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for one in inputs["requests"]:
        minutes[one["service"], int(parse_time(one["at"])) // 60].append(one["ms"])
    out = []
    for (service, minute), latencies in minutes.items():
        latencies.sort()
        out.append(
            {
                "service": service,
                "minute": format_time(minute * 60),
                "requests": len(latencies),
                "p50": float(statistics.median(latencies)),
                "p95": latencies[ceil(0.95 * len(latencies)) - 1],
                "p99": latencies[ceil(0.99 * len(latencies)) - 1],
            }
        )
    return out


def _find_levels(message):
    near = {p: min(_LEVELS, key=lambda ms: abs(ms - message[p])) for p in ("p95", "p99")}
    for name, ms in near.items():
        assert 0.992 * ms <= message[name] <= ms, f"{name} is {message[name]} for {ms}"
    return {**message, **near, "p50": float(message["p50"])}


JOB = Job(
    recipe="latency_percentiles", make_inputs=_make_inputs, expect=_expect, project=_find_levels
)
