"""`duckdb` beside mappings: the same totals over windows of many messages, without Spark.

A window is a batch of unparsed messages, as it comes out of its store. One mapping folds all
messages of the window; the other sums up the groups of `group_by_value`. Neither is pre-aggregated:
both see all messages. All results are compared. Memory is that of this process and of the one in
which DuckDB runs, after a tenth of the windows and after all.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

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
_FIRST_WINDOWS: Final = 8
# By hand: STREAMER_BENCH_SECONDS=3600, for windows that are all whole.
_MOST_SECONDS: Final = float(os.environ.get("STREAMER_BENCH_SECONDS", "110"))
_DUCKDB: Final = "duckdb"
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
    """Print messages a second of each, the ratio, and memory.

    All pipelines run over a few windows first. DuckDB and the faster mapping then run over all
    windows, one after the other over each window, so that both see the same machine. Where that
    would take too long, all windows have fewer messages.
    """
    chance = random.Random(1)
    kept = [make_window(chance) for _ in range(_KEPT_WINDOWS)]
    built = {name: _build(text) for name, text in PIPELINES.items()}
    answers = {name: _answer(processors, kept) for name, processors in built.items()}
    wrong = [name for name in answers if answers[name] != answers[_DUCKDB]]
    if wrong:
        raise SystemExit(f"other totals: {', '.join(wrong)}")
    rates = _measure(built, kept, _FIRST_WINDOWS).rates
    mappings = [name for name in rates if not name.startswith(_DUCKDB)]
    fastest = max(mappings, key=lambda name: rates[name])
    rivals = {name: built[name] for name in (_DUCKDB, fastest)}
    seconds = sum(windows * MESSAGES / rates[name] for name in rivals)
    messages = min(MESSAGES, int(MESSAGES * _MOST_SECONDS / seconds))
    report.heading(f"sql_windows: {windows:,} windows of {messages:,} messages")
    for name, rate in rates.items():
        report.figure(f"{name}: messages a second, {_FIRST_WINDOWS} windows", rate)
    made = _measure(rivals, [window[:messages] for window in kept], windows)
    for name, rate in made.rates.items():
        report.figure(f"{name}: messages a second", rate)
        report.figure(f"{name}: CPU of a million messages", made.cpu_s[name], "s")
    report.figure("growth of memory", made.growth_mb, "MB", most=_MOST_GROWTH_MB)
    # Of CPU, which others on the machine do not change; one of both waits while the other works.
    ratio = made.cpu_s[fastest] / made.cpu_s[_DUCKDB]
    report.figure(
        "duckdb: of the faster mapping, by the clock", made.rates[_DUCKDB] / made.rates[fastest]
    )
    report.figure("duckdb: of the faster mapping, by CPU", ratio, least=LEAST_RATIO)


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


class _Measured(NamedTuple):
    """Messages a second of each pipeline, CPU seconds of a million, and growth of memory, MB."""

    rates: dict[str, float]
    cpu_s: dict[str, float]
    growth_mb: float


def _measure(
    built: Mapping[str, list[Processor]], kept: list[list[bytes]], count: int
) -> _Measured:
    """Run all pipelines over each of so many windows, in turns."""
    ex = Execution(time.time_ns)
    rows = {name: _answer(processors, kept) for name, processors in built.items()}
    seconds, cpu = dict.fromkeys(built, 0.0), dict.fromkeys(built, 0.0)
    before = 0.0
    for number in range(count):
        place = number % len(kept)
        for name, processors in built.items():
            window: Batch = [Message(raw) for raw in kept[place]]
            before_cpu, began = cpu_seconds(), time.perf_counter()
            totals = _totals(processors, window, ex)
            seconds[name] += time.perf_counter() - began
            cpu[name] += cpu_seconds() - before_cpu
            if totals != rows[name][place]:
                raise SystemExit(f"{name}: a window has other totals than before")
        if number == count // 10:
            before = memory_mb()
    messages = count * len(kept[0])
    rates = {name: messages / taken for name, taken in seconds.items()}
    costs = {name: used / messages * 1e6 for name, used in cpu.items()}
    return _Measured(rates, costs, memory_mb() - before)


def _answer(processors: list[Processor], kept: list[list[bytes]]) -> list[Any]:
    ex = Execution(time.time_ns)
    return [_totals(processors, [Message(raw) for raw in window], ex) for window in kept]


def _build(text: str) -> list[Processor]:
    config = parse_config(f"pipeline:\n  processors:{text}", env={})
    context = build_context(config.resources)
    return [context.build(component) for component in config.processors]


def _totals(processors: list[Processor], window: Batch, ex: Execution) -> list[Any]:
    made = [message for batch in run(processors, [window], ex) for message in batch]
    return sorted((orjson.loads(message.raw) for message in made), key=lambda row: row["light"])


def list_processes() -> set[str]:
    """Return the ids of this process and of its children, as `/proc` has them."""
    ids = {"self"}
    for task in Path("/proc/self/task").iterdir():
        ids |= set((task / "children").read_text().split())
    return ids


def cpu_seconds() -> float:
    """Return the CPU that this process and its children have used, s."""
    ticks = 0
    for one in list_processes():
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mb() -> float:
    """Return the resident memory of this process and of its children, MB."""
    total = 0
    for one in list_processes():
        lines = Path(f"/proc/{one}/status").read_text().splitlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return total / 1024
