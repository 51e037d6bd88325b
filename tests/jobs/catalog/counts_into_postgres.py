"""Events of each user and kind in ten seconds, in a table of PostgreSQL."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager

from tests.jobs.database import list_rows
from tests.jobs.job import Job, read_file_instead
from tests.jobs.times import BASE_S, format_time, parse_time, shuffle_within
from tests.servers.postgres import postgres_server

_RECIPE = "counts_into_postgres"
_SIZE_S = 10


def _make_inputs(rng, number):
    events = []
    for n in range(number):
        at = round(BASE_S + n * 0.005, 3)
        event = {"user": f"user-{rng.randrange(100)}", "kind": rng.choice(("view", "buy"))}
        events.append((at, {**event, "ts": format_time(at)}))
    return {"events": shuffle_within(rng, events, 4.9)}


def _expect(inputs):
    counts = Counter(
        (one["user"], one["kind"], int(parse_time(one["ts"])) // _SIZE_S)
        for one in inputs["events"]
    )
    return [
        [user, kind, window * _SIZE_S, number] for (user, kind, window), number in counts.items()
    ]


@contextmanager
def _serve(directory):
    with postgres_server() as dsn:
        (directory / "dsn").write_text(dsn)
        yield {"COUNTS_DSN": dsn}


JOB = Job(
    recipe=_RECIPE,
    make_inputs=_make_inputs,
    expect=_expect,
    settings=(read_file_instead(_RECIPE, "{in}/events.jsonl"),),
    read=lambda directory: list_rows(
        (directory / "dsn").read_text(),
        "SELECT user_id, kind, extract(epoch FROM w)::bigint, n FROM counts",
    ),
    serve=_serve,
)
