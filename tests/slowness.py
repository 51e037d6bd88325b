"""How much slower this machine is now than one on which bounds of CPU seconds hold.

A second of CPU is not the same everywhere, nor at all times where others use the machine's cores
and its memory: what starts suffers most from that, so a start is what is looked at.
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

_IMPORTS = (
    "import asyncio, concurrent.futures, ctypes, decimal, difflib, doctest, email.mime.multipart, "
    "http.client, logging.config, multiprocessing.pool, pdb, pydoc, sqlite3, statistics, tarfile, "
    "unittest.mock, urllib.request, xml.dom.minidom, zipfile"
)
_SECONDS = 0.13
"""CPU seconds of a Python with these, where a bound holds as it stands: so chosen that one of half
a second allows a start 3.8 times as much as this takes. Starts took 2.1 to 3.1 times, then."""


def slowness() -> float:
    """Return by what to multiply a bound: 1 or more."""
    return max(1.0, statistics.median(_look() for _ in range(5)) / _SECONDS)


def wall_slowness() -> float:
    """Return by what to multiply a bound of seconds by the clock on the wall: 1 or more.

    Where others use the cores, a start takes longer than the CPU seconds that it needs.
    """
    return max(1.0, statistics.median(_look_at_the_clock() for _ in range(5)) / _SECONDS)


def is_within(limit_s: float, taken_s: float) -> bool:
    """Return whether seconds of the clock are within a limit, of this machine as it is now."""
    return taken_s < limit_s or taken_s < limit_s * wall_slowness()


def relative_cpu(limit_s: float, measure: Callable[[], float], tries: int = 8) -> float:
    """Return the share of a limit of CPU seconds that something takes, the least of several tries.

    Each try stands beside starts right before and after it: the cores that others share are slow
    for seconds, so a look at another time says little about this one.
    """
    share = math.inf
    for _ in range(tries):
        before = _look()
        taken = measure()
        share = min(share, taken / limit_s / max(1.0, before / _SECONDS, _look() / _SECONDS))
        if share < 1:
            break
    return share


def _look() -> float:
    before = os.times()
    _start()
    after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system


def _look_at_the_clock() -> float:
    began = time.monotonic()
    _start()
    return time.monotonic() - began


def _start() -> None:
    subprocess.run([sys.executable, "-c", _IMPORTS], check=True)
