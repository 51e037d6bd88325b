"""The traffic-light windows as one writes them by hand in Bytewax: one process, its fastest way.

`python -m bytewax.run "tests.bench.compared.in_bytewax:flow('FILES', 'OUT')"`. Between processes
each event would be pickled. System time does not move the watermark, since the files are read at
another speed than they were written. There is no recovery store: nothing is durable.
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

from tests.bench.peer_bytewax import ShareSource, empty, event_time, fold, merge, parsed

START = datetime(2024, 1, 1, tzinfo=UTC)
LENGTH = timedelta(seconds=10)


def rendered(item: tuple[str, tuple[int, list[Any]]]) -> tuple[str, str]:
    """A window of a light as a line."""
    light, (number, (seen, passengers)) = item
    document = {
        "traffic_light": light,
        "created_at": f"{START + LENGTH * (number + 1):%Y-%m-%dT%H:%M:%SZ}",
        "total_cars": len(seen),
        "passengers": passengers,
    }
    return light, orjson.dumps(document).decode()


def flow(files: str, out: str) -> Dataflow:
    """The job."""
    made = Dataflow("traffic_lights")
    events = op.flat_map_batch("parse", op.input("files", made, ShareSource(files, 1)), parsed)
    frozen = datetime.now(UTC)
    clock = win.EventClock(
        event_time,
        timedelta(seconds=5),
        now_getter=lambda: frozen,
        to_system_utc=lambda at: None,
    )
    windower = win.TumblingWindower(length=LENGTH, align_to=START)
    closed = win.fold_window("window", events, clock, windower, empty, fold, merge, ordered=False)
    op.output("out", op.map("render", closed.down, rendered), FileSink(Path(out)))
    return made
