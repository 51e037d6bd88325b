"""kill -9 of the active one of two services: the other takes over, and nothing is lost.

The oracle is plain Python: events are numbered without gaps, and each is to come out of exactly
one window, whichever service has written it.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx2
import pytest

from tests.faults.service import Service, service
from tests.servers.spark_cluster import spark_cluster
from tests.slowness import wall_slowness

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

# More are for a run by hand: STREAMER_KILLS=20 pytest tests/faults/test_standby.py
KILLS = int(os.environ.get("STREAMER_KILLS", "1"))
SEED = int(os.environ.get("STREAMER_SEED", random.randrange(10**6)))
WORKERS = int(os.environ.get("STREAMER_WORKERS", "0"))
TAKEOVER = 30.0
"""Seconds from a kill to a service that is ready."""
ON_A_CLUSTER = 60.0
"""The same on a cluster, whose executors start only then, and all of which is on one machine here:
30 s are to be reached there as well, where nothing else runs."""

CONFIG = """\
input:
  generate:
    interval: 10ms
    mapping: |
      root.id = count("id") - 1
      root.at = now()
buffer:
  tumbling_window: { timestamp_mapping: root = this.at, size: 1s }
output: { file: { path: %s, codec: lines } }
spark: { shards: 1 }
"""


def answers(running: Service, path: str, code: int = 200) -> bool:
    try:
        return running.client.get(path, timeout=10).status_code == code
    except httpx2.TransportError:
        return False


def said(running: Service, text: str) -> bool:
    return any(line.get("msg") == text for line in running.lines())


def ids(out: Path) -> list[int]:
    text = out.read_bytes() if out.exists() else b""
    return [json.loads(line)["id"] for line in text.split(b"\n")[:-1]]


def wait_for_more(running: Service, out: Path) -> None:
    before = len(ids(out))
    running.wait_for(lambda: len(ids(out)) > before + 100, 120, "for windows")


def test_the_second_takes_over_from_a_killed_one_and_nothing_is_lost(tmp_path: Path) -> None:
    take_over(tmp_path, TAKEOVER)


@pytest.mark.skipif(WORKERS == 0, reason="by hand: STREAMER_WORKERS=2 pytest tests/faults")
def test_the_same_on_a_cluster(tmp_path: Path) -> None:
    more = ("--set", f"spark.conf={{spark.cores.max: '{max(WORKERS // 2, 1)}'}}")

    def rests() -> bool:
        """Whether there are but those of the active one."""
        running = [cluster.executors(f"worker-{n + 1}") for n in range(WORKERS)]
        return sum(map(len, running)) == max(WORKERS // 2, 1)

    with spark_cluster(tmp_path / "spark", WORKERS) as cluster:
        take_over(tmp_path, ON_A_CLUSTER, "--master", cluster.url, *more, rests=rests)


def take_over(
    tmp_path: Path, limit: float, *more: str, rests: Callable[[], bool] = lambda: True
) -> None:
    print(f"STREAMER_SEED={SEED}")
    order, out, took = random.Random(SEED), tmp_path / "out.jsonl", []
    with ExitStack() as all_of_them:
        active = all_of_them.enter_context(service(tmp_path / "s", "--standby", *more))
        active.wait_running()
        assert active.ask("POST", "/streams/a", CONFIG % out).status_code == 200
        wait_for_more(active, out)
        for _ in range(KILLS):
            # What is killed comes back as the one that stands by.
            standby = all_of_them.enter_context(service(tmp_path / "s", "--standby", *more))
            standby.wait_for(partial(answers, standby, "/ping"), 60, "for /ping")
            refused = standby.ask("GET", "/streams")
            assert refused.status_code == 503 and answers(standby, "/ready", 503)
            assert f":{active.process.pid} at http://127.0.0.1:" in refused.text
            standby.wait_for(partial(said, standby, "Ready to take over"), 240, "to be warm")
            standby.wait_for(rests, 60, "to give its executors back")
            time.sleep(order.uniform(0, 2))
            began = time.monotonic()
            active.kill()
            standby.wait_for(partial(answers, standby, "/ready"), 120, "to take over")
            took.append(round(time.monotonic() - began, 1))
            wait_for_more(standby, out)
            active = standby
        assert active.stop() == 0
    print("seconds to take over:", took)
    # The last windows wait for the next start; before them there is no gap, and none is twice.
    found = Counter(ids(out))
    assert set(found) == set(range(len(found))), "events are missing"
    assert not [one for one, times in found.items() if times > 1], "events came twice"
    assert max(took) <= limit * wall_slowness(), took
