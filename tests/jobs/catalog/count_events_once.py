"""Events per minute and kind, each once, though the sender repeats a fifth of them."""

from __future__ import annotations

from collections import Counter

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within

_LATENESS_S = 60


def _make_inputs(rng, number):
    events = []
    for n in range(number * 5 // 6):
        at = BASE_S + n / 10
        kind = rng.choice(["click", "view", "buy"])
        event = {"at": format_time(at), "id": f"e{n}", "kind": kind}
        events.append((at, event))
        if rng.random() < 0.2:
            again = at + rng.random() * 600
            events.append((again, {**event, "at": format_time(again)}))
    return {"events": shuffle_within(rng, events, _LATENESS_S - 1)}


def _expect(inputs):
    first: dict[str, tuple[float, str]] = {}
    for one in inputs["events"]:
        time = parse_time(one["at"])
        first[one["id"]] = min(first.get(one["id"], (time, one["kind"])), (time, one["kind"]))
    counts = Counter((kind, time // 60 * 60) for time, kind in first.values())
    return [
        {"kind": kind, "minute": format_time(minute), "events": events}
        for (kind, minute), events in counts.items()
    ]


JOB = Job(
    recipe="count_events_once",
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(
        "input.file.paths={in}/*.jsonl",
        'buffers.1.output={"file": {"path": "{out}/out.jsonl"}}',
    ),
)
