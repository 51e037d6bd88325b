"""Deploys of a program that runs: by its watcher, under load, and with kill -9 at any moment.

The oracle is plain Python and shares no code with the product: events are numbered without gaps,
and each is to come out in exactly one window.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest

from .program import Program, program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

# More are for a run by hand: STREAMER_KILLS=20 pytest tests/faults/test_deploys.py
KILLS = int(os.environ.get("STREAMER_KILLS", "1"))
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))

CONFIG = """
http: {{enabled: false}}
input:
  generate:
    interval: 5ms
    mapping: |
      root.id = count("id") - 1
      root.at = now()
buffer:
  tumbling_window: {{timestamp_mapping: root = this.at, size: {size}}}
pipeline: {{processors: [{{resource: shape}}]}}
output: {{file: {{path: {out}, codec: lines}}}}
spark: {{master: "local[1]", shards: 1}}
"""
# In a file of its own, which is watched as well.
SHAPE = """
processor_resources:
  - label: shape
    mapping: |
      root = if batch_index() == 0 {{
        {{"by": "{by}", "ids": json("id").from_all(){all}}}
      }} else {{ deleted() }}
"""


def lines(out: Path) -> list[dict]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def ids(out: Path) -> Counter:
    return Counter(one for line in lines(out) for one in line["ids"])


class Deploys:
    """A config's file, and the program that watches it."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.out = folder / "out.jsonl"
        self.config = folder / "stream.yaml"
        self.shape = folder / "shape.yaml"
        self.checkpoint = folder / "checkpoint"
        self.rng = rng
        self.number = 0
        self.size = "3s"
        self.write()

    def write(self, reset: bool = False) -> None:
        """Write another revision: of the resources, and of the config when windows are to reset."""
        if reset:
            self.size = {"3s": "2s", "2s": "3s"}[self.size]
        if reset or not self.number:
            _over(self.config, CONFIG.format(size=self.size, out=self.out))
        every = self.rng.choice(["", ".unique()"])
        _over(self.shape, SHAPE.format(by=self.number, all=every))
        self.number += 1

    def deployed(self, running: Program) -> int:
        return running.messages().count("The changed config runs")

    def deploy(self, running: Program, reset: bool) -> None:
        before = self.deployed(running)
        self.write(reset)
        running.wait_for(lambda: self.deployed(running) > before, 240, "for the deploy")

    def comes_out(self, running: Program, by: int) -> None:
        running.wait_for(
            lambda: any(line["by"] == str(by) for line in lines(self.out)),
            240,
            f"for revision {by}",
        )


def _over(path: Path, text: str) -> None:
    """Write a file as an editor does: beside it, then over it."""
    draft = path.with_suffix(".tmp")
    draft.write_text(text)
    draft.replace(path)


def program_of(deploys: Deploys, on_reset: str) -> Program:
    more = ("-r", str(deploys.shape), "-w", "--on-reset", on_reset)
    return program(deploys.config, deploys.checkpoint, *more)


def said(running: Program, text: str) -> bool:
    return any(text in json.dumps(line) for line in running.lines())


def checked(out: Path, gaps: bool = False) -> int:
    """Hold what came out against what must be; return how many events it is."""
    found = ids(out)
    twice = [one for one, times in found.items() if times > 1]
    assert not twice, f"events that are in two windows: {twice[:9]}"
    missing = set(range(max(found) + 1)) - found.keys()
    assert gaps or not missing, f"events that are missing: {sorted(missing)[:9]}"
    return len(found)


def test_a_crash_in_the_middle_of_a_deploy_leaves_one_revision_whole(tmp_path: Path) -> None:
    print(f"STREAMER_SEED={SEED}")
    rng = random.Random(SEED)
    deploys = Deploys(tmp_path, rng)
    with program_of(deploys, "drain") as running:
        running.wait_running()
        deploys.comes_out(running, deploys.number - 1)
        deploys.deploy(running, reset=False)
        right = deploys.config.read_text()
        deploys.config.write_text(right.replace("tumbling_window", "tumbling_widnow"))
        running.wait_for(lambda: said(running, "did you mean tumbling_window"), 240, "for lint")
        deploys.config.write_text(right)
        running.wait_for(lambda: said(running, "mean the same"), 240, "for the config as it was")
        deploys.comes_out(running, deploys.number - 1)
        deploys.deploy(running, reset=True)
        deploys.comes_out(running, deploys.number - 1)
        deploys.write(reset=True)
        time.sleep(rng.uniform(0.3, 4))  # the moment of the crash is what is random
        running.kill()
    for _ in range(KILLS - 1):
        with program_of(deploys, "drain") as running:
            running.wait_running()
            deploys.write(reset=rng.random() < 0.8)
            time.sleep(rng.uniform(0.3, 4))
            running.kill()
    # Whatever of the deploy had happened by then: the start finishes it.
    with program_of(deploys, "drain") as running:
        running.wait_running()
        deploys.comes_out(running, deploys.number - 1)
        assert running.stop() == 0
    checked(deploys.out)
