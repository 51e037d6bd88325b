"""First beats and missed ones. By the times of the events, which are long past the time of day."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_GAP_S = 10
_LATENESS_S = 2


def _make_inputs(rng, number):
    beats = []
    for n in range(number):
        at = BASE_S + n * 0.05
        beat = {"sensor": f"sensor-{rng.randrange(100)}", "at": format_time(round(at, 2))}
        beats.append((at, beat))
    return {"beats": shuffle_within(rng, beats, 1.9)}


def _expect(inputs):
    came: defaultdict[str, list[float]] = defaultdict(list)
    out = []
    for one in inputs["beats"]:
        at, times = parse_time(one["at"]), came[one["sensor"]]
        place = bisect_left(times, at)
        if not any(abs(near - at) <= _GAP_S for near in times[max(place - 1, 0) : place + 1]):
            out.append({"sensor": one["sensor"], "state": "alive", "at": one["at"]})
        insort(times, at)
    clock = max(times[-1] for times in came.values())
    for sensor, times in came.items():
        for at, following in zip(times, [*times[1:], float("inf")], strict=True):
            if at + _GAP_S < following and at + _GAP_S + _LATENESS_S < clock:
                missed = format_time(round(at + _GAP_S, 2))
                out.append({"sensor": sensor, "state": "missed", "at": missed})
    return out


def _normalize(message):
    return {**message, "at": format_time(round(parse_time(message["at"]), 2))}


JOB = Job(
    recipe="heartbeats",
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(
        "input.file.paths={in}/*.jsonl",
        "output.file.path={out}/out.jsonl",
        "buffer.session_window.clock=stream",
    ),
    project=_normalize,
)
