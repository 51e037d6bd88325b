"""Ask a service the same things again and again, as a process of its own, and time the answers.

A client that shares its process with a hundred senders waits for them as well, which says nothing
of the service. `python -m tests.faults.looks URL PATH…` writes a line of JSON for each answer,
until its standard input ends.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx2

EACH = 0.25
"""Seconds between an answer and the next question."""


class Look(NamedTuple):
    """An answer: the path that was asked for, the HTTP status, and how many seconds it took."""

    path: str
    status: int
    seconds: float


class Looks:
    """What was seen, once it is over."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def all(self) -> list[Look]:
        return [Look(*json.loads(line)) for line in self._file.read_text().splitlines()]

    def p99(self, path: str | None = None) -> float:
        """Return the 99th percentile of the seconds, of one path or of all."""
        times = sorted(one.seconds for one in self.all() if path in (None, one.path))
        return times[int(len(times) * 0.99)]


@contextmanager
def looking(url: str, paths: tuple[str, ...], file: Path) -> Iterator[Looks]:
    """Ask as long as the context lasts.

    Raises:
        AssertionError: it ended by itself: the service did not answer.
    """
    with file.open("wb") as out:
        asking = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.looks", url, *paths],
            stdin=subprocess.PIPE,
            stdout=out,
        )
        try:
            yield Looks(file)
            assert asking.poll() is None, "the service was asked, and did not answer"
        finally:
            asking.communicate(timeout=150)


def main(url: str, *paths: str) -> None:
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    with httpx2.Client(base_url=url, timeout=120) as client:
        for path in itertools.cycle(paths):
            if over.wait(EACH):
                return
            began = time.monotonic()
            status = client.get(path).status_code
            print(json.dumps([path, status, time.monotonic() - began]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
