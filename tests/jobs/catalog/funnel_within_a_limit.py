"""How far each user got from view by way of cart to pay, in thirty minutes after each view."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_LIMIT_S = 1800
_STEPS = ("view", "cart", "pay")


def _make_inputs(rng, number):
    span_s = 40 * 3600
    events = []
    for n in range(number):
        # No two events have one time, so that the first of a window is never a matter of chance.
        at = BASE_S + n * span_s / number
        event = rng.choices((*_STEPS, "home"), (2, 3, 3, 4))[0]
        user = f"user-{rng.randrange(1500)}"
        events.append((at, {"at": format_time(round(at, 3)), "user": user, "event": event}))
    return {"events": shuffle_within(rng, events, 59)}


def _expect(inputs):
    users: defaultdict[str, list] = defaultdict(list)
    for one in sorted(inputs["events"], key=lambda one: one["at"]):
        users[one["user"]].append(one)
    out = []
    for user, events in users.items():
        times = [parse_time(one["at"]) for one in events]
        for first, one in enumerate(events):
            if one["event"] != "view":
                continue
            reached = 0
            for later in events[first : bisect_left(times, times[first] + _LIMIT_S + 1e-6)]:
                if reached < len(_STEPS) and later["event"] == _STEPS[reached]:
                    reached += 1
            out.append({"user": user, "since": one["at"], "reached": reached})
    return out


JOB = Job(recipe="funnel_within_a_limit", make_inputs=_make_inputs, expect=_expect)
