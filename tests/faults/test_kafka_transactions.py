"""kill -9 of driver, worker and broker: readers of what is committed see every record once.

The moments are chosen at random, around the one at which records become visible: then a part of a
micro-batch is committed, and the checkpoint does not know yet.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.servers.kafka.broker import Broker
from tests.servers.kafka.client import Kafka

from .program import Program, program

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

# Ten are for a run by hand: STREAMER_KILLS=10 pytest tests/faults/test_kafka_transactions.py
KILLS = int(os.environ.get("STREAMER_KILLS", "1"))
SEED = int(os.environ.get("STREAMER_SEED", time.time_ns() // 10**9 % 100_000))

NUMBER = 2_400 + 1_200 * KILLS
TOPIC = "results"

CONFIG = """
input: {{file: {{paths: ["{lines}"]}}}}
buffer: {{memory: {{limit: 40000}}}}
pipeline:
  processors:
    - mapping: 'root.n = this.n'
    # So that there is something to be killed in the middle of.
    - sleep: {{duration: 2ms}}
output:
  kafka_franz:
    seed_brokers: ["{broker}"]
    topic: results
    key: ${{! this.n % 10 }}
    transactional: true
    dedupe_headers: true
spark: {{master: "local[2]"}}
"""


def _committed(kafka: Kafka) -> int:
    return len(kafka.consume(TOPIC))


def _wait_for_more(running: Program, kafka: Kafka) -> None:
    before = _committed(kafka)
    running.wait_for(lambda: _committed(kafka) > before, 240, "for records to be committed")


def _workers(of: int) -> list[int]:
    """Return the Python workers of a program: the children of a child of its JVM."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
    parents = {int(pid): int(parent) for pid, parent, _ in rows}

    def depth(pid: int) -> int:
        steps = 0
        while pid != of and pid in parents:
            pid, steps = parents[pid], steps + 1
        return steps if pid == of else 0

    python = {int(pid) for pid, _, args in rows if "python" in args}
    return sorted(pid for pid in python if depth(pid) == 3)


def _hold(kafka: Kafka) -> None:
    seen = Counter(json.loads(record.value or b"")["n"] for record in kafka.consume(TOPIC))
    twice = {n: times for n, times in seen.items() if times > 1}
    assert not twice, f"{len(twice)} records are there more than once, such as {sorted(twice)[:5]}"
    missing = sorted(set(range(NUMBER)) - set(seen))
    assert not missing, f"{len(missing)} records are missing, such as {missing[:5]}"
    assert len(seen) == NUMBER


def test_whatever_is_killed_every_record_is_committed_once(tmp_path: Path) -> None:
    print(f"STREAMER_SEED={SEED}")
    rng = random.Random(SEED)
    lines, config = tmp_path / "in", tmp_path / "kill.yaml"
    padding = "." * 90
    lines.write_text("".join(f'{{"n":{n},"x":"{padding}"}}\n' for n in range(NUMBER)))
    with Broker(tmp_path / "broker") as broker:
        kafka = broker.client()
        kafka.create(TOPIC, 3)
        config.write_text(CONFIG.format(lines=lines, broker=broker.address()))
        for kill in range(KILLS):
            with program(config, tmp_path / "checkpoint") as running:
                _wait_for_more(running, kafka)
                time.sleep(rng.choice([0, rng.uniform(0, 2)]))
                running.kill()
                print(f"kill {kill}: {_committed(kafka)} records committed")
        with program(config, tmp_path / "checkpoint") as running:
            _wait_for_more(running, kafka)
            if workers := _workers(running.process.pid):
                os.kill(rng.choice(workers), signal.SIGKILL)
            print(f"worker killed of {len(workers)}: {_committed(kafka)} records committed")
            _wait_for_more(running, kafka)
            broker.kill()
            broker.start()
            assert running.finish(240) == 0
            assert workers, "there was no worker to kill"
        _hold(kafka)
        assert len(kafka.consume(TOPIC, "read_uncommitted")) >= NUMBER
