"""`duckdb` beside mappings: the same totals over windows of many messages, without Spark.

A window is a batch of unparsed messages, as it comes out of its store. One mapping folds all
messages of the window; the other sums up the groups of `group_by_value`. Neither is pre-aggregated:
both see all messages. All results are compared. Memory is that of this process and of the one in
which DuckDB runs, after a tenth of the windows and after all.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any, Final

import orjson

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.processing import Processor, run
from tests.bench import report

LEAST_RATIO: Final = 2.0
"""Of the throughput of the faster mapping."""

MESSAGES: Final = 10_000
_KEPT_WINDOWS: Final = 8
_SLOW_WINDOWS: Final = 20
_MOST_GROWTH_MB: Final = 64.0

PIPELINES: Final = {
    "duckdb": """
    - duckdb:
        query: |
          SELECT light, count(*) AS cars, sum(passengers) AS passengers
          FROM batch GROUP BY light ORDER BY light
        columns: { light: string, passengers: bigint }
""",
    "duckdb, without columns": """
    - duckdb:
        query: |
          SELECT light, count(*) AS cars, sum(passengers) AS passengers
          FROM batch GROUP BY light ORDER BY light
""",
    "a fold": """
    - mapping: |
        root = if batch_index() == 0 {
          json().from_all().fold({}, i -> i.tally.assign({
            (i.value.light): {
              "light": i.value.light,
              "cars": i.tally.get(i.value.light).cars.or(0) + 1,
              "passengers": i.tally.get(i.value.light).passengers.or(0) + i.value.passengers,
            }
          })).values().sort_by(t -> t.light)
        } else { deleted() }
    - unarchive: { format: json_array }
""",
    "group_by_value and sums": """
    - group_by_value: { value: '${! this.light }' }
    - mapping: |
        root = if batch_index() == 0 {
          {
            "light": this.light,
            "cars": json("light").from_all().length(),
            "passengers": json("passengers").from_all().sum(),
          }
        } else { deleted() }
""",
}


def sql_windows(windows: int) -> None:
    """Print messages a second of each, the ratio, and memory."""
    report.heading(f"sql_windows: {windows:,} windows of {MESSAGES:,} messages")
    chance = random.Random(1)
    kept = [make_window(chance) for _ in range(_KEPT_WINDOWS)]
    rates: dict[str, float] = {}
    answers: dict[str, Any] = {}
    for name, text in PIPELINES.items():
        count = windows if name == "duckdb" else min(windows, _SLOW_WINDOWS)
        rates[name], answers[name], growth = _measure(text, kept, count)
        report.figure(f"{name}: messages a second", rates[name])
        if name == "duckdb":
            report.figure(f"{name}: growth of memory", growth, "MB", most=_MOST_GROWTH_MB)
    wrong = [name for name in answers if answers[name] != answers["duckdb"]]
    if wrong:
        raise SystemExit(f"other totals: {', '.join(wrong)}")
    fastest = max(rates[name] for name in rates if not name.startswith("duckdb"))
    report.figure("duckdb: of the faster mapping", rates["duckdb"] / fastest, least=LEAST_RATIO)


def make_window(chance: random.Random) -> list[bytes]:
    """Return the payloads of a window: cars at eight traffic lights."""
    return [
        orjson.dumps(
            {
                "light": f"light-{chance.randrange(8)}",
                "passengers": chance.randrange(1, 9),
                "speed": chance.randrange(1, 10_000) / 100,
                "registration_plate": f"AB-{chance.randrange(100_000)}",
                "created_at": f"2026-01-01T00:{chance.randrange(60):02d}:07Z",
            }
        )
        for _ in range(MESSAGES)
    ]


def _measure(text: str, kept: list[list[bytes]], count: int) -> tuple[float, Any, float]:
    """Return messages a second, the rows of each window, and by how much memory has grown, MB."""
    processors = _build(text)
    ex = Execution(time.time_ns)
    rows = [_totals(processors, [Message(raw) for raw in window], ex) for window in kept]
    before, seconds = 0.0, 0.0
    for number in range(count):
        window = [Message(raw) for raw in kept[number % len(kept)]]
        began = time.perf_counter()
        if _totals(processors, window, ex) != rows[number % len(kept)]:
            raise SystemExit("a window has other totals than before")
        seconds += time.perf_counter() - began
        if number == count // 10:
            before = memory_mb(processors)
    return count * MESSAGES / seconds, rows, memory_mb(processors) - before


def _build(text: str) -> list[Processor]:
    config = parse_config(f"pipeline:\n  processors:{text}", env={})
    context = build_context(config.resources)
    return [context.build(component) for component in config.processors]


def _totals(processors: list[Processor], window: Batch, ex: Execution) -> list[Any]:
    made = [message for batch in run(processors, [window], ex) for message in batch]
    return sorted((orjson.loads(message.raw) for message in made), key=lambda row: row["light"])


def memory_mb(processors: list[Processor]) -> float:
    """Return the resident memory of this process and of its children, MB."""
    children = Path("/proc/self/task")
    ids = {"self"}
    for task in children.iterdir():
        ids |= set((task / "children").read_text().split())
    total = 0
    for one in ids:
        lines = Path(f"/proc/{one}/status").read_text().splitlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return total / 1024
