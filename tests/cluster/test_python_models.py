"""A model in Python scores windows on workers that are other processes, which lack its module.

Each worker process opens the model once, and closes it at the end of the input and on a stop.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.servers.spark_cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(700)]

CONFIG = """\
input:
  generate:
    count: 4000
    interval: ""
    mapping: |
      let n = counter() - 1
      root.light = "light-%d".format($n % 8)
      root.speed = $n % 100
      root.at = 1767225600 + $n / 10
buffer:
  tumbling_window:
    timestamp_mapping: root = this.at
    key_mapping: root = this.light
    size: 100s
pipeline:
  processors:
    - python:
        call: own_scores:Scorer
        args: { model: MODEL, log: LOG }
        requirements: [ scikit-learn>=1.5 ]
output:
  file: { path: OUT, codec: lines }
spark: { shards: 4 }
"""
MODULE = """\
import os, pickle
import pandas as pd
from own_features import features

class Scorer:
    def __init__(self, model, log):
        self.model, self.log = model, log

    def note(self, text):
        with open(self.log, "a") as out:
            out.write(f"{text} {os.getpid()}\\n")

    def open(self):
        self.note("open")
        with open(self.model, "rb") as file:
            self.model = pickle.load(file)

    def process(self, window: pd.DataFrame, metadata: list) -> pd.DataFrame:
        score = self.model.predict(features(window))
        start = metadata[0]["window_start_unix_ms"]
        return pd.DataFrame({"light": window.light[:1], "n": len(window), "start": start,
                             "score": score[:1], "pid": os.getpid()})

    def close(self):
        self.note("close")
"""
FEATURES = "def features(window):\n    return [[window.speed.mean(), len(window)]]\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory with a config, its modules and a model that has learnt the sum of the speeds."""
    from sklearn.linear_model import LinearRegression

    given = [[mean, 1] for mean in range(10)]
    model = LinearRegression().fit(given, [3 * mean + 7 for mean, _ in given])
    (tmp_path / "model").write_bytes(pickle.dumps(model))
    text = CONFIG
    for name in ("MODEL", "LOG", "OUT"):
        text = text.replace(name, str(tmp_path / name.lower()))
    home = tmp_path / "home"
    home.mkdir()
    (home / "own_scores.py").write_text(MODULE)
    (home / "own_features.py").write_text(FEATURES)
    (home / "config.yaml").write_text(text)
    return home


def begin(home: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start the stream."""
    return subprocess.Popen(
        [sys.executable, "-m", "streamer", "-c", "config.yaml", *options],
        cwd=home,
        env={**os.environ, "XDG_STATE_HOME": str(home.parent / "state")},
        stderr=(home.parent / "stderr").open("wb"),
    )


def rows_of(home: Path) -> list[dict[str, Any]]:
    """Return the windows that have come out."""
    out = home.parent / "out"
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def check_log(home: Path, workers: set[int]) -> None:
    """Wait until all that was opened is closed; each worker process has done so once."""
    deadline = time.monotonic() + 60
    while True:
        notes = [line.split() for line in (home.parent / "log").read_text().splitlines()]
        opened = Counter(int(pid) for what, pid in notes if what == "open")
        closed = Counter(int(pid) for what, pid in notes if what == "close")
        if closed == opened or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    assert workers <= set(opened) and set(opened.values()) == {1}
    assert closed == opened


def test_a_model_scores_windows_on_two_workers_until_the_input_ends(
    home: Path, cluster: Cluster
) -> None:
    stream = begin(home, *cluster.options)
    assert stream.wait(400) == 0, (home.parent / "stderr").read_text()[-3000:]
    rows = rows_of(home)
    assert sum(row["n"] for row in rows) == 4000
    keys = Counter((row["light"], row["start"]) for row in rows)
    assert len(keys) >= 4 * 8 and set(keys.values()) == {1}
    for row in rows:
        at = (row["start"] // 1000 - 1767225600) * 10
        speeds = [
            n % 100
            for n in range(max(at, 0), min(at + 1000, 4000))
            if f"light-{n % 8}" == row["light"]
        ]
        assert row["n"] == len(speeds)
        assert row["score"] == pytest.approx(3 * sum(speeds) / len(speeds) + 7)
    workers = {row["pid"] for row in rows}
    assert len(workers) >= 2, "the windows were on one worker alone"
    check_log(home, workers)


@pytest.mark.parametrize("place", ["cluster", "here"])
def test_a_stop_closes_what_workers_have_opened(
    place: str, home: Path, request: pytest.FixtureRequest
) -> None:
    config = home / "config.yaml"
    text = config.read_text().replace("count: 4000", "count: 0")
    config.write_text(text.replace('interval: ""', "interval: 1ms").replace("100s", "10s"))
    options = request.getfixturevalue("cluster").options if place == "cluster" else ()
    stream = begin(home, *options)
    deadline = time.monotonic() + 120
    while len({row["pid"] for row in rows_of(home)}) < 2 and time.monotonic() < deadline:
        assert stream.poll() is None, (home.parent / "stderr").read_text()[-3000:]
        time.sleep(0.2)
    stream.send_signal(signal.SIGINT)
    assert stream.wait(120) == 0
    workers = {row["pid"] for row in rows_of(home)}
    assert len(workers) >= 2
    check_log(home, workers)
