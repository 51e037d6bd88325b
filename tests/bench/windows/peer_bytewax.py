"""Tumbling, hopping and session windows as one writes them by hand in Bytewax: one process.

`python -m bytewax.run "tests.bench.windows.peer_bytewax:flow('FILES', 'OUT', 'KIND')"`. System time
does not move the watermark, since the files are read at another speed than they were written.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
import orjson
from bytewax.connectors.files import FileSink
from bytewax.dataflow import Dataflow

from tests.bench import peer_bytewax as traffic
from tests.bench.windows.jobs import EVERY, LATENESS, SIZE
from tests.bench.windows.sessions import GAP_MS

START = datetime(2024, 1, 1, tzinfo=UTC)

Event = tuple[datetime, int]


def parsed(lines: list[bytes]) -> list[tuple[str, Event]]:
    """User, and time and amount."""
    return [
        (event["user"], (datetime.fromisoformat(event["at"]), event["amount"]))
        for event in map(orjson.loads, lines)
    ]


def empty() -> list[Any]:
    """First and last time, number of events, sum of amounts."""
    return [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC), 0, 0]


def fold(sums: list[Any], event: Event) -> list[Any]:
    """Take an event in."""
    at, amount = event
    return [min(sums[0], at), max(sums[1], at), sums[2] + 1, sums[3] + amount]


def merge(a: list[Any], b: list[Any]) -> list[Any]:
    """Join two sessions."""
    return [min(a[0], b[0]), max(a[1], b[1]), a[2] + b[2], a[3] + b[3]]


def session_line(item: tuple[str, tuple[int, list[Any]]]) -> tuple[str, str]:
    """A session as a line."""
    user, (_, (start, end, events, total)) = item
    document = {"user": user, "start": start, "end": end, "events": events, "total": total}
    return user, orjson.dumps(document).decode()


def light_line(every: int, item: tuple[str, tuple[int, list[Any]]]) -> tuple[str, str]:
    """A window of a light as a line."""
    light, (number, (seen, passengers)) = item
    end = START + timedelta(seconds=number * every + SIZE)
    document = {
        "traffic_light": light,
        "created_at": f"{end:%Y-%m-%dT%H:%M:%SZ}",
        "total_cars": len(seen),
        "passengers": passengers,
    }
    return light, orjson.dumps(document).decode()


def _clock() -> win.EventClock[Any]:
    frozen = datetime.now(UTC)
    return win.EventClock(
        traffic.event_time,
        timedelta(seconds=LATENESS),
        now_getter=lambda: frozen,
        to_system_utc=lambda at: None,
    )


def flow(files: str, out: str, kind: str) -> Dataflow:
    """The job."""
    made = Dataflow("windows")
    lines = op.input("files", made, traffic.ShareSource(files, 1))
    if kind == "session":
        users = op.flat_map_batch("parse", lines, parsed)
        gaps = win.SessionWindower(gap=timedelta(milliseconds=GAP_MS))
        closed = win.fold_window("window", users, _clock(), gaps, empty, fold, merge, ordered=False)
        rendered = op.map("render", closed.down, session_line)
    else:
        every = EVERY if kind == "hopping" else SIZE
        lights = op.flat_map_batch("parse", lines, traffic.parsed)
        hops = win.SlidingWindower(timedelta(seconds=SIZE), timedelta(seconds=every), START)
        tumbles = win.TumblingWindower(length=timedelta(seconds=SIZE), align_to=START)
        closed = win.fold_window(
            "window",
            lights,
            _clock(),
            hops if kind == "hopping" else tumbles,
            traffic.empty,
            traffic.fold,
            traffic.merge,
            ordered=False,
        )
        rendered = op.map("render", closed.down, lambda item: light_line(every, item))
    op.output("out", rendered, FileSink(Path(out)))
    return made
