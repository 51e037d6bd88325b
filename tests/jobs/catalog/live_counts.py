"""Counts of the last 60 seconds, each second, for each kind of event."""

from __future__ import annotations

from collections import Counter

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, shuffle_within

SIZE_S = 60


def _make_inputs(rng, number):
    span_s = 300
    events = []
    for n in range(number):
        at = round(BASE_S + n * span_s / number, 3)
        events.append((at, {"at": format_time(at), "event": rng.choice(("view", "click", "buy"))}))
    return {"events": shuffle_within(rng, events, 1.9)}


def _expect(inputs):
    counts: Counter[tuple[str, int]] = Counter()
    for one in inputs["events"]:
        second = _seconds(one["at"])
        for end in range(second + 1, second + SIZE_S + 1):
            counts[one["event"], end] += 1
    return [
        {"event": event, "count": count, "until": format_time(end)}
        for (event, end), count in counts.items()
    ]


def _seconds(text: str) -> int:
    clock = text[11:19].split(":")
    return BASE_S + int(clock[0]) * 3600 + int(clock[1]) * 60 + int(clock[2])


JOB = Job(recipe="live_counts", make_inputs=_make_inputs, expect=_expect)
