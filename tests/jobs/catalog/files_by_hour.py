"""Each event in the file of its own hour, once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from tests.jobs.job import Job
from tests.jobs.times import BASE_S, format_time, shuffle_within

_SPAN_S = 40 * 3600


def _make_inputs(rng, number):
    events = []
    for n in range(number):
        at = round(BASE_S + n * _SPAN_S / number, 3)
        events.append((at, {"id": n, "at": format_time(at)}))
    return {"events": shuffle_within(rng, events, 5000)}


def _expect(inputs):
    out = []
    for one in inputs["events"]:
        at = datetime.fromisoformat(one["at"]).astimezone(UTC)
        out.append([f"date={at:%Y-%m-%d}/hour={at:%H}/events.jsonl", one])
    return out


def _read(directory: Path):
    return [
        [str(path.relative_to(directory)), json.loads(line)]
        for path in directory.rglob("*.jsonl")
        for line in path.read_bytes().splitlines()
    ]


_PATH = (
    "date=${! this.at.ts_strftime('%Y-%m-%d', 'UTC') }/hour=${! this.at.ts_strftime('%H', 'UTC') }"
)

JOB = Job(
    recipe="files_by_hour",
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(
        "input.file.paths={in}/*.jsonl",
        "output.file.path={out}/" + _PATH.replace("'", '"') + "/events.jsonl",
        "output.file.base={out}",
    ),
    read=_read,
)
