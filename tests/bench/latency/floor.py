"""The least that a micro-batch of Spark takes, with the product's settings and nothing of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.bench.latency.figures import Latency, of_seconds
from tests.bench.product import ROOT

STATELESS, STATEFUL = "a micro-batch", "a micro-batch with state"
_LONGEST_S = 300


def floor(work: Path, master: str) -> list[Latency]:
    """Measure bare micro-batches of a row, one after another.

    Raises:
        RuntimeError: Spark does not run; the text has the end of what it says.
    """
    work.mkdir(parents=True)
    said = subprocess.run(
        [sys.executable, "-m", "tests.bench.latency.bare_spark", master, str(work)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_LONGEST_S,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    if said.returncode:
        raise RuntimeError(f"bare Spark does not run: {said.stderr.strip()[-500:]}")
    found = []
    for one in map(json.loads, said.stdout.splitlines()):
        seconds = one["seconds"]
        cores = one["cpu"] * len(seconds) / sum(seconds)
        name = STATEFUL if one["has_state"] else STATELESS
        found.append(of_seconds("bare Spark", "floor", name, 1, seconds, cores))
    return found
