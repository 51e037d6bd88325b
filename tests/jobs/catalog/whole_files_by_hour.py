"""A file for each hour, sorted, with a mark beside it."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, shuffle_within

_SPAN_S = 40 * 3600


def _make_inputs(rng, number):
    events = []
    for n in range(number):
        at = round(BASE_S + n * _SPAN_S / number, 2)
        events.append((at, {"id": n, "at": format_time(at)}))
    return {"events": shuffle_within(rng, events, 599)}


def _expect(inputs):
    hours: defaultdict[str, list[dict]] = defaultdict(list)
    for one in sorted(inputs["events"], key=lambda one: one["id"]):
        at = datetime.fromisoformat(one["at"]).astimezone(UTC)
        hours[f"date={at:%Y-%m-%d}/hour={at:%H}"].append(one)
    return [[hour, ["_SUCCESS", "events.jsonl"], events] for hour, events in hours.items()]


def _read(directory: Path):
    return [
        [
            str(hour.relative_to(directory)),
            sorted(path.name for path in hour.iterdir()),
            [json.loads(line) for line in (hour / "events.jsonl").read_bytes().splitlines()],
        ]
        for hour in directory.glob("date=*/hour=*")
    ]


JOB = Job(
    recipe="whole_files_by_hour",
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(
        "input.file.paths={in}/*.jsonl",
        "output.file.base={out}",
        "output.file.path={out}/date=${! @date }/hour=${! @hour }/events.jsonl",
    ),
    read=_read,
)
