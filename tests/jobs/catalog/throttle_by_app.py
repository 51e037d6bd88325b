"""Limits of applications, with what is too much in a file of its own: nothing is lost."""

from __future__ import annotations

import json

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within


def _make_inputs(rng, number):
    events = []
    for n in range(number):
        at = round(BASE_S + n * 0.02, 3)
        app = rng.choices(("vip", *(f"app-{k}" for k in range(20))), (5, *[1] * 20))[0]
        events.append((at, {"app": app, "at": format_time(at), "n": n}))
    return {"events": shuffle_within(rng, events, 0.4)}


def _expect(inputs):
    periods: dict[str, list[float]] = {}
    clock = 0.0
    out = []
    for one in inputs["events"]:
        # A message out of order counts as of the largest time before it.
        clock, limit = max(clock, parse_time(one["at"])), 3 if one["app"] == "vip" else 2
        period = periods.get(one["app"])
        if period is None or clock >= round(period[0] + 1, 3):
            periods[one["app"]] = [clock, 1]
            out.append(["passed", one["n"]])
        elif period[1] < limit:
            period[1] += 1
            out.append(["passed", one["n"]])
        else:
            out.append(["excess", one["n"]])
    return out


def _read(directory):
    return [
        [name, json.loads(line)["n"]]
        for name in ("passed", "excess")
        for line in (directory / f"{name}.jsonl").read_bytes().splitlines()
    ]


JOB = Job(
    recipe="throttle_by_app",
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(
        "input.file.paths={in}/*.jsonl",
        "output.switch.cases.0.output.file.path={out}/excess.jsonl",
        'output.switch.cases.1.output={"file": {"path": "{out}/passed.jsonl"}}',
    ),
    read=_read,
)
