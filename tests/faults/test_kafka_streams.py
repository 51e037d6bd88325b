"""Streams of Kafka that come by API into a service that had none when it was started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.faults.service import service
from tests.servers.kafka.client import Kafka

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

CONFIG = """\
input:
  redpanda_common: {{ topics: [{source}], consumer_group: {source} }}
pipeline:
  processors:
    - log: {{ level: DEBUG, message: "got ${{! content() }}" }}
output:
  redpanda: {{ topic: {results} }}
redpanda:
  seed_brokers: ["{broker}"]
  pipeline_id: mine
  logs_topic: {source}-logs
  logs_level: debug
  status_topic: {source}-status
"""


def test_the_first_stream_of_kafka_takes_no_jars_and_says_how_it_is(
    tmp_path: Path, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection is that of the section `redpanda`, whose topics get its log and status."""
    monkeypatch.delenv("STREAMER_JARS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    source, results = kafka.create("api-source"), kafka.create("api-results")
    kafka.produce(source, "a", "b", "c")
    body = CONFIG.format(broker=kafka.bootstrap, source=source, results=results)
    with service(tmp_path / "s") as running:
        running.wait_running()
        answer = running.ask("POST", "/streams/first", body)
        assert answer.status_code == 200, answer.text
        running.wait_for(lambda: len(kafka.consume(results)) == 3, 240, "for the results")
        assert sorted(one.value or b"" for one in kafka.consume(results)) == [b"a", b"b", b"c"]
        assert running.ask("DELETE", "/streams/first").status_code == 200
        logs, status = (
            [(one.key, json.loads(one.value or b"")) for one in kafka.consume(f"{source}-{what}")]
            for what in ("logs", "status")
        )
    assert {key for key, _ in (*logs, *status)} == {b"mine"}
    assert {line["instance_id"] for _, line in logs} == {one["instanceId"] for _, one in status}
    kinds = [one["type"].removeprefix("TYPE_") for _, one in status]
    assert (kinds[0], kinds[-1]) == ("INITIALIZING", "EXITING"), status
    lines = {line["message"]: line for _, line in logs}
    assert {"got a", "got b", "got c"} <= lines.keys()
    assert lines["got a"]["level"] == "DEBUG"
    assert lines["got a"]["path"] == "root.pipeline.processors.0"
