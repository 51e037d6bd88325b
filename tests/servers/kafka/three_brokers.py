"""Three brokers, each of which keeps all of each topic: one may be killed, and others go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.servers.kafka.broker import Broker

NODES = 1, 2, 3


class ThreeBrokers:
    """Brokers and controllers in three JVMs, on loopback.

    Attributes:
        nodes: by their number.
    """

    def __init__(self, directory: Path) -> None:
        """Choose directories and ports; `start` starts them."""
        self.nodes = {
            number: Broker(directory / f"node-{number}", self._settings(number)) for number in NODES
        }
        voters = ",".join(
            f"{number}@127.0.0.1:{one.port_of('CONTROLLER')}" for number, one in self.nodes.items()
        )
        for one in self.nodes.values():
            one.change_settings({"controller.quorum.voters": voters})

    @staticmethod
    def _settings(number: int) -> dict[str, str]:
        return {
            "node.id": str(number),
            "offsets.topic.replication.factor": "3",
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "2",
            "min.insync.replicas": "2",
            # A follower that is killed is out soon, and one that comes back does not lead at once.
            "replica.lag.time.max.ms": "3000",
            "auto.leader.rebalance.enable": "false",
        }

    @property
    def addresses(self) -> str:
        """All of them, with commas, for clients."""
        return ",".join(one.address() for one in self.nodes.values())

    def client(self) -> Any:
        """Return a client that knows all of them."""
        client = self.nodes[1].client()
        client.bootstrap = self.addresses
        return client

    def start(self) -> None:
        """Start all at the same time: none answers without another."""
        failed: list[BaseException] = []

        def start(one: Broker) -> None:
            one.directory.mkdir(parents=True, exist_ok=True)
            try:
                one.start()
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=start, args=(one,)) for one in self.nodes.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]

    def leader(self, client: Any, topic: str, partition: int) -> int:
        """Return the number of the broker that leads a partition."""
        listed = client.admin.list_topics(topic, timeout=30).topics[topic]
        leader: int = listed.partitions[partition].leader
        return leader


@contextmanager
def three_brokers(directory: Path) -> Iterator[ThreeBrokers]:
    """Run three brokers; they are killed in the end."""
    made = ThreeBrokers(directory)
    with ExitStack() as stack:
        for one in made.nodes.values():
            stack.callback(one.__exit__, None, None, None)
        made.start()
        yield made
