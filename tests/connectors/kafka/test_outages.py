"""A broker that comes and goes while it is asked and written to: nobody ends, nothing is lost."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from streamer.config import parse_config
from streamer.connectors.kafka.cluster.connection_fields import read_connection
from streamer.connectors.kafka.cluster.topic_selection import TopicSelection
from streamer.connectors.kafka.input.data_loss import DataLostError
from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution, MicroBatch
from streamer.core.message import Message
from streamer.engine.stage.output_stage import OutputStage
from streamer.plan import make_plan
from streamer.sdk.output.protocols import SendAbortedError
from tests.connectors.kafka.parsing import connection_fields
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
        source = KafkaSource("kafka", connection, TopicSelection(topics=("t",)), group="g")
        known = {"t": {"0": 0, "1": 0}}
        asked = (lambda: source.backlog(known), source.reachability_problem)
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


_PART = 50
_TIMEOUT = 2.0
_OUTAGES = 5


class _Writer:
    """Writes micro-batches as a worker does: one that fails comes again with the same number."""

    def __init__(self, broker: Broker, topic: str, fields: str) -> None:
        where = f"seed_brokers: ['{broker.address()}'], request_timeout_overhead: 1s"
        config = f"output: {{redpanda: {{{where}, topic: {topic}, {fields}}}}}"
        plan = make_plan(parse_config(config, env={}))
        self.topic = topic
        self.told: list[str] = []
        self.written = 0
        self._stage = OutputStage(plan, 0, plan.output)

    def write_until(self, over: threading.Event) -> None:
        while not over.is_set():
            while not self._wrote():
                time.sleep(0.2)
            self.written += 1
            # As fast as it can, one writer keeps a broker of one core from answering the other.
            time.sleep(0.01)

    def _wrote(self) -> bool:
        ex = Execution(time.time_ns, report_wait=lambda level, text, fields: self.told.append(text))
        ex.micro_batch = MicroBatch(self.topic, self.written, "0")
        first = self.written * _PART
        batches = [[Message(str(n).encode())] for n in range(first, first + _PART)]
        try:
            assert not list(self._stage.payloads(batches, 0, ex))
            self._stage.finish()
        except SendAbortedError as error:
            self.told.append(str(error))
            return False
        return True


@pytest.mark.timeout(420)
def test_what_is_written_outlives_outages_that_are_longer_than_its_timeout(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        kafka, over = broker.client(), threading.Event()
        timeout = f"{int(_TIMEOUT)}s"
        plain = _Writer(broker, "plain", f"record_delivery_timeout: {timeout}")
        exact = _Writer(broker, "exact", f"transactional: true, transaction_timeout: {timeout}")
        writers = (plain, exact)
        for one in writers:
            kafka.create(one.topic, 2)
        threads = [threading.Thread(target=one.write_until, args=(over,)) for one in writers]
        for thread in threads:
            thread.start()

        def wait_for_more() -> None:
            before, until = [one.written for one in writers], time.monotonic() + 120
            while any(one.written <= at for one, at in zip(writers, before, strict=True)):
                told = [(one.topic, one.written, one.told[-3:]) for one in writers]
                assert time.monotonic() < until, told
                time.sleep(0.05)

        try:
            wait_for_more()
            for stop, again in [(broker.pause, broker.resume), (broker.kill, broker.start)]:
                for one in writers:
                    one.told.clear()
                # Who waits for an answer just then, and not for records, has more patience.
                for _ in range(_OUTAGES):
                    stop()
                    time.sleep(2 * _TIMEOUT)
                    again()
                    wait_for_more()
                    if all(one.told for one in writers):
                        break
                for one in writers:
                    assert one.told, f"{one.topic} has not noticed"
        finally:
            over.set()
            for thread in threads:
                thread.join(60)
        for one in writers:
            seen = Counter(int(record.value or b"") for record in kafka.consume(one.topic))
            assert set(seen) == set(range(one.written * _PART)), one.topic
            assert one is plain or set(seen.values()) == {1}, "read_committed readers see it twice"


def test_a_ping_tells_within_five_seconds_that_a_broker_is_killed_or_silent(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        broker.client().create("t", partitions=2)
        connection = read_connection(connection_fields(f"{{seed_brokers: ['{broker.address()}']}}"))
        source = KafkaSource("redpanda", connection, TopicSelection(topics=("t",)))
        assert source.connection_problem() is None
        for stop, again in [(broker.kill, broker.start), (broker.pause, broker.resume)]:
            stop()
            began = time.monotonic()
            problem = source.connection_problem()
            took = time.monotonic() - began
            again()
            assert problem is not None and problem.startswith("input redpanda: no broker")
            assert took < 4  # the pause between two pings comes on top
            until = time.monotonic() + 60
            while source.connection_problem() is not None:
                assert time.monotonic() < until
        source.close()
