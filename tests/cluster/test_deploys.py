"""Deploys of streams that run on a cluster, under traffic: by file, by ConfigMap and by API."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import httpx2
import pytest

from tests.cluster.deploying import Deployed, comes_out, config_map, write_over
from tests.faults.service import Service, service
from tests.servers.spark_cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

# By hand: STREAMER_WORKERS=4 STREAMER_DEPLOYS=40 STREAMER_KILLS=10.
DEPLOYS = int(os.environ.get("STREAMER_DEPLOYS", "2"))
KILLS = int(os.environ.get("STREAMER_KILLS", "1"))
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))
KINDS = ("in place", "migrate", "drain", "rollback")


class Fleet:
    """Three streams of one service, which differ in how they are deployed."""

    def __init__(self, home: Path) -> None:
        plain, mapped = home / "plain", home / "mapped"
        plain.mkdir()
        mapped.mkdir()
        self.streams = [Deployed(name, home / f"{name}.jsonl") for name in ("file", "map", "api")]
        self.files = {"file": write_over(plain / "file.yaml"), "map": config_map(mapped, "map")}
        for one in self.streams[:2]:
            self.files[one.name](one.texts[-1])
        self.options = (str(plain), str(mapped), "-w", "--on-reset", "drain")

    def begin(self, running: Service) -> list[Thread]:
        """Make the one that comes by API, and let events come."""
        api = self.streams[-1]
        good(running.ask("POST", f"/streams/{api.name}", api.texts[-1]))
        return [one.traffic() for one in self.streams]

    def go_on(self, running: Service) -> None:
        """After a kill: of what came by API the old or the new runs; of files, what they say."""
        api = self.streams[-1]
        good(running.ask("PUT", f"/streams/{api.name}?on_reset=drain", api.texts[-1]))
        for one in self.streams:
            comes_out(running, one, len(one.lines()))

    def deploy(self, running: Service, one: Deployed, kind: str) -> None:
        """Deploy the next revision of one, and wait until it writes."""
        since, text = len(one.lines()), one.next(kind)
        began = time.monotonic()
        if one.name in self.files:
            self.files[one.name](text)
        elif kind == "rollback":
            good(running.ask("POST", f"/streams/{one.name}/rollback?on_reset=drain"))
        else:
            good(running.ask("PUT", f"/streams/{one.name}?on_reset=drain", text))
        comes_out(running, one, since)
        print(one.name, kind, round(time.monotonic() - began, 1), "s")


def good(answer: httpx2.Response) -> None:
    assert answer.status_code == 200, answer.text


def kinds(order: random.Random) -> list[str]:
    """Return which deploys there are; all kinds come before one comes again."""
    found = [kind for _ in range(DEPLOYS) for kind in order.sample(KINDS, len(KINDS))]
    # At first there is nothing to go back to.
    return ["in place" if found[0] == "rollback" else found[0], *found[1:DEPLOYS]]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    found = Fleet(tmp_path)
    try:
        yield found
    finally:
        for one in found.streams:
            one.over.set()


def test_deploys_under_traffic_lose_nothing_and_keep_open_windows(
    tmp_path: Path, cluster: Cluster, fleet: Fleet
) -> None:
    print(f"STREAMER_SEED={SEED}")
    order = random.Random(SEED)
    turns = kinds(order)
    kills = set(order.sample(range(DEPLOYS), min(KILLS, DEPLOYS)))
    sending: list[Thread] = []
    for _ in range(len(kills) + 1):
        with (
            service(tmp_path / "s", *fleet.options, *cluster.options) as running,
            ThreadPoolExecutor(len(fleet.streams)) as pool,
        ):
            running.wait_running()
            for one in fleet.streams:
                one.send_to(str(running.client.base_url))
            if sending:
                fleet.go_on(running)
            else:
                sending = fleet.begin(running)
            killed = False
            while turns and not killed:
                killed = DEPLOYS - len(turns) in kills
                kind = turns.pop(0)
                print("all three:", kind, "and a kill" if killed else "")
                done = [pool.submit(fleet.deploy, running, one, kind) for one in fleet.streams]
                if killed:
                    time.sleep(order.uniform(0.1, 3))
                    running.kill()
                for each in done:
                    if each.exception() is not None and not killed:
                        each.result()
            if killed:
                continue
            for one, thread in zip(fleet.streams, sending, strict=True):
                one.finish(thread)
                running.wait_for(one.is_out, 180, f"for the windows of {one.name}")
                print(one.name, len(one.taken), "events taken,", len(one.unknown), "unknown")
            assert not any(line.get("level") == "error" for line in running.lines())
            assert running.stop() == 0
    for one in fleet.streams:
        one.check()
