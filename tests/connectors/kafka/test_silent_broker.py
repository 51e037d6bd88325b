"""A listener that takes connections and never says a word: a start does not hang on it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.config import parse_config
from streamer.connectors.kafka.cluster import deadline
from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.cluster.connection_fields import read_connection
from streamer.connectors.kafka.cluster.errors import KafkaError
from streamer.core.errors import StreamerError
from streamer.engine.driver.input_host import InputHost
from streamer.engine.driver.output_preflight import preflight_outputs
from streamer.plan import Plan, make_plan
from streamer.sdk.input.input_context import open_input
from tests.connectors.kafka.parsing import connection_fields

_WITHIN = 10.0
_BUSY = 1.5  # seconds that a busy machine may add
_SHORT = 1.0  # seconds that stand here for those after which nobody answers
_SAID = (
    "no broker at {} answers in PLAINTEXT, which the config says: nothing has come back in time; "
    "check that Kafka runs, and whether the listener expects TLS (tls) or a user (sasl)"
)

CONFIG = """
input:
  broker:
    inputs:
      - redpanda: {{ seed_brokers: ["{0}"], topics: [a], consumer_group: g }}
      - kafka_franz: {{ seed_brokers: ["{0}"], topics: ["b.*"], regexp_topics: true }}
      - kafka: {{ addresses: ["{0}"], topics: [c], consumer_group: g }}
output:
  broker:
    outputs:
      - redpanda: {{ seed_brokers: ["{0}"], topic: a, request_timeout_overhead: 1m }}
      - kafka_franz: {{ seed_brokers: ["{0}"], topic: b, dedupe_headers: true }}
      - kafka: {{ addresses: ["{0}"], topic: c }}
"""


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of one that takes every connection, and keeps it."""
    held: list[socket.socket] = []

    def take() -> None:
        try:
            while True:
                held.append(listener.accept()[0])
        except OSError:
            return

    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        taking = threading.Thread(target=take, daemon=True)
        taking.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    taking.join(10)
    for one in held:
        one.close()


def _plan(at: str) -> Plan:
    return make_plan(parse_config(CONFIG.format(at), env={}))


def test_a_start_of_many_inputs_and_outputs_is_over_in_ten_seconds(
    silent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It waits once for its inputs and once for its outputs, however many there are.
    assert 2 * deadline._FIRST_ANSWER_TIMEOUT_S + _BUSY < _WITHIN
    monkeypatch.setattr(deadline, "_FIRST_ANSWER_TIMEOUT_S", _SHORT)
    plan, lines = _plan(silent), list[tuple[str, str, Any]]()
    began = time.monotonic()
    source: Any = plan.context().build(plan.input)
    house = InputHost(
        tmp_path, {}, lambda *line: None, lambda *count: None, threading.Event(), None
    )
    with pytest.raises(StreamerError) as ended:
        open_input(source, house.root_context())
    assert str(ended.value) == f"input redpanda: {_SAID.format(silent)}"
    # It would not come to this: only a stream whose inputs answer looks at its outputs.
    preflight_outputs(plan, lambda *line: lines.append(line), "s")
    assert time.monotonic() - began < 2 * _SHORT + _BUSY
    said = f"Messages will wait: {_SAID.format(silent)}"
    paths = [{"path": f"output.broker.outputs.{n}"} for n in range(3)]
    assert lines == [("ERROR", said, path) for path in paths]


def test_a_handshake_that_nobody_answers_is_given_up(silent: str) -> None:
    text = f"{{seed_brokers: ['{silent}'], tls: {{enabled: true, skip_cert_verify: true}}}}"
    cluster = ClusterClient(read_connection(connection_fields(text)))
    began = time.monotonic()
    for _ in range(2):  # the second finds no connection of the first
        with pytest.raises(KafkaError, match="answers in SSL, .* nothing has come back in time"):
            cluster.cluster_id(0.3)
    assert time.monotonic() - began < 0.6 + _BUSY
    until = time.monotonic() + 60
    while _client_threads():
        assert time.monotonic() < until, "a connection is left behind"
        time.sleep(0.01)


def _client_threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("kafka-io-redpanda")]
