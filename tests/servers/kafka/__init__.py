"""A real Kafka broker for tests: one JVM, from jars that Maven fetched.

They are in STREAMER_BROKER_JARS, or else in `~/.cache/streamer/broker`. To fetch them:

    mvn -f deploy/dev/broker-pom.xml dependency:copy-dependencies \\
        -DoutputDirectory="$HOME/.cache/streamer/broker"

as `.ci/run` does; where they are not, tests are skipped and say so.

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
