"""A real Kafka broker for tests: one JVM, from jars that Maven fetched.

Use it through the fixture `kafka`: one broker for the whole run, tests use topics of their own. A
test that kills, stops or restarts its broker starts one for itself:

    with Broker(tmp_path) as broker:
        kafka = broker.client()
        kafka.create("numbers", partitions=4)
"""

from __future__ import annotations

from tests.servers.kafka.broker import Broker
from tests.servers.kafka.client import Kafka, Record

__all__ = ["Broker", "Kafka", "Record"]
