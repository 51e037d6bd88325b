"""Sessions whose messages say how long the pause after them may be."""

from __future__ import annotations

from collections import defaultdict

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_GAP_S = 300


def _make_inputs(rng, number):
    events = []
    for n in range(number):
        at = BASE_S + n * 2
        one = {"at": format_time(at), "device": f"device-{rng.randrange(200)}"}
        if rng.random() < 0.7:
            one["timeout"] = rng.randrange(1, 1500)
        events.append((at, one))
    return {"events": shuffle_within(rng, events, 59)}


def _expect(inputs):
    devices: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for one in inputs["events"]:
        at = parse_time(one["at"])
        devices[one["device"]].append((at, at + one.get("timeout", _GAP_S)))
    out = []
    for device, spans in devices.items():
        sessions: list[list[float]] = []
        for at, reach in sorted(spans):
            if sessions and at <= sessions[-1][2]:
                session = sessions[-1]
                session[1], session[2], session[3] = at, max(session[2], reach), session[3] + 1
            else:
                sessions.append([at, at, reach, 1])
        out += [
            {"device": device, "from": format_time(a), "to": format_time(b), "messages": number}
            for a, b, _, number in sessions
        ]
    return out


JOB = Job(recipe="sessions_with_their_own_gap", make_inputs=_make_inputs, expect=_expect)
