"""Readings and their sum since the last alarm of a device, and the change from the one before."""

from __future__ import annotations

from tests.jobs.job import Job


def _make_inputs(rng, number):
    readings = []
    for n in range(number):
        one = {"device": f"device-{rng.randrange(500)}", "value": rng.randrange(100), "n": n}
        if rng.random() < 0.02:
            one["alarm"] = rng.random() < 0.9
        readings.append(one)
    return {"readings": readings}


def _expect(inputs):
    state: dict[str, tuple[int, int, int]] = {}
    out = []
    for one in inputs["readings"]:
        readings, total, last = state.get(one["device"], (0, 0, one["value"]))
        readings, total = (0, 0) if one.get("alarm") else (readings + 1, total + one["value"])
        out.append({**one, "readings": readings, "sum": total, "change": one["value"] - last})
        state[one["device"]] = readings, total, one["value"]
    return out


JOB = Job(recipe="count_since_alarm", make_inputs=_make_inputs, expect=_expect)
