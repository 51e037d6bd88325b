"""A clock that is set back and forth, and processes that stand still: nothing is lost.

Windows of the clock on the wall drop what the stream's own outputs hold up for too long. Here they
hold up nothing: whatever was answered with 200 has to come out, once.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.program import Program, program
from tests.processes import command, descendants, python_workers
from tests.servers import free_port, installed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CLOCK = Path(__file__).parents[1] / "proof" / "clock.c"
HOUR = 3600
STANDS_S = 7
"""Longer than a window of a second and `expire_after` together."""

CONFIG = """
http: {{ address: "127.0.0.1:{port}" }}
input:
  http_server: {{ path: /post }}
buffer:
  system_window: {{ size: 1s, expire_after: 2s }}
output:
  file: {{ path: {out}, codec: lines }}
spark: {{ master: "local[2]" }}
"""


class Sender:
    """Sends numbers, each once, and notes which were taken."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/post"
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(n,)) for n in range(2)]
        self.taken: list[int] = []

    @contextmanager
    def sending(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in self._threads:
                thread.join()

    def _send(self, first: int) -> None:
        number = first
        while not self._over.wait(0.05):
            number += len(self._threads)
            body = json.dumps({"n": number}).encode()
            try:
                with urllib.request.urlopen(
                    urllib.request.Request(self._url, body, method="POST"), timeout=30
                ) as answer:
                    if answer.status == 200:
                        self.taken.append(number)
            except (urllib.error.URLError, OSError):
                self._over.wait(0.2)


def test_a_moved_clock_and_processes_that_stand_still_lose_nothing(tmp_path: Path) -> None:
    library, clock, out = tmp_path / "clock.so", tmp_path / "clock", tmp_path / "out"
    compiler = installed("gcc libc6-dev", "gcc")
    build = [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-o", str(library), str(CLOCK), "-ldl"]
    subprocess.run(build, check=True)
    clock.write_bytes(struct.pack("=q", 0))
    config, port = tmp_path / "clocks.yaml", free_port()
    config.write_text(CONFIG.format(port=port, out=out))
    env = {"LD_PRELOAD": str(library), "PROOF_CLOCK": str(clock)}
    sender = Sender(port)
    with program(config, tmp_path / "c", env=env) as running:
        running.wait_running()
        with sender.sending():
            _wait_for_more(running, out)
            for shift in (-HOUR, 0, HOUR, 0):
                _set(clock, shift)
                # Windows go on, though the clock is an hour behind.
                _wait_for_more(running, out)
                _wait_for_more(running, out)
            for pids in _processes(running):
                with _stopped(pids):
                    time.sleep(STANDS_S)
                _wait_for_more(running, out)
        running.wait_for(lambda: set(sender.taken) <= set(_came(out)), 240, "for what was taken")
        assert running.stop() == 0
        lines = running.lines()
    came = _came(out)
    assert len(sender.taken) > 200
    assert {number: times for number, times in came.items() if times > 1} == {}
    assert set(sender.taken) - set(came) == set()
    assert not [line for line in lines if "expired" in str(line.get("msg", ""))]
    steps = [str(line["step"]) for line in lines if "clock was set" in str(line.get("msg", ""))]
    assert steps == ["-1h", "1h", "1h", "-1h"]


def _wait_for_more(running: Program, out: Path) -> None:
    before = len(_came(out))
    running.wait_for(lambda: len(_came(out)) > before, 240, "for another window")


def _came(out: Path) -> Counter[int]:
    if not out.exists():
        return Counter()
    *whole, _ = out.read_bytes().split(b"\n")
    return Counter(json.loads(line)["n"] for line in whole)


def _set(clock: Path, shift: int) -> None:
    """Write in place, at once: it is mapped."""
    with clock.open("r+b") as file:
        os.pwrite(file.fileno(), struct.pack("=q", shift), 0)


def _processes(running: Program) -> Iterator[set[int]]:
    """Give the program, its JVM, its workers, what plans micro-batches, and all of them."""
    root = running.process.pid
    yield {root}
    found = descendants(root)
    jvm = {pid for pid in found - {root} if "java" in command(pid).split(" ")[0]}
    assert jvm
    yield jvm
    workers = set(python_workers(root))
    assert workers
    yield workers
    others = descendants(root) - jvm - set(python_workers(root)) - {root}
    assert others
    yield others
    yield descendants(root)


@contextmanager
def _stopped(pids: set[int]) -> Iterator[None]:
    for pid in pids:
        _signal(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # Spark ends workers that it has no use for.
