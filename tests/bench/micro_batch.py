"""What a micro-batch of one message costs: wall time by Spark's phases, CPU by process and thread.

A client sends a message to `http_server`, waits until its micro-batch is delivered, rests a little,
and sends the next one. Java compiles what it meets often, so the first ones are left out.
"""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench import report
from tests.bench.http_requests import free_port
from tests.bench.observed import KEPT
from tests.bench.process_tree import Process, read_stat
from tests.bench.product import Product, product

CONFIG = """
http: {{ enabled: false }}
input:
  http_server: {{ address: "127.0.0.1:{port}" }}
{buffer}
pipeline:
  processors:
    - mapping: |
        root = this
        root.seen = true
output: {{ drop: {{}} }}
spark:
  master: "local[2]"
  trigger_interval: 10ms
  conf:
    spark.sql.streaming.numRecentProgressUpdates: "{kept}"
"""
WINDOWS = """
buffer:
  system_window: { size: 24h, timestamp_mapping: 'root = now()' }
"""
CASES = (("one message, no window", ""), ("one message, in a window", WINDOWS))
MESSAGE = b'{"light":"000017","registration_plate":"JYBKGZL","passed_by_count":7}'
MOST_CPU_S, MOST_MS = 0.05, 60.0
PHASES = "addBatch", "walCommit", "commitOffsets", "latestOffset", "queryPlanning", "getBatch"


def micro_batch(work: Path, batches: int, warm: int) -> None:
    """Measure micro-batches of one message, without a window and with one.

    Args:
        work: an empty directory.
        batches: how many are measured.
        warm: how many come first.
    """
    for name, buffer in CASES:
        report.heading(f"micro_batch: {name}, {batches} after {warm}")
        _measure(work / "micro_batch", buffer, batches, warm)


def _measure(directory: Path, buffer: str, batches: int, warm: int) -> None:
    port = free_port()
    config = CONFIG.format(port=port, buffer=buffer, kept=KEPT)
    progress = directory / "progress.json"
    module = "tests.bench.observed", str(progress)
    with product(config, directory, every=1.0, module=module, watches_state=False) as run:
        run.wait_for_start(120)
        client = http.client.HTTPConnection("127.0.0.1", port)
        _feed(run, client, warm)
        before, began = _cpu_by_thread(run), time.time()
        waits = _feed(run, client, batches)
        after, ended = _cpu_by_thread(run), time.time()
        found = _progress(run, progress)[-batches:]
    _report(found, after - before, waits, ended - began)
    shutil.rmtree(directory)


def _feed(run: Product, client: http.client.HTTPConnection, messages: int) -> list[float]:
    """Send messages one by one; return how long each took until it was delivered, s."""
    waits = []
    for _ in range(messages):
        count = run.delivered[-1].messages + 1
        began = time.monotonic()
        client.request("POST", "/post", MESSAGE)
        answer = client.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"a request was answered with {answer.status}")
        until = time.monotonic() + 60
        while run.delivered[-1].messages < count:
            if time.monotonic() > until:
                raise RuntimeError(f"a message was not delivered: {run.troubles}")
            time.sleep(0.002)
        waits.append(time.monotonic() - began)
    return waits


def _progress(run: Product, file: Path) -> list[dict[str, Any]]:
    run.process.send_signal(signal.SIGUSR1)
    until = time.monotonic() + 30
    while not file.exists():
        if time.monotonic() > until:
            raise RuntimeError("the program does not write Spark's progress")
        time.sleep(0.1)
    every: list[dict[str, Any]] = json.loads(file.read_text())
    return [one for one in every if "addBatch" in one["durationMs"]]


def _cpu_by_thread(run: Product) -> Counter[str]:
    """Return CPU seconds of the process tree, by kind of process, and thread of Java's."""
    found: Counter[str] = Counter()
    for pid, kind in _kinds(run.process.pid).items():
        for file in Path("/proc", str(pid), "task").glob("*/stat"):
            if stat := read_stat(file):
                thread = re.sub(r"[0-9]+", "", stat.name)
                found[f"java: {thread}" if kind == "java" else kind] += stat.cpu
                found[f"{kind}: threads that ended"] -= stat.cpu
        if stat := read_stat(Path("/proc", str(pid), "stat")):
            # Spark serves the state of each shard by a thread that ends with its task.
            found[f"{kind}: threads that ended"] += stat.cpu
            found["processes that ended"] += stat.ended
    return found


def _kinds(root: int) -> dict[int, str]:
    """Return the kind of each process of a tree, by its number."""
    every = [one for path in Path("/proc").glob("[0-9]*/stat") if (one := read_stat(path))]
    kinds, todo = {root: "driver"}, [root]
    while todo:
        parent = todo.pop()
        for process in every:
            if process.parent == parent:
                kinds[process.pid] = _kind(process, kinds[parent])
                todo.append(process.pid)
    return kinds


def _kind(process: Process, parent: str) -> str:
    if process.name == "java":
        return "java"
    if parent in ("fork server", "worker, planner"):
        return "worker, planner"
    try:
        arguments = Path("/proc", str(process.pid), "cmdline").read_bytes()
    except OSError:
        return "other"
    return "fork server" if b"fork_server.fork_server" in arguments else "other"


def _report(
    found: list[dict[str, Any]], cpu: Counter[str], waits: list[float], seconds: float
) -> None:
    batches = len(found)
    report.figure("CPU of a micro-batch", cpu.total() / batches, "s", most=MOST_CPU_S)
    whole = [one["durationMs"]["triggerExecution"] for one in found]
    report.figure("wall time of a micro-batch, median", median(whole), "ms", most=MOST_MS)
    for phase in PHASES:
        times = [one["durationMs"].get(phase, 0) for one in found]
        report.figure(f"  {phase}", sum(times) / batches, "ms")
    report.figure("from sending to delivery, median", median(waits) * 1000, "ms")
    report.note(f"{batches} micro-batches in {seconds:.1f} s; CPU of each by thread, ms:")
    for name, used in cpu.most_common(16):
        if used / batches >= 0.0004:
            report.figure(f"  {name}", used / batches * 1000, "ms")
