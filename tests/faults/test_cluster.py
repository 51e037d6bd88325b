"""A standalone cluster of real processes: the same results as on one machine, whatever dies."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from tests.processes import children
from tests.servers.spark_cluster import Cluster, spark_cluster

from .program import Program, program
from .test_kill import CONFIG, check

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

WORKERS = int(os.environ.get("STREAMER_WORKERS", "2"))
# By hand: STREAMER_WORKERS=4 STREAMER_KILLS=20. One fault of a kind that the seed chooses, else.
KILLS = int(os.environ.get("STREAMER_KILLS", "1"))
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
RECOVERED = float(os.environ.get("STREAMER_RECOVERED", "240"))
"""Seconds within which results must come again; 60 on a machine with nothing else to do."""

COUNTED = """
input:
  file:
    paths: ['{cars}']
buffer:
  tumbling_window:
    timestamp_mapping: root = this.at
    key_mapping: root = this.light
    size: 10s
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {{
          {{
            "light": this.light,
            "end": meta("window_end_timestamp"),
            "plates": json("plate").from_all().unique().sort(),
            "sum": json("passengers").from_all().sum(),
          }}
        }} else {{ deleted() }}
output:
  stdout: {{}}
spark:
  master: local[2]
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with spark_cluster(tmp_path_factory.mktemp("spark"), WORKERS) as found:
        yield found


def printed(config: Path, directory: Path, *more: str) -> list[str]:
    out = directory / "out.jsonl"
    directory.mkdir()
    with out.open("wb") as to, program(config, directory / "checkpoint", *more, stdout=to) as run:
        assert run.finish(600) == 0, run.messages()[-30:]
    return sorted(out.read_text().splitlines())


def test_windows_are_the_same_as_on_one_machine(tmp_path: Path, cluster: Cluster) -> None:
    rng = random.Random(SEED)
    cars = tmp_path / "cars.jsonl"
    with cars.open("w") as out:
        for number in range(20_000):
            second = number // 200
            car = {
                "light": f"light-{rng.randrange(50)}",
                "at": f"2026-01-01T10:{second // 60:02}:{second % 60:02}Z",
                "plate": f"AB{rng.randrange(100)}",
                "passengers": rng.randrange(5),
            }
            out.write(json.dumps(car) + "\n")
    config = tmp_path / "counted.yaml"
    config.write_text(COUNTED.format(cars=cars))
    here = printed(config, tmp_path / "here")
    there = printed(config, tmp_path / "there", "--master", cluster.url)
    assert len(here) == 500
    assert there == here


def test_a_worker_that_lacks_something_is_named_at_the_start(
    tmp_path: Path, cluster: Cluster
) -> None:
    bare = tmp_path / "python3"
    bare.write_text('#!/bin/sh\nPYTHONPATH= exec /usr/bin/python3 -S "$@"\n')
    bare.chmod(0o755)
    config = tmp_path / "one.yaml"
    config.write_text(
        "input: {generate: {mapping: root = 1, count: 1}}\noutput: {stdout: {}}\n"
        f"spark: {{environment: installed, conf: {{spark.pyspark.python: '{bare}'}}}}\n"
    )
    with program(config, tmp_path / "checkpoint", "--master", cluster.url) as run:
        assert run.finish(240) == 1
        last = run.messages()[-1]
    assert "a worker lacks the Python package streamer: let spark.environment be" in last


def test_a_checkpoint_that_workers_have_elsewhere_is_named_at_the_start(
    tmp_path: Path, cluster: Cluster
) -> None:
    config = tmp_path / "one.yaml"
    config.write_text("input: {generate: {mapping: root = 1, count: 1}}\noutput: {stdout: {}}\n")
    # Each process has another directory by this name.
    path = Path("/proc/self/cwd/checkpoint")
    more = ("--master", cluster.url, "--checkpoint", str(path))
    with program(config, tmp_path / "none", *more, cwd=tmp_path) as run:
        assert run.finish(240) == 1
        last = run.messages()[-1]
    assert last.startswith(f"the workers' {path} is not the driver's: the checkpoint has to be")


def executor(cluster: Cluster, rng: random.Random) -> None:
    for pid in cluster.executors(f"worker-{rng.randint(1, WORKERS)}"):
        os.kill(pid, signal.SIGKILL)


def python_worker(cluster: Cluster, rng: random.Random) -> None:
    for pid in cluster.executors(f"worker-{rng.randint(1, WORKERS)}"):
        for daemon in children(pid):
            os.kill(daemon, signal.SIGKILL)


def daemons(cluster: Cluster) -> list[int]:
    """Return how many Python daemons each executor has."""
    names = [f"worker-{number + 1}" for number in range(WORKERS)]
    return [len(children(pid)) for name in names for pid in cluster.executors(name)]


