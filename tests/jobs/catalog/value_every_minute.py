"""A value for each minute and sensor. By the times of the events, whose end is then known."""

from __future__ import annotations

from collections import defaultdict

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within


def _make_inputs(rng, number):
    readings = []
    for n in range(number * 2):
        at = round(BASE_S + n * 0.15, 2)
        sensor = rng.randrange(100)
        # Half of the sensors are silent for some minutes; all are for two in each hour.
        minute = int(at) // 60
        if (sensor + minute // 7) % 2 == 0 or minute % 60 in (30, 31):
            continue
        reading = {"sensor": f"sensor-{sensor}", "at": format_time(at), "value": n}
        readings.append((at, reading))
    return {"readings": shuffle_within(rng, readings, 4.9)}


def _expect(inputs):
    sensors: defaultdict[str, dict[int, tuple[float, int]]] = defaultdict(dict)
    clock = 0.0
    for one in inputs["readings"]:
        at = parse_time(one["at"])
        clock = max(clock, at)
        minutes, minute = sensors[one["sensor"]], int(at) // 60
        minutes[minute] = max(minutes.get(minute, (0.0, 0)), (at, one["value"]))
    out = []
    for sensor, minutes in sensors.items():
        value = None
        # A minute that has not ended is not said to be empty.
        for minute in range(min(minutes), max(int(clock) // 60 - 1, *minutes) + 1):
            measured = minute in minutes
            value = minutes[minute][1] if measured else value
            at = format_time(minute * 60)
            out.append({"sensor": sensor, "minute": at, "value": value, "measured": measured})
    return out


JOB = Job(
    recipe="value_every_minute",
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(
        "input.file.paths={in}/*.jsonl",
        "output.file.path={out}/out.jsonl",
        "buffer.tumbling_window.clock=stream",
    ),
)
