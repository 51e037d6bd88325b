"""The traffic-light job as one writes it by hand in Bytewax.

`python -m bytewax.run "tests.bench.peer_bytewax:flow('FILES', 'OUT', 1)"`. With more processes
(`python -m bytewax.testing -p 2 …`, 2 as the last argument) each reads its share of every file, so
that all read about the same times; how far they drift apart is not bounded, hence the long wait for
the watermark. System time does not move it, since the files are read at another speed than they
were written. There is no recovery store: nothing is durable, which is faster.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from glob import glob
from pathlib import Path
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
import orjson
from bytewax.connectors.files import FileSink
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition

START = datetime(2024, 1, 1, 0, 0, 1, tzinfo=UTC)
"""One second after a window's end: windows are [start, end) here, (start, end] in the product."""

LENGTH = timedelta(seconds=10)
WAIT = timedelta(minutes=2)
LINES = 2_000
TELL_EVERY = 20_000

Event = tuple[datetime, str, int]
Sums = tuple[set[str], int]


class SharePartition(StatefulSourcePartition[bytes, None]):
    """A part of every file, one file after the other."""

    def __init__(self, files: list[str], share: int, shares: int) -> None:
        self._share = share
        self._batches = self._read(files, share, shares)
        self._count = 0
        self._told = 0

    @staticmethod
    def _read(files: list[str], share: int, shares: int) -> Iterator[list[bytes]]:
        for path in files:
            size = Path(path).stat().st_size
            first, last = (size * n // shares for n in (share, share + 1))
            with open(path, "rb") as file:
                if first:
                    file.seek(first - 1)
                    file.readline()
                while file.tell() < last:
                    yield [
                        line
                        for _ in range(LINES)
                        if file.tell() < last and (line := file.readline())
                    ]

    def next_batch(self) -> list[bytes]:
        lines = next(self._batches, None)
        if lines is None:
            self._tell()
            raise StopIteration
        self._count += len(lines)
        if self._count - self._told >= TELL_EVERY:
            self._tell()
        return lines

    def _tell(self) -> None:
        self._told = self._count
        told = {"at": time.time(), "share": self._share, "messages": self._count}
        sys.stderr.write(json.dumps(told) + "\n")
        sys.stderr.flush()

    def snapshot(self) -> None:
        return None


class ShareSource(FixedPartitionedSource[bytes, None]):
    """Files that are read by several processes at once."""

    def __init__(self, files: str, shares: int) -> None:
        self._files = sorted(glob(files))
        self._shares = shares

    def list_parts(self) -> list[str]:
        return [str(n) for n in range(self._shares)]

    def build_part(self, step_id: str, for_part: str, resume_state: None) -> SharePartition:
        return SharePartition(self._files, int(for_part), self._shares)


def parsed(lines: list[bytes]) -> list[tuple[str, Event]]:
    """Light, and time, plate and passengers."""
    return [
        (
            event["traffic_light"],
            (
                datetime.fromisoformat(event["created_at"]),
                event["registration_plate"],
                event["passengers"],
            ),
        )
        for event in map(orjson.loads, lines)
    ]


def event_time(event: Event) -> datetime:
    """The event's time."""
    return event[0]


def empty() -> list[Any]:
    """Plates seen, and passengers."""
    return [set(), 0]


def fold(sums: list[Any], event: Event) -> list[Any]:
    """Take an event in."""
    sums[0].add(event[1])
    sums[1] += event[2]
    return sums


def merge(a: list[Any], b: list[Any]) -> list[Any]:
    """Join two windows, which tumbling ones never do."""
    return [a[0] | b[0], a[1] + b[1]]


def rendered(item: tuple[str, tuple[int, list[Any]]]) -> tuple[str, str]:
    """A window of a light as a line."""
    light, (number, (seen, passengers)) = item
    end = START + LENGTH * (number + 1) - timedelta(seconds=1)
    document = {
        "traffic_light": light,
        "created_at": f"{end:%Y-%m-%dT%H:%M:%SZ}",
        "total_cars": len(seen),
        "passengers": passengers,
    }
    return light, orjson.dumps(document).decode()


def flow(files: str, out: str, shares: int) -> Dataflow:
    """The job."""
    made = Dataflow("traffic_lights")
    lines = op.input("files", made, ShareSource(files, shares))
    events = op.flat_map_batch("parse", lines, parsed)
    frozen = datetime.now(UTC)
    clock = win.EventClock(
        event_time, WAIT, now_getter=lambda: frozen, to_system_utc=lambda at: None
    )
    windower = win.TumblingWindower(length=LENGTH, align_to=START)
    closed = win.fold_window("window", events, clock, windower, empty, fold, merge, ordered=False)
    op.output("out", op.map("render", closed.down, rendered), FileSink(Path(out)))
    return made
