"""Kafka on a machine that has no network but its loopback, and no caches of an earlier start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.program import program
from tests.servers import skip_without
from tests.servers.kafka import Broker
from tests.servers.kafka.jars import broker_jars

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CONFIG = """
input:
  redpanda: {{seed_brokers: ["{broker}"], topics: [numbers], consumer_group: read}}
pipeline:
  processors: [{{mapping: 'root = content().uppercase()'}}]
output:
  redpanda: {{seed_brokers: ["{broker}"], topic: results}}
"""


def read_without_internet(directory: Path) -> None:
    """Run a stream from a topic to a topic; the caller has taken the network away."""
    routes = subprocess.run(["ip", "route"], capture_output=True, check=True).stdout
    assert routes == b"", "there is a way out"
    config = directory / "config.yaml"
    with Broker(directory / "broker") as broker:
        kafka = broker.client()
        kafka.create("numbers")
        kafka.create("results")
        kafka.produce("numbers", *"abc")
        config.write_text(CONFIG.format(broker=broker.address()))
        with program(config, directory / "run" / "checkpoint") as running:
            running.wait_for(lambda: len(kafka.consume("results")) == 3, 240, "for the results")
            assert running.stop() == 0
        assert sorted(one.value or b"" for one in kafka.consume("results")) == [b"A", b"B", b"C"]
        said = "\n".join(running.messages())
        assert "Fetching" not in said and ".jar" not in said


def test_kafka_takes_no_internet_and_no_jars(tmp_path: Path) -> None:
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        skip_without("namespaces", "unshare and ip are not there")
    home = tmp_path / "home"
    home.mkdir()
    code = (
        f"import pathlib, {__name__} as test; "
        f"test.read_without_internet(pathlib.Path({str(tmp_path)!r}))"
    )
    inside = 'ip link set lo up && exec "$0" -c "$1"'
    command = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("STREAMER_")},
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "STREAMER_BROKER_JARS": str(broker_jars()),
    }
    ran = subprocess.run(
        [*command, "sh", "-c", inside, sys.executable, code],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert not list(home.rglob("*.jar")), "nothing was fetched"
