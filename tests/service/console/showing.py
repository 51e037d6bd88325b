"""Pretended streams whose figures grow as time goes on: what the console is shown with.

`python -m tests.service.console.showing [number of streams]` serves them until it is stopped.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamer.engine.report.figure_history import BatchFigures
from streamer.engine.report.stream_metrics import Snapshot, series_key
from streamer.engine.report.window_history import LAG_METRIC_KEY, WindowHistory
from streamer.engine.report.window_questions import Answer
from streamer.service.monitoring.stream_figures import StreamFigures
from streamer.service.monitoring.stream_view import StreamState
from streamer.service.monitoring.window_listing import list_open_windows
from streamer.window import SystemWindow
from streamer.window.inspect.window_query import WindowListing, WindowQuery, WindowRow
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window_types import Session
from tests.service.api.asking import asking
from tests.service.fleet.pretending import GENERATE, Stage

SECOND = 1_000_000_000
SIZE = 10 * SECOND
WINDOW = SystemWindow(size=SIZE, slide=SIZE // 2, allowed_lateness=2 * SECOND)

GAP = 30 * SECOND
SESSIONS = EventWindow(Session(GAP), keyed=True)

VISITS = """
input: { generate: { interval: 1s, mapping: 'root = {"user": "ada", "at": now()}' } }
buffer:
  session_window: { timestamp_mapping: root = this.at, key_mapping: root = this.user, gap: 30s }
pipeline:
  processors:
    - label: count
      mapping: |
        root = if batch_index() == 0 { {"user": this.user, "n": batch_size()} } else { deleted() }
output: { drop: {} }
"""

LIGHTS = """
input:
  label: sensors
  generate: { interval: 1s, mapping: 'root = {"light": 1, "cars": 3, "at": now()}' }
buffer:
  system_window: { timestamp_mapping: root = this.at, size: 10s, slide: 5s, allowed_lateness: 2s }
pipeline:
  processors:
    - label: per_light
      group_by_value: { value: '${! json("light") }' }
    - label: total
      mapping: |
        root.light = this.light
        root.cars = json("cars").from_all().sum()
output: { label: sink, drop: {} }
"""

ORDERS = """
input:
  label: orders
  generate: { interval: 1s, mapping: 'root = {"id": counter()}' }
pipeline:
  processors:
    - label: check
      mapping: 'root = if this.id == 4 { throw("too much") } else { this }'
    - label: route
      switch:
        - check: errored()
          processors: [ { label: say, log: { level: WARN, message: 'bad order: ${! error() }' } } ]
        - processors: [ { label: mark, mapping: 'root = this' } ]
output:
  broker:
    outputs: [ { label: a, drop: {} }, { label: b, drop: {} } ]
