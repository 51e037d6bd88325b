"""Sessions of users. By the times of the events, which are long past the time of day."""

from __future__ import annotations

from collections import defaultdict

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_GAP_S = 900


def _make_inputs(rng, number):
    events = []
    for n in range(number):
        at = BASE_S + n * 2
        events.append((at, {"at": format_time(at), "user": f"user-{rng.randrange(400)}"}))
    return {"events": shuffle_within(rng, events, 599)}


def _expect(inputs):
    users: defaultdict[str, list[float]] = defaultdict(list)
    for one in inputs["events"]:
        users[one["user"]].append(parse_time(one["at"]))
    out = []
    for user, times in users.items():
        times.sort()
        begin = 0
        for n, at in enumerate(times):
            if n + 1 == len(times) or times[n + 1] > at + _GAP_S:
                first, number = format_time(times[begin]), n + 1 - begin
                out.append({"user": user, "from": first, "to": format_time(at), "events": number})
                begin = n + 1
    return out


JOB = Job(
    recipe="sessions_closed_in_time",
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(
        "input.file.paths={in}/*.jsonl",
        "output.file.path={out}/out.jsonl",
        "buffer.session_window.clock=stream",
    ),
)
