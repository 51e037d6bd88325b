"""Measures the window kernel alone, in one process: `python -m tests.bench.kernel [events]`.

Traffic lights: 1,000 lights, 50,000 plates, one tumbling window. Stage 1 packs micro-batches of a
million events, stage 2 keeps them in a dict and releases the window, group by group and as one
batch. Prints CPU microseconds and bytes per event; memory is what the release adds at its peak.
"""

from __future__ import annotations

import gc
import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from streamer.bloblang import compile_interpolation, compile_mapping
from streamer.core.durations import HOUR, SECOND
from streamer.core.execution import Execution
from streamer.window import DictStore, MicroBatchInfo, Packer, Shard, SystemWindow
from streamer.window.evaluate.queries import BufferMappings
from tests.bench.traffic import chunks

START = 1_628_330_400 * SECOND
PER_SECOND = 5_000
MICRO_BATCH = 1_000_000
CHUNK = 16_384


def events(count: int) -> Iterator[list[bytes]]:
    """Chunks of events, their times rising."""
    for text in chunks(count, START / SECOND + 1, PER_SECOND):
        lines = text.splitlines()
        for start in range(0, len(lines), CHUNK):
            yield lines[start : start + CHUNK]


def memory(name: str) -> int:
    """Bytes of this process: `VmRSS` now, `VmHWM` at its highest."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def fill(window: SystemWindow, count: int, keyed: bool) -> tuple[DictStore, dict[str, float]]:
    """Pack and keep all events; returns the state and what it took."""
    store = DictStore()
    timestamp = compile_mapping("root = this.created_at")
    key = compile_interpolation('${! json("traffic_light") }') if keyed else None
    mappings = BufferMappings(timestamp, key)
    took = {"stage 1": 0.0, "keep": 0.0, "raw": 0.0}
    packer, rows, arrival = Packer(window, 1, mappings), [], 0
    ex = Execution(lambda: START)
    for chunk in events(count):
        took["raw"] += sum(map(len, chunk))
        began = time.process_time()
        packer.add_raws(chunk, {"path": "events.jsonl"}, arrival, START, ex)
        rows += packer.take_rows()
        arrival += len(chunk)
        if arrival % MICRO_BATCH < len(chunk) or arrival == count:
            rows += packer.flush_rows()
            packed = time.process_time()
            list(Shard(window, store).step([*rows, MicroBatchInfo(START, "bench").to_row(0)]))
            took["keep"] += time.process_time() - packed
            packer, rows = Packer(window, 1, mappings), []
            took["stage 1"] += packed - began
        else:
            took["stage 1"] += time.process_time() - began
    return store, took


def release(window: SystemWindow, store: DictStore) -> tuple[int, float, int]:
    """Close the window; returns the batches, the CPU seconds and the bytes it took at its peak."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before, began = memory("VmRSS"), time.process_time()
    step = Shard(window, store).step([MicroBatchInfo(START + HOUR, "bench").to_row(0)])
    batches = sum(1 for _ in step)
    return batches, time.process_time() - began, memory("VmHWM") - before


def main() -> None:
    """Run with and without a key."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_500_000
    gc.set_threshold(200_000, 50, 100)  # as the workers do
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} cores")
    window = SystemWindow(HOUR)
    for keyed in (True, False):
        store, took = fill(window, count, keyed)
        size = sum(map(len, store.values.values()))
        batches, seconds, peak = release(window, store)
        micro = 1e6 / count
        print(
            f"{'keyed' if keyed else 'unkeyed':8}{count:,} events of {took['raw'] / count:.0f} B: "
            f"stage 1 {took['stage 1'] * micro:.2f} µs, keep {took['keep'] * micro:.3f} µs, state "
            f"{size / count:.1f} B, release {seconds * micro:.2f} µs and {peak / count:.0f} B per "
            f"event, in {batches:,} batches"
        )


if __name__ == "__main__":
    main()
