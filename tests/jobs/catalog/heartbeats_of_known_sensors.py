"""Missed sensors, those of a list that were never there among them. By the times of the events."""

from __future__ import annotations

import json
from collections import defaultdict

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_GAP_S = 10
_LATENESS_S = 2
_PRESENT = [f"pump-{n}" for n in range(80)]
_UNKNOWN = [f"guest-{n}" for n in range(20)]
_LATER = [f"later-{n}" for n in range(10)]
_NEVER = [f"never-{n}" for n in range(10)]
_KNOWN = [*_PRESENT, *_LATER, *_NEVER]


def _make_inputs(rng, number):
    beats = []
    for n in range(number):
        at = round(BASE_S + n * 0.05, 2)
        # All that are there at first send something in the first five seconds.
        sensor = (
            (_PRESENT + _UNKNOWN)[n]
            if n < len(_PRESENT + _UNKNOWN)
            else rng.choice(_PRESENT + _UNKNOWN + (_LATER if n > number // 4 else []))
        )
        beats.append((at, {"sensor": sensor, "at": format_time(at)}))
    return {"beats": shuffle_within(rng, beats, 1.9)}


def _expect(inputs):
    sensors: defaultdict[str, list[float]] = defaultdict(list)
    for one in inputs["beats"]:
        sensors[one["sensor"]].append(parse_time(one["at"]))
    clock = max(max(times) for times in sensors.values())
    out = [
        {"sensor": sensor, "state": "missed", "beats": 0, "last": None}
        for sensor in _LATER + _NEVER
    ]
    for sensor, times in sensors.items():
        times.sort()
        beats = 0
        for at, following in zip(times, [*times[1:], float("inf")], strict=True):
            beats += 1
            if at + _GAP_S < following:
                if at + _GAP_S + _LATENESS_S < clock:
                    last = format_time(at)
                    out.append({"sensor": sensor, "state": "missed", "beats": beats, "last": last})
                beats = 0
    return out


def _normalize(message):
    last = message["last"]
    return {**message, "last": last and format_time(round(parse_time(last), 2))}


JOB = Job(
    recipe="heartbeats_of_known_sensors",
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(
        "input.file.paths={in}/*.jsonl",
        "output.file.path={out}/out.jsonl",
        "buffer.session_window.clock=stream",
        f"buffer.session_window.allowed_lateness={_LATENESS_S}s",
        f"buffer.session_window.expected_keys={json.dumps(_KNOWN)}",
    ),
    project=_normalize,
)
