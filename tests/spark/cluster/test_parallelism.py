"""The number of cores of a cluster, which its workers change: who hears of it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.engine.planner.planner_channels import PlannerChannel
from streamer.plan import make_plan
from streamer.spark.cluster.parallelism import ParallelismReporter

WINDOW = """
buffer: {tumbling_window: {size: 10s, timestamp_mapping: root = this.at%s}}
spark: {master: '%s', shards: %d}
"""
KEYED = ", key_mapping: root = this.light"
CLUSTER = "spark://host:7077"


@pytest.fixture
def signals(tmp_path: Path) -> PlannerChannel:
    found = PlannerChannel(tmp_path / "signals")
    found.clear()
    return found


def session(cores: int) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=cores))


def cores_of(
    signals: PlannerChannel,
    said: list[str],
    master: str = CLUSTER,
    key: str = KEYED,
    shards: int = 4,
) -> ParallelismReporter:
    plan = make_plan(parse_config(WINDOW % (key, master, shards), "test.yaml"))
    return ParallelismReporter(
        plan, signals, lambda level, text, fields: said.append(f"{level} {text}")
    )


def test_micro_batches_are_cut_for_the_workers_that_there_are(signals: PlannerChannel) -> None:
    said: list[str] = []
    cores = cores_of(signals, said)
    cores.report(session(2), is_start=True)
    assert signals.driver.read().tasks == 2
    cores.report(session(4))
    assert (signals.driver.read().tasks, said) == (4, [])


def test_cores_that_no_shard_keeps_busy_are_told_once(signals: PlannerChannel) -> None:
    said: list[str] = []
    cores = cores_of(signals, said)
    cores.report(session(8), is_start=True)
    assert said == []
    cores.report(session(8))
    cores.report(session(9))
    assert said == [
        "WARN The cluster gives 8 cores, and windows are cut into 4 shards: no more cores than "
        "these keep them. Set spark.shards before the first start, or stop the stream and run "
        "`streamer rescale`"
    ]


def test_a_cluster_of_one_core_is_not_taken_for_one_of_two(signals: PlannerChannel) -> None:
    said: list[str] = []
    cores = cores_of(signals, said, "yarn", shards=1)
    cores.report(session(2))
    assert said == []
    cores.report(session(3))
    assert said


def test_windows_without_a_key_are_in_one_shard_whatever_there_is(signals: PlannerChannel) -> None:
    said: list[str] = []
    cores_of(signals, said, key="").report(session(8))
    assert (signals.driver.read().tasks, said) == (8, [])


def test_on_this_machine_the_plan_knows_the_cores(signals: PlannerChannel) -> None:
    cores_of(signals, [], "local[2]").report(session(8))
    assert signals.driver.read().tasks is None
