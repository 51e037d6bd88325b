"""A topic at a steady rate for long: memory and threads each minute, and latency; idle afterwards.

A probe among the events carries when it was made. The stream maps it and writes it into a file. The
latency of a message that comes alone is that until its line is in the file; under load it is that
until the mapping has it.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import orjson

from tests.bench import jobs, report
from tests.bench.kafka import GROUP, INPUT
from tests.bench.product import Product, product
from tests.processes import descendants
from tests.servers.kafka import Broker, Kafka

TOPIC, PARTITIONS = "steady", 12
_TICK = 0.02
_SINGLE = 50
"""Single messages whose latency is measured, before the rate begins."""
_IDLE = 20.0

CONFIG = """
pipeline:
  processors:
    - mapping: |
        root = if this.probe == null {{ deleted() }}
        root.took = timestamp_unix_nano() - this.probe
output:
  file:
    path: "{path}"
"""


def kafka_soak(work: Path, rate: float, minutes: float, master: str) -> None:
    """Feed a stream; print a line of figures a minute."""
    report.heading(f"kafka_soak: {rate:,.0f} events/s for {minutes:g} minutes, {master}")
    work.mkdir(parents=True, exist_ok=True)
    with Broker(work / "broker") as broker:
        client, out = broker.client(), work / "out.jsonl"
        # Half an hour of events is more than a disk may have: what was read long ago is deleted.
        client.create(TOPIC, PARTITIONS, retention_bytes=32 << 20, segment_bytes=16 << 20)
        text = INPUT.format(broker=broker.address(), topic=TOPIC, group=GROUP, most=1_000_000)
        config = text + CONFIG.format(path=out) + jobs.spark(master)
        with product(config, work / "run") as run:
            run.wait_for_start(120)
            _tell_latency("one message at a time", _single(client, out))
            feeder = _Feeder(client, rate)
            feeder.start()
            before, read_before = out.stat().st_size, _read(run)
            for minute in range(max(round(minutes), 1)):
                time.sleep(60)
                after, read = out.stat().st_size, _read(run)
                _tell_minute(minute + 1, run, (read - read_before) / 60, feeder.sent - read)
                _tell_latency(f"minute {minute + 1}", _latencies(out, before, after))
                before, read_before = after, read
            feeder.stop()
            run.wait_for_messages(feeder.sent, 120)
            _tell_idle(run)


class _Feeder(threading.Thread):
    """Writes events at a steady rate, and a probe among them ten times a second."""

    def __init__(self, client: Kafka, rate: float) -> None:
        super().__init__(daemon=True)
        self._producer: Any = client.producer(linger_ms=5, max_in_flight=5)
        self._rate = rate
        self._over = threading.Event()
        self.sent = _SINGLE

    def run(self) -> None:
        began, made, plain = time.monotonic(), 0, b'{"light":"%s"}' % (b"x" * 100)
        ticks = 0
        while not self._over.is_set():
            due = int((time.monotonic() - began) * self._rate)
            for number in range(made, due):
                self._produce(plain, number)
            if ticks % 5 == 0:
                self._produce(b'{"probe":%d}' % time.time_ns(), due)
                self.sent += 1
            self.sent += due - made
            made, ticks = due, ticks + 1
            self._producer.poll(0)
            time.sleep(_TICK)
        self._producer.flush(60)

    def _produce(self, body: bytes, number: int) -> None:
        while True:
            try:
                self._producer.produce(TOPIC, body, partition=number % PARTITIONS)
                return
            except BufferError:
                self._producer.poll(0.05)

    def stop(self) -> None:
        self._over.set()
        self.join()


def _single(client: Kafka, out: Path) -> list[float]:
    """Return the latencies of messages that come alone, s."""
    producer: Any = client.producer()
    took = []
    for number in range(_SINGLE):
        began = time.monotonic()
        size = out.stat().st_size if out.exists() else 0
        body = b'{"probe":%d}' % time.time_ns()
        producer.produce(TOPIC, body, partition=number % PARTITIONS)
        producer.flush(10)
        while not out.exists() or out.stat().st_size == size:
            if time.monotonic() - began > 30:
                raise RuntimeError("a message has not come out after 30 s")
            time.sleep(0.0005)
        took.append(time.monotonic() - began)
        time.sleep(0.1)
    return took[_SINGLE // 5 :]


def _latencies(out: Path, before: int, after: int) -> list[float]:
    """Return how long probes took that came out in a part of the file, by its own times, s."""
    with out.open("rb") as file:
        file.seek(before)
        lines = file.read(after - before).splitlines()
    return [orjson.loads(line)["took"] / 1e9 for line in lines if b"took" in line]


def _tell_latency(what: str, latencies: list[float]) -> None:
    if latencies:
        for q in (0.5, 0.99):
            found = report.quantile(latencies, q) * 1e3
            report.figure(f"latency, {what}, {q:.0%}", found, "ms")


def _read(run: Product) -> int:
    return run.delivered[-1].messages if run.delivered else 0


def _tell_minute(minute: int, run: Product, rate: float, behind: int) -> None:
    if run.process.poll() is not None:
        said = "\n  ".join(run.troubles[-20:])
        raise RuntimeError(f"the program ended with {run.process.returncode}\n  {said}")
    now = time.time()
    cpu = run.tree.cpu_at(now - 1) - run.tree.cpu_at(now - 61)
    own = run.process.pid
    kinds = {"program": [own], "all": [own, *descendants(own)]}
    told = [f"{rate:,.0f} events/s read, {max(behind, 0):,} behind, {cpu / 60:.2f} cores"]
    for name, pids in kinds.items():
        found = [_status(pid) for pid in pids]
        told.append(
            f"{name}: {sum(one[0] for one in found):,.0f} MiB, "
            f"{sum(one[1] for one in found)} threads, {sum(one[2] for one in found)} files open"
        )
    report.note(f"minute {minute}: " + "; ".join(told))


def _tell_idle(run: Product) -> None:
    time.sleep(5)
    began = time.time()
    time.sleep(_IDLE)
    cpu = run.tree.cpu_at(began + _IDLE) - run.tree.cpu_at(began)
    report.figure("cores while nothing comes", cpu / _IDLE, "", most=0.1)


def _status(pid: int) -> tuple[float, int, int]:
    """Return a process's proportional memory in MiB, its threads and its open files."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        opened = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0.0, 0, 0
    fields = dict(line.split(":", 1) for line in text.splitlines())
    share = next(line for line in rollup.splitlines() if line.startswith("Pss:"))
    return int(share.split()[1]) / 1024, int(fields["Threads"]), opened
