"""A broker that comes and goes while it is asked all the time: nobody is ended by it."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from streamer.errors import StreamerError
from streamer.kafka.fields import read_connection
from streamer.kafka.reading import DataLostError
from streamer.kafka.source import KafkaSource
from streamer.kafka.topics import Selection
from tests.kafka.parsing import connection_fields
from tests.servers.kafka import Broker

pytestmark = pytest.mark.slow


def test_threads_that_ask_outlive_outages_and_the_group_is_right_in_the_end(tmp_path: Path) -> None:
    seed = time.time_ns()
    chance, over = random.Random(seed), threading.Event()
    strange: list[BaseException] = []

    def ask(question: Callable[[], object]) -> None:
        while not over.is_set():
            try:
                question()
            except DataLostError as error:
                strange.append(error)  # nothing is gone
            except StreamerError:
                pass  # it is away
            except BaseException as error:
                strange.append(error)
            over.wait(0.02)

    with Broker(tmp_path) as broker:
        kafka = broker.client()
        kafka.create("t", partitions=2)
        # Answers that come too late are what ends who does not take care.
        text = f"{{seed_brokers: ['{broker.address()}'], request_timeout_overhead: 500ms}}"
        connection = read_connection(connection_fields(text))
        source = KafkaSource("kafka", connection, Selection(topics=("t",)), group="g")
        known = {"t": {"0": 0, "1": 0}}
        asked = (lambda: source.standing(known), source.reachable)
        numbers = iter(range(1, 1_000_000))
        commits = (lambda: source.commit({"t": {"0": next(numbers)}}),)
        threads = [threading.Thread(target=ask, args=(one,)) for one in (*asked, *commits)]
        for thread in threads:
            thread.start()
        for stop, again in [(broker.pause, broker.resume)] * 4 + [(broker.kill, broker.start)]:
            stop()
            over.wait(chance.uniform(0.1, 1.2))
            again()
            over.wait(chance.uniform(0.1, 0.5))
        over.set()
        for thread in threads:
            thread.join(60)
        assert not strange, (seed, strange)
        until = time.monotonic() + 120
        while source.commit({"t": {"0": 7}}) is not None:
            assert time.monotonic() < until, seed
        # An older commit that was not answered does not come after it.
        assert kafka.group_offsets("g") == {("t", 0): 7}, seed
        source.close()
