"""Streams of Kafka that come by API into a service that had none when it was started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.service import service
from tests.servers.kafka.client import Kafka
from tests.servers.kafka.jars import needs_connector

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

CONFIG = """\
input:
  redpanda: {{ seed_brokers: ["{broker}"], topics: [{source}], consumer_group: {source} }}
output:
  redpanda: {{ seed_brokers: ["{broker}"], topic: {results} }}
"""


def test_the_first_stream_of_kafka_finds_the_jars_that_are_there(
    tmp_path: Path, kafka: Kafka
) -> None:
    needs_connector()
    source, results = kafka.create("api-source"), kafka.create("api-results")
    kafka.produce(source, "a", "b", "c")
    body = CONFIG.format(broker=kafka.bootstrap, source=source, results=results)
    with service(tmp_path / "s") as running:
        running.wait_running()
        answer = running.ask("POST", "/streams/first", body)
        assert answer.status_code == 200, answer.text
        running.wait_for(lambda: len(kafka.consume(results)) == 3, 240, "for the results")
        assert sorted(one.value or b"" for one in kafka.consume(results)) == [b"a", b"b", b"c"]


def test_where_there_are_no_jars_the_stream_is_refused_and_what_to_do_is_said(
    tmp_path: Path, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, results = kafka.create("no-jars-source"), kafka.create("no-jars-results")
    body = CONFIG.format(broker=kafka.bootstrap, source=source, results=results)
    monkeypatch.delenv("STREAMER_JARS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    with service(tmp_path / "s") as running:
        running.wait_running()
        answer = running.ask("POST", "/streams/first", body)
        assert answer.status_code == 502, answer.text
        assert "Spark was started without the jars with which it reads Kafka" in answer.text
        assert "start the program again when they are there" in answer.text
