"""Many streams in one service on Spark: deploys under traffic, failures, kills in the middle."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.faults.looks import looking
from tests.faults.service import Service, leaves_nothing, service
from tests.faults.vitals import vitals
from tests.slowness import wall_slowness

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1500)]

# By hand: STREAMER_STREAMS=100 STREAMER_SECONDS=600.
STREAMS = int(os.environ.get("STREAMER_STREAMS", "6"))
SECONDS = float(os.environ.get("STREAMER_SECONDS", "30"))
# Each has its own traffic, and so many deploy at the same moment.
DEPLOYERS = threading.Semaphore(8)
LOOKS = ("/streams", "/ping", "/streams/broken", "/streams/broken/stats", "/metrics", "/ready")

CONFIG = """\
input: { http_server: { path: /post } }
pipeline:
  processors:
    - mapping: |
        root.id = content().string()
        root.by = "%s"
output: { file: { path: %s } }
"""
BROKEN = """\
input: { generate: { mapping: root = 1, interval: 1s } }
pipeline: { processors: [ { mapping: root = throw("broken") } ] }
output: { drop: {} }
error_handling: { strict: true }
"""


class Sender:
    """Sends messages to one stream, and remembers which were taken."""

    def __init__(self, running: Service, name: str, life: int, directory: Path) -> None:
        self.running = running
        self.name = name
        self.out = directory / f"{name}-{life}.jsonl"
        self.sent = 0
        self.taken: set[str] = set()
        self.unknown: set[str] = set()

    def config(self, by: str) -> str:
        return CONFIG % (by, self.out)

    def send(self, number: int) -> None:
        for _ in range(number):
            self.sent += 1
            text = f"{self.name}.{self.out.stem}.{self.sent}"
            try:
                answer = self.running.ask("POST", f"/{self.name}/post", text)
            except httpx2.HTTPError:
                self.unknown.add(text)
                continue
            if answer.status_code == 200:
                self.taken.add(text)

    def written(self) -> Counter[str]:
        if not self.out.exists():
            return Counter()
        lines = self.out.read_bytes().split(b"\n")[:-1]
        return Counter(json.loads(line)["id"] for line in lines)

    def check(self) -> None:
        """All that was taken is written, and nothing twice."""
        self.running.wait_for(
            lambda: self.written().keys() >= self.taken, 180, f"for what {self.name} has taken"
        )
        found = self.written()
        assert max(found.values(), default=1) == 1, "written twice"
        assert found.keys() - self.taken <= self.unknown, "written, and not taken"


def good(answer: httpx2.Response) -> None:
    assert answer.status_code == 200, answer.text


def deploy(running: Service, method: str, path: str, body: str | None = None) -> None:
    with DEPLOYERS:
        good(running.ask(method, path, body))


def lives(running: Service, name: str, directory: Path, seed: int, until: float) -> int:
    """Make, change and remove one stream again and again; returns how many messages it took."""
    order, taken = random.Random(f"{seed}{name}"), 0
    for life in range(1000):
        sender = Sender(running, name, life, directory)
        deploy(running, "POST", f"/streams/{name}", sender.config("first"))
        turn = 0
        while turn < 1 or (time.monotonic() < until and order.random() < 0.7):
            turn += 1
            sender.send(order.randrange(1, 8))
            match order.randrange(4):
                case 0 | 1:
                    deploy(running, "PUT", f"/streams/{name}", sender.config(f"turn {turn}"))
                case 2:
                    deploy(running, "POST", f"/streams/{name}/pause")
                    sender.send(1)
                    deploy(running, "POST", f"/streams/{name}/resume")
                case _:
                    deploy(running, "POST", f"/streams/{name}/rollback?revision=1")
            sender.send(order.randrange(4))
        sender.check()
        taken += len(sender.taken)
        deploy(running, "DELETE", f"/streams/{name}")
        if time.monotonic() >= until:
            return taken
    raise AssertionError("too many lives")


def test_streams_in_any_order_lose_nothing_double_nothing_and_leave_nothing(
    tmp_path: Path,
) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    with service(tmp_path / "s") as running:
        running.wait_running()
        good(running.ask("POST", "/streams/broken", BROKEN))
        good(running.ask("POST", "/streams/first", CONFIG % ("first", tmp_path / "first.jsonl")))
        good(running.ask("POST", "/first/post", "one"))
        running.wait_for(lambda: (tmp_path / "first.jsonl").exists(), 180, "for the first")
        good(running.ask("DELETE", "/streams/first"))
        before = vitals(running.process.pid)
        names = [f"s{n}" for n in range(STREAMS)]
        until = time.monotonic() + SECONDS
        memory: list[float] = []
        over = threading.Event()

        def weigh() -> None:
            while not over.wait(10):
                memory.append(vitals(running.process.pid).memory)

        seen = tmp_path / "looks.jsonl"
        with (
            looking(str(running.client.base_url), LOOKS, seen) as looks,
            ThreadPoolExecutor(STREAMS + 1) as pool,
        ):
            weighing = pool.submit(weigh)
            done = [pool.submit(lives, running, name, tmp_path, seed, until) for name in names]
            try:
                taken = [one.result() for one in done]
            finally:
                over.set()
            weighing.result()
        assert all(taken), taken
        assert all(one.status == 200 or one.path == "/ready" for one in looks.all())
        print("messages", sum(taken), "memory", [round(one) for one in memory])
        print("p99", looks.p99(), {path: round(looks.p99(path), 3) for path in LOOKS})
        # In the first third the streams come; from then on there are as many all the time.
        if len(memory) > 12:
            third = len(memory) // 3
            assert max(memory[-third:]) <= 1.2 * max(memory[third : 2 * third]), memory
        # The one that fails is told from the others by its state, and they never heard of it.
        streams = running.streams()
        assert set(streams) == {"broken"}
        good(running.ask("DELETE", "/streams/broken"))
        leaves_nothing(running, before)
        left = [path.name for path in (tmp_path / "s" / "c").iterdir()]
        assert left == [".service"] and not any((tmp_path / "s" / "c/.service/trash").iterdir())
        texts = [line for line in running.lines() if line.get("level") == "error"]
        assert {line.get("stream") for line in texts} <= {"broken"}, texts
        assert running.stop() == 0
        assert looks.p99() <= 0.3 * wall_slowness(), "seconds"


def test_a_kill_in_the_middle_of_a_deploy_leaves_the_old_or_the_new_whole(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    order = random.Random(seed)
    taken: set[str] = set()
    unknown: set[str] = set()
    deployed = {"first"}
    for turn in range(3):
        with service(tmp_path / "s") as running:
            running.wait_running()
            sender = Sender(running, "a", 0, tmp_path)
            sender.sent = turn * 1000
            sender.taken, sender.unknown = taken, unknown
            if turn == 0:
                good(running.ask("POST", "/streams/a", sender.config("first")))
            read = running.ask("GET", "/streams/a").json()
            assert read["active"], read
            [by] = [one for one in deployed if f'"{one}"' in json.dumps(read).replace("\\", "")]
            sender.send(5)
            if turn == 2:
                sender.check()
                break
            deployed = {by, f"turn {turn}"}
            with ThreadPoolExecutor(1) as pool:
                body = sender.config(f"turn {turn}")
                deploy = pool.submit(
                    httpx2.put, f"{running.client.base_url}/streams/a", content=body
                )
                time.sleep(order.random() * 1.5)
                running.kill()
                deploy.exception()