def worker(cluster: Cluster, rng: random.Random) -> None:
    name = f"worker-{rng.randint(1, WORKERS)}"
    executors = cluster.executors(name)
    cluster.kill(name)
    # A machine that is gone takes its executors along.
    for pid in executors:
        os.kill(pid, signal.SIGKILL)
    cluster.begin(name)


def master(cluster: Cluster, rng: random.Random) -> None:
    cluster.kill("master")
    cluster.begin("master")


def decommissioned(cluster: Cluster, rng: random.Random) -> None:
    """A worker is told to stop for good: its executors get no more tasks, and end by themselves."""
    name = f"worker-{rng.randint(1, WORKERS)}"
    os.kill(cluster.pid(name), signal.SIGPWR)
    until = time.monotonic() + 120
    while cluster.executors(name):
        assert time.monotonic() < until, "its executors do not end"
        time.sleep(0.1)
    cluster.call("stop", name)
    cluster.begin(name)


Fault = TypeVar("Fault", bound=Callable[..., object])

FAULTS: tuple[Callable[[Cluster, random.Random], None], ...] = (
    executor,
    python_worker,
    worker,
    decommissioned,
    master,
)


BY_HAND = pytest.mark.skipif(KILLS < 2, reason="by hand: STREAMER_KILLS=2")

ELASTIC = """
  trigger_interval: 6s
  conf:
    spark.dynamicAllocation.enabled: true
    spark.dynamicAllocation.executorIdleTimeout: 2s
"""


@BY_HAND
def test_executors_that_come_and_go_with_the_work_lose_nothing(
    tmp_path: Path, cluster: Cluster
) -> None:
    out = tmp_path / "out.jsonl"
    config = tmp_path / "elastic.yaml"
    output = f"file: {{path: '{out}', codec: lines}}"
    text = CONFIG.format(first=1, size=10, slide="", all="", output=output)
    config.write_text(text + ELASTIC)
    # With fewer, one executor does it all when it is warm: no task waits for a second.
    more = ("--master", cluster.url, "-s", f"spark.shards={6 * WORKERS}")
    with program(config, tmp_path / "checkpoint", *more) as run:
        run.wait_running()
        for text in ("An executor has come", "An executor is gone") * 2:
            count = run.messages().count(text)
            run.wait_for(lambda text=text, n=count: run.messages().count(text) > n, 240, text)
        grown(run, out)
        assert run.stop() == 0
        print("\n".join(str(line) for line in run.lines() if "executor" in str(line)))
    assert check(out.read_bytes().splitlines(), slides=1, repeats=False) > 1000


def test_every_event_is_in_exactly_its_windows_whatever_dies(
    tmp_path: Path, cluster: Cluster
) -> None:
    print(f"STREAMER_SEED={SEED}")
    rng = random.Random(SEED)
    out = tmp_path / "out.jsonl"
    config = tmp_path / "kill.yaml"
    config.write_text(
        CONFIG.format(
            first=1,
            size=10,
            slide="",
            all="",
            output=f"file: {{path: '{out}', codec: lines}}",
        )
    )
    checkpoint = tmp_path / "checkpoint"
    with program(config, checkpoint, "--master", cluster.url) as run:
        run.wait_running()
        grown(run, out)
        # What the start has imported to look at its workers is what the stream's are forked from.
        assert daemons(cluster) == [1] * WORKERS
        for fault in chosen(FAULTS, rng):
            time.sleep(rng.uniform(0, 5))
            fault(cluster, rng)
            print(fault.__name__, "recovered in", round(grown(run, out), 1), "s")
        run.kill()
    with program(config, checkpoint, "--master", cluster.url) as run:
        run.wait_running()
        grown(run, out)
        assert run.stop() == 0
    assert check(out.read_bytes().splitlines(), slides=1, repeats=False) > 1000


def chosen(faults: Sequence[Fault], rng: random.Random) -> list[Fault]:
    """Return the faults of a run: those of STREAMER_KINDS, or as many as there are kills."""
    named = {fault.__name__: fault for fault in faults}
    if kinds := os.environ.get("STREAMER_KINDS"):
        return [named[kind] for kind in kinds.split(",")]
    mixed = rng.sample(faults, len(faults))
    return [mixed[n % len(mixed)] for n in range(KILLS)]


def grown(run: Program, out: Path) -> float:
    """Wait for two more windows: one may have been on its way. Return the seconds."""
    began = time.monotonic()
    for _ in range(2):
        size = out.stat().st_size if out.exists() else 0
        run.wait_for(
            lambda size=size: out.exists() and out.stat().st_size > size, RECOVERED, "for results"
        )
    return time.monotonic() - began
