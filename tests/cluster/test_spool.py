"""Bytes that nobody sends again reach workers that do not see the driver's disk.

The workers run in a mount namespace of their own, in which the spool is an empty directory; the
rest of the checkpoint is one that all share. What was answered with 200 before a kill -9 is in
the spool and nowhere else.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import httpx2
import pytest

from tests.faults.program import program
from tests.servers import free_port
from tests.servers.spark_cluster import Cluster, spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

# By hand: STREAMER_SPOOL_MB=400, more than a task of Spark's can carry.
MEGABYTES = int(os.environ.get("STREAMER_SPOOL_MB", "4"))
PAD = "x" * (1 << 16)

CONFIG = """
http: {{ address: "127.0.0.1:{port}" }}
input: {{ http_server: {{ path: /post }} }}
buffer:
  tumbling_window:
    timestamp_mapping: root = this.at
    key_mapping: root = this.id % 8
    size: 10s
pipeline:
  processors:
    - mapping: |
        root = if batch_index() == 0 {{
          {{
            "ids": json("id").from_all(),
            "bytes": json("pad").from_all().map_each(pad -> pad.length()).sum(),
          }}
        }} else {{ deleted() }}
output: {{ file: {{ path: {out}, codec: lines }} }}
"""
LATER = "spark: { trigger_interval: 1h }\n"


def seen(cluster: Cluster, directory: Path) -> list[list[str]]:
    """Return what each worker finds in a directory."""
    found = []
    for name in cluster.names("worker-*"):
        root = Path(f"/proc/{cluster.pid(name)}/root")
        found.append(os.listdir(root / directory.relative_to("/")))
    return found


def test_what_was_taken_comes_out_of_workers_that_do_not_see_the_spool(tmp_path: Path) -> None:
    port, out, config = free_port(), tmp_path / "out", tmp_path / "http.yaml"
    checkpoint = tmp_path / "checkpoint"
    spool = checkpoint / "spool"
    spool.mkdir(parents=True)
    number = MEGABYTES * 16
    with (
        spark_cluster(tmp_path, 2, hidden=spool) as cluster,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        # No micro-batch comes within the hour.
        config.write_text(CONFIG.format(port=port, out=out) + LATER)
        with program(config, checkpoint, *cluster.options) as running:
            running.wait_running()
            for one in range(number):
                event = {"id": one, "at": 1_767_261_600 + one / 100, "pad": PAD}
                assert client.post("/post", json=event).status_code == 200
            assert any(spool.glob("*.seg"))
            assert seen(cluster, spool) == [[], []]
            running.kill()
        config.write_text(CONFIG.format(port=port, out=out))
        with program(config, checkpoint, *cluster.options) as running:
            running.wait_running()
            # It lets the windows close.
            assert client.post("/post", json={"id": -1, "at": 1_767_270_000, "pad": ""})
            running.wait_for(lambda: total(out)[0] >= number, 600, "for what was sent before")
            assert running.stop() == 0
    assert total(out) == (number, number * len(PAD))


def total(out: Path) -> tuple[int, int]:
    """Return how many events came out, each once, and their bytes."""
    lines = [json.loads(line) for line in out.read_bytes().splitlines()] if out.exists() else []
    ids = [one for line in lines for one in line["ids"]]
    assert len(ids) == len(set(ids))
    return len(ids), sum(line["bytes"] for line in lines)
