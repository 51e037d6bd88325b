"""Events of each kind and minute, each once, though some come again up to some hours later."""

from __future__ import annotations

from collections import Counter

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within


def _make_inputs(rng, number):
    events, sent = [], []
    for n in range(number):
        at = round(BASE_S + n * 0.2, 1)
        if sent and rng.random() < 0.2:
            event = {**rng.choice(sent[-rng.choice((50, 50_000)) :]), "at": format_time(at)}
        else:
            event = {"at": format_time(at), "id": f"e{n}", "kind": rng.choice(("click", "view"))}
            sent.append(event)
        events.append((at, event))
    return {"events": shuffle_within(rng, events, 59)}


def _expect(inputs):
    first: dict[str, tuple[float, str]] = {}
    for one in inputs["events"]:
        found = parse_time(one["at"]), one["kind"]
        first[one["id"]] = min(first.get(one["id"], found), found)
    counts = Counter((kind, int(at) // 60) for at, kind in first.values())
    return [
        {"kind": kind, "minute": format_time(minute * 60), "events": number}
        for (kind, minute), number in counts.items()
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
