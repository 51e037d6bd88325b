"""Made events of a month, some of them late, and backfills over them."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from pathlib import Path

from streamer.config.load import parse_config
from streamer.core.durations import SECOND
from streamer.core.message import Message
from streamer.engine.offline.scripted import ScriptedMessage, ScriptedStream
from streamer.plan import Plan, make_plan
from streamer.service.backfill.backfill import (
    Backfill,
    BackfillOptions,
    BackfillOutcome,
    identify,
)
from streamer.service.backfill.tasks import Bounds

MONTH_S = 30 * 86_400
NEW_YEAR_S = 1_767_225_600
"""2026-01-01T00:00:00Z, Unix seconds."""

RESULT_MAPPING = """
pipeline:
  processors:
    - mapping: |
        root.key = @window_key
        root.start = @window_start_timestamp
        root.end = @window_end_timestamp
        root.why = @window_emit
        root.ids = json("id").from_all()
        root = if batch_index() > 0 { deleted() }
"""


def make_events(seed: int, count: int, keys: str = "abc") -> list[dict[str, object]]:
    """Return events of a month: a part of them late by hours, a few by days, some at full hours."""
    rng = random.Random(seed)
    events: list[dict[str, object]] = []
    for number in range(count):
        at = NEW_YEAR_S + MONTH_S * number / count
        chance = rng.random()
        if chance < 0.10:
            at -= rng.random() * 4 * 3600
        elif chance < 0.12:
            at -= rng.random() * 60 * 3600
        elif chance < 0.20:
            at = at // 3600 * 3600
        events.append({"id": number, "t": round(at, 3), "k": rng.choice(keys)})
    return events


def write_events(directory: Path, events: Sequence[dict[str, object]]) -> Path:
    """Write events to a file of lines."""
    path = directory / "events.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in events))
    return path


def make_stream_plan(directory: Path, buffer: str, processors: str = RESULT_MAPPING) -> Plan:
    """Return the plan of a stream from the file of events to a file of results."""
    text = f"""
input:
  file: {{paths: [{directory}/events.jsonl]}}
{buffer}{processors}
output:
  file: {{path: {directory}/results.jsonl, codec: lines}}
"""
    config = parse_config(text + "\nspark: {shards: 3}\n")
    assert not config.lints
    return make_plan(config, level="OFF")


def run_backfill(
    directory: Path,
    plan: Plan,
    ranges: int = 10,
    micro_batch: int = 40,
    bounds: Bounds | None = None,
    hand_over: str = "",
    work: str = "work",
) -> tuple[BackfillOutcome, list[str]]:
    """Run a backfill in this process; return its outcome and the rows of its results."""
    options = BackfillOptions(bounds or Bounds(), 1, ranges, micro_batch, hand_over)
    results = directory / "results.jsonl"
    results.unlink(missing_ok=True)
    identity = identify(plan, "", options)
    backfill = Backfill(plan, directory / work, options, identity, lambda *line: None)
    try:
        backfill.open()
        outcome = backfill.run(io.BytesIO(), lambda progress: None, lambda: False)
    finally:
        backfill.close()
    return outcome, read_rows(results)


def read_rows(path: Path) -> list[str]:
    """Return the lines of a file, sorted."""
    return sorted(path.read_text().splitlines()) if path.exists() else []


def run_stream(
    plan: Plan, events: Sequence[dict[str, object]], micro_batch: int, ended: bool = True
) -> list[str]:
    """Return the rows that a stream gives which reads so many events in each micro-batch."""
    stream = ScriptedStream(plan)
    rows: list[str] = []
    now = (NEW_YEAR_S + 2 * MONTH_S) * SECOND
    for first in range(0, len(events), micro_batch):
        some = events[first : first + micro_batch]
        sent = [ScriptedMessage(Message(json.dumps(one).encode())) for one in some]
        is_last = ended and first + micro_batch >= len(events)
        outcome = stream.run_micro_batch(now, sent, is_last)
        rows += [one.raw.decode() for batch in outcome.batches for one in batch]
    return sorted(rows)
