"""A broker that goes away, and a topic that goes, under a stream that runs: how soon it is seen."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from streamer.core.errors import StreamerError
from tests.servers.kafka import Broker, Kafka, Record
from tests.spark.conftest import Runner

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def reading(address: str, topic: str, out: Path, **fields: Any) -> str:
    given = {"seed_brokers": [address], "topics": [topic], **fields}
    return json.dumps({"input": {"redpanda": given}, "output": {"file": {"path": str(out)}}})


def test_a_broker_that_is_killed_shows_within_five_seconds_and_is_counted(
    run_stream: Runner, tmp_path: Path
) -> None:
    with Broker(tmp_path / "broker") as broker:
        broker.client().create("t")
        broker.client().produce("t", Record(b"1"))
        seen: dict[str, float] = {}

        def watch(stream: Any) -> None:
            if "killed" not in seen:
                if stream.delivered_batches and stream.snapshot().messages:
                    broker.kill()
                    seen["killed"] = time.monotonic()
            elif "shown" not in seen:
                if stream.has_outage and stream.trouble.text:
                    seen["shown"] = time.monotonic()
                    assert stream.trouble.place["path"] == "root.input"
            elif "again" not in seen:
                if count(stream, "failed"):
                    broker.start()
                    seen["again"] = time.monotonic()
            elif not stream.has_outage and not stream.trouble.text:
                broker.client().produce("t", Record(b"2"))
                seen.setdefault("over", time.monotonic())

        def count(stream: Any, name: str) -> int:
            place = tuple(sorted({"label": "", "path": "root.input"}.items()))
            found: int = stream.meters.counts[f"input_connection_{name}", place]
            return found

        out = tmp_path / "out.txt"
        ran = run_stream(
            reading(broker.address(), "t", out),
            until=lambda _: "over" in seen and "2" in out.read_text(),
            watch=watch,
        )
    assert seen["shown"] - seen["killed"] < 5
    counts = {name: n for (name, labels), n in ran.counts.items() if labels}
    assert counts["input_connection_lost"] == 1
    assert counts["input_connection_failed"] >= 1
    assert counts["input_connection_up"] == 2


def test_a_topic_that_goes_while_it_is_read_ends_the_stream_and_does_not_come_back(
    run_stream: Runner, kafka: Kafka, tmp_path: Path
) -> None:
    topic, gone = kafka.create("gone-while-read", partitions=2), list[float]()
    values = (Record(str(n).encode() + b" " * 600, partition=n % 2) for n in range(6_000))
    kafka.produce(topic, *values, batch_num_messages=1)

    def watch(stream: Any) -> None:
        if not gone and stream.batch_meter.count_messages() > 100:
            kafka.delete(topic)
            gone.append(time.monotonic())

    # The broker hands out no more than a message or two at once, as if they were large.
    few = {"fetch_max_bytes": "1kB", "fetch_max_partition_bytes": "1kB"}
    with pytest.raises(StreamerError, match=r"gone-while-read:\d stands at 3000 and is gone"):
        run_stream(reading(kafka.bootstrap, topic, tmp_path / "out", **few), watch=watch)
    assert time.monotonic() - gone[0] < 30
    time.sleep(2)  # a client that asks again would have made it by then
    assert topic not in kafka.topics()
