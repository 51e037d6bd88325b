"""Questions to a broker: the ends of 1, 12 and 200 partitions, beside bare librdkafka; 1 minute."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.cluster.connection import Connection
from tests.bench import report
from tests.servers.kafka import Broker

PARTITIONS = (1, 12, 200)
ROUNDS = 5
QUESTIONS = 60
_WITHIN = 10.0
_IMPORTS = {
    "kafka-python": "streamer.connectors.kafka.cluster.requests",
    "librdkafka": "confluent_kafka.admin",
}


def kafka_questions(work: Path) -> None:
    """Ask both clients in turns; the figure of each is the median of the rounds."""
    report.heading("kafka_questions: end offsets by kafka-python, and by bare librdkafka")
    for client, module in _IMPORTS.items():
        report.figure(f"CPU to import {client}", _import_cpu(module) * 1e3, "ms")
    with Broker(work / "broker") as broker:
        kafka = broker.client()
        before = threading.active_count()
        cluster = ClusterClient(Connection((broker.address(),)))
        for number in PARTITIONS:
            topic = kafka.create(f"t{number}", partitions=number)
            places = [(topic, one) for one in range(number)]
            questions = {
                "kafka-python": lambda asked=places: cluster.end_offsets(asked, _WITHIN),
                "librdkafka": _bare(kafka.admin, places),
            }
            _measure(number, questions)
        report.figure("threads of kafka-python", threading.active_count() - before, "")
        began = time.process_time()
        time.sleep(5)
        report.figure("CPU of both while nothing is asked", time.process_time() - began, "s in 5 s")
        cluster.close()


def _bare(admin: Any, places: list[tuple[str, int]]) -> Callable[[], Any]:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec

    def ask() -> None:
        specs = {TopicPartition(*place): OffsetSpec.latest() for place in places}
        for answer in admin.list_offsets(specs, request_timeout=_WITHIN).values():
            answer.result()

    return ask


def _measure(number: int, questions: dict[str, Callable[[], Any]]) -> None:
    cpu: dict[str, list[float]] = {client: [] for client in questions}
    wall: dict[str, list[float]] = {client: [] for client in questions}
    for client, ask in [*questions.items()] * ROUNDS:
        ask()
        began = time.process_time()
        for _ in range(QUESTIONS):
            at = time.perf_counter()
            ask()
            wall[client].append(time.perf_counter() - at)
        cpu[client].append((time.process_time() - began) / QUESTIONS)
    for client in questions:
        what = f"{number} partitions by {client}"
        report.figure(f"CPU for {what}", report.quantile(cpu[client], 0.5) * 1e3, "ms")
        report.figure(f"latency for {what}", report.quantile(wall[client], 0.5) * 1e3, "ms")


def _import_cpu(module: str) -> float:
    code = f"import time; import {module}; print(time.process_time())"
    bare = "import time; print(time.process_time())"
    told = [
        float(subprocess.run([sys.executable, "-c", one], capture_output=True, check=True).stdout)
        for one in (code, bare)
    ]
    return told[0] - told[1]