"""

CHECK = "root.pipeline.processors.0"
BEGAN = time.time_ns() - 60 * SECOND


def now(stream_id: str, polls: int) -> StreamState:
    """A stream that gets some messages a second, and fails on one of a hundred."""
    seconds = (time.time_ns() - BEGAN) / SECOND
    share = sum(map(ord, stream_id)) % 90 + 4
    wave = 1 + 0.3 * ((seconds / 7) % 2)
    taken = int(seconds * share * wave)
    counts: dict[Any, int] = {}
    for place, share in (
        (("orders", "root.input"), 1.0),
        (("check", "root.pipeline.processors.0"), 1.0),
        (("route", "root.pipeline.processors.1"), 1.0),
        (("mark", "root.pipeline.processors.1.switch.1.processors.0"), 0.99),
        (("per_light", "root.pipeline.processors.0"), 1.0),
        (("total", "root.pipeline.processors.1"), 1.0),
    ):
        labels = {"label": place[0], "path": place[1]}
        counts[series_key("processor_received", labels)] = int(taken * share)
        counts[series_key("processor_sent", labels)] = int(taken * share)
    check = {"label": "check", "path": "root.pipeline.processors.0"}
    if stream_id.startswith("orders"):
        counts[series_key("processor_error", check)] = taken // 100
    sink = {"label": "sink" if stream_id.startswith("lights") else "", "path": "root.output"}
    counts[series_key("output_sent", sink)] = int(taken * 0.98)
    counts[LAG_METRIC_KEY] = 1.4  # type: ignore[assignment]
    held = 3 if stream_id.startswith("lights") else 0
    due = time.time_ns() + 4 * SECOND if held else None
    shot = Snapshot(taken, held, 412 * held, due, {"late": 12} if held else {}, batch=polls)
    return StreamState(shot, counts)


def windows(stream_id: str, query: WindowQuery, answer: Answer | None) -> Mapping[str, Any]:
    """Three open windows, and what became of others; or sessions of some users."""
    if stream_id.startswith("visits"):
        return list_sessions(query, answer)
    if not stream_id.startswith("lights"):
        return list_open_windows(None, ())
    at = time.time_ns()
    epoch = SIZE // 2
    last = at // epoch * epoch
    ends = [last, last + epoch, last + SIZE] if at - last < 2 * SECOND else []
    ends = ends or [last + epoch, last + SIZE]
    opened = [
        {"start": end - SIZE, "end": end, "messages": 10 + (at - end + SIZE) // 10**7 % 2000}
        for end in ends
    ]
    recent = WindowHistory(lambda: at)
    for number in range(12, -1, -1):
        end = ends[0] - epoch * (number + 1)
        late = 12 - number + (end // epoch) % 3
        status = {
            "now": end + 2 * SECOND,
            "closed": [{"end": end, "messages": 900 + end // SECOND % 97, "reason": "final"}],
            "counters": {"dropped": {"late": late * 3}},
        }
        recent.record(-number, [status])
    status = {
        "held": 1236,
        "held_bytes": 88_100,
        "open": [{**one, "size": one["messages"] * 71} for one in opened],
    }
    return list_open_windows(WINDOW, [status], recent, query, answer)


def list_sessions(query: WindowQuery, answer: Answer | None) -> Mapping[str, Any]:
    """Sessions of some users, two that closed, one retracted, late messages with a sample."""
    at = time.time_ns() // SECOND * SECOND
    spans = [("ada", 50, 5, 31), ("bob", 44, 20, 7), ("carol", 21, 21, 1), ("dan", 12, 2, 104)]
    rows = [
        WindowRow(key, at - start * SECOND, at - end * SECOND, count, None, at - end * SECOND + GAP)
        for key, start, end, count in spans
    ]
    recent = WindowHistory(lambda: at)
    closed = [
        {
            **{"end": at - age * SECOND, "start": at - (age + size) * SECOND, "key": user},
            **{"messages": count, "reason": reason},
        }
        for user, age, size, count, reason in (
            ("eve", 40, 12, 3, "final"),
            ("fay", 36, 0, 3, "final"),
            ("ivo", 34, 6, 0, "retracted"),
        )
    ]
    sample = {"payload": '{"user":"gus","page":"/cart"}', "key": "gus", "event_time": at - 2 * GAP}
    late = {"fields": {"reason": "late"}, "sample": sample}
    for number, dropped in enumerate((0, 60)):
        status: dict[str, Any] = {"now": at, "counters": {"dropped": {"late": dropped}}}
        status["log"] = [late]
        status["closed"] = closed if number else []
        recent.record(number, [status], lag=1.0)
    listing = WindowListing(rows, len(rows)).to_dict()
    status = {"held": 143, "held_bytes": 9_100, "open_windows": len(rows), "listing": listing}
    return list_open_windows(SESSIONS, [status], recent, query, answer)


def feed(stream_id: str, figures: StreamFigures) -> None:
    """Let a stream have figures of the last minutes, until now: of `steady` 50 a second."""
    at, history = time.time(), figures.history
    if history.is_empty:
        figures.counted_since = at - 600
        figures.node_order = {"root.input": 0, CHECK: 1, "root.output": 2}
        history.interrupt(at - 600)
        figures.rates.reset(at - 600)
    step = 10.0 if at - history.known_until > 20 else 1.0
    while (since := history.known_until) + step <= at:
        until = since + step
        wave = 0.0 if stream_id == "steady" else 0.3 * ((until / 7) % 2)
        rate = 50.0 if stream_id == "steady" else (sum(map(ord, stream_id)) % 90 + 4) * (1 + wave)
        figures.received += round(rate * step)
        figures.rates.add(
            since,
            until,
            {
                **dict.fromkeys(("in", "out", "root.input received"), figures.received),
                **dict.fromkeys((f"{CHECK} received", f"{CHECK} sent"), figures.received),
                "root.output sent": figures.received,
                "error": 0,
            },
        )
        busy = {f"busy:{CHECK}": 0.1 * step, "busy:root.output": 0.75 * step}
        amounts = {**dict.fromkeys(("in", "out"), rate * step), **busy}
        values = {
            **dict.fromkeys(("batch_seconds", "latency_p50"), 0.4),
            **{"stage_1_seconds": 0.1, "stage_2_seconds": 0.2, "latency_p99": 0.9},
            **{"open_windows": 3.0, "held_messages": 412.0, "state_bytes": 88_100.0},
        }
        history.record(BatchFigures(since, until, until, amounts, values))


def stage() -> Stage:
    """What the streams say."""
    return Stage(breaks={"it-breaks"}, now=now, windows=windows, feed=feed)


def files(directory: Path, number: int = 2) -> dict[str, str]:
    """Configs of so many streams by their ids."""
    given = {"lights": LIGHTS, "orders": ORDERS}
    for count in range(2, number):
        text = GENERATE if count % 9 else GENERATE + "# it-breaks\n"
        given[f"stream-{count:03}"] = text
    found = {}
    for name, text in given.items():
        path = directory / f"{name}.yaml"
        path.write_text(text)
        found[name] = str(path)
    return found


def main() -> None:
    """Serve them."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    directory = Path(tempfile.mkdtemp())
    (directory / "configs").mkdir()
    given = files(directory / "configs", number) if number else {}
    with asking(directory / "state", files=given, stage=stage()) as server:
        for name in list(server.service.manager.registry.streams())[:3]:
            managed = server.service.manager.registry.get(name)
            managed.log("INFO", "Connected", {"path": "root.input"})
            managed.log("WARN", "bad order: failed assignment (line 1): too much", {"label": "say"})
            managed.log("ERROR", "<img src=x onerror=alert(1)>", {"path": "root.output"})
        print(server.url, flush=True)
        try:
            while True:
                time.sleep(1)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
