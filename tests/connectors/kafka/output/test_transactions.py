"""Transactions of one output on a real broker: replays, zombies, failures; the page's reader."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import pytest

from streamer.core.execution import Execution, MicroBatch
from streamer.core.message import Batch, Message
from streamer.sdk.output.protocols import SendAbortedError
from tests.components.outputs.scripted import Seen, batches, built
from tests.connectors.kafka.reader import pages_reader
from tests.servers.kafka.client import Kafka

_NUMBERS = itertools.count()


@dataclass
class Place:
    """A topic and a stream of a test's own.

    Attributes:
        kafka: the broker.
        topic: the topic.
        stream: what the checkpoint is called.
    """

    kafka: Kafka
    topic: str
    stream: str

    def output(self, fields: str = "") -> Any:
        """Return an output as another worker has it."""
        brokers = f"seed_brokers: ['{self.kafka.bootstrap}']"
        return built(
            f"kafka_franz: {{{brokers}, topic: {self.topic}, transactional: true, {fields}}}"
        )

    def ex(self, number: int, part: str = "0") -> Execution:
        """Return a run of a part of a micro-batch."""
        ex = Seen().ex
        ex.micro_batch = MicroBatch(self.stream, number, part)
        return ex

    def write(self, output: Any, number: int, *texts: str, part: str = "0") -> bool:
        """Send a part of a micro-batch as a task does; tell whether it was to be sent."""
        ex = self.ex(number, part)
        if not output.output.begin(ex):
            return False
        self.send(output, ex, batches(*texts))
        output.output.commit(ex)
        return True

    def send(self, output: Any, ex: Execution, batches: list[Batch]) -> None:
        """Send batches in the transaction that is open."""
        assert output.deliver(batches, ex).errors == [None] * len(batches)

    def holds(self, text: str) -> None:
        """Wait until a reader of what is committed sees this, and hold that he sees no more.

        A commit is certain when it is answered; readers hear of it a moment later.
        """
        until = time.monotonic() + 60
        while len(found := self._read()) < len(text) and time.monotonic() < until:
            time.sleep(0.02)
        assert found == text

    def _read(self) -> str:
        return "".join((one.value or b"").decode() for one in self.kafka.consume(self.topic))


@pytest.fixture
def place(kafka: Kafka) -> Place:
    number = next(_NUMBERS)
    return Place(kafka, kafka.create(f"transactions-{number}"), f"stream{number}")


@pytest.mark.slow
def test_what_is_sent_is_seen_when_it_is_committed(place: Place) -> None:
    output, ex = place.output(), place.ex(0)
    assert output.output.begin(ex)
    place.send(output, ex, batches("ab", "c"))
    place.holds("")
    output.output.commit(ex)
    place.holds("abc")
    assert place.write(output, 1, "d")
    place.holds("abcd")
    assert place.kafka.group_offsets(f"streamer-{place.stream}-0") == {(place.topic, 0): 2}


@pytest.mark.slow
def test_a_part_that_comes_again_is_left_out_whoever_sends_it(place: Place) -> None:
    output = place.output()
    assert place.write(output, 7, "a")
    assert not place.write(output, 7, "a")
    assert not place.write(place.output(), 7, "a")
    assert place.write(place.output(), 7, "b", part="1")
    assert place.write(place.output(), 8, "c")
    place.holds("abc")


@pytest.mark.slow
def test_what_is_taken_back_is_never_seen_and_may_be_sent_again(place: Place) -> None:
    output, ex = place.output(), place.ex(0)
    assert output.output.begin(ex)
    place.send(output, ex, batches("a"))
    output.output.abort()
    assert place.write(output, 0, "b")
    place.holds("b")


@pytest.mark.slow
def test_who_was_left_for_dead_is_shut_out(place: Place) -> None:
    zombie, ex = place.output(), place.ex(0)
    assert zombie.output.begin(ex)
    place.send(zombie, ex, batches("z"))
    assert place.write(place.output(), 0, "a")
    with pytest.raises(SendAbortedError):
        zombie.output.commit(ex)
    place.holds("a")
    # It knows better when it is asked again.
    assert not place.write(zombie, 0, "z")
    assert place.write(zombie, 1, "b")
    place.holds("ab")


_SLEEPER = """
import sys
from tests.connectors.kafka.output.test_transactions import Kafka, Place, SendAbortedError, batches

place = Place(Kafka(sys.argv[1], {}), sys.argv[2], sys.argv[3])
output, ex = place.output(), place.ex(0)
assert output.output.begin(ex)
place.send(output, ex, batches("z"))
print("sent", flush=True)
sys.stdin.readline()
try:
    place.send(output, ex, batches("z"))
    output.output.commit(ex)
except SendAbortedError as error:
    print(error, flush=True)
"""


@pytest.mark.slow
def test_a_worker_that_wakes_up_late_writes_nothing(place: Place) -> None:
    """All of it was stopped, the threads of its producer too."""
    command = [sys.executable, "-c", _SLEEPER, place.kafka.bootstrap, place.topic, place.stream]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as worker:
        try:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "sent\n"
            worker.send_signal(signal.SIGSTOP)
            assert place.write(place.output(), 0, "a")
            worker.send_signal(signal.SIGCONT)
            said, wrong = worker.communicate("go on\n", 120)
        finally:
            worker.kill()
    assert f"the transaction of the topic '{place.topic}' is aborted" in said, wrong
    assert not wrong, "librdkafka says nothing by itself"
    assert place.write(place.output(), 1, "b")
    place.holds("ab")


@pytest.mark.slow
def test_a_worker_goes_on_where_another_one_was_meanwhile(place: Place) -> None:
    first, second = place.output(), place.output()
    for number, output in enumerate([first, second, second, first, second, first]):
        assert place.write(output, number, str(number))
    place.holds("012345")


@pytest.mark.slow
def test_a_transaction_that_was_left_open_is_taken_back_by_the_next(place: Place) -> None:
    output, ex = place.output(), place.ex(3)
    assert output.output.begin(ex)
    place.send(output, ex, batches("x"))
    assert place.write(output, 3, "a")
    place.holds("a")


@pytest.mark.slow
def test_of_many_parts_a_worker_keeps_the_producers_of_some(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamer.connectors.kafka.output.transactions._MAX_PRODUCERS", 2)
    output = place.output()
    for number in (0, 1, 1):
        for part in ("0", "1", "2"):
            place.write(output, number, "a", part=part)
    place.holds("a" * 6)
    assert len(output.output._worker.transactions._producers) == 2


@pytest.mark.slow
def test_a_record_that_cannot_be_sent_is_rejected_and_left_out(place: Place) -> None:
    output, ex = place.output("max_message_bytes: 2kB"), place.ex(0)
    assert output.output.begin(ex)
    none, error = output.deliver([[Message(b"a")], [Message(b"b" * 3000)]], ex).errors
    assert none is None
    assert error is not None and error.is_rejected
    assert f"the topic '{place.topic}' does not take a record: Message size too" in error.text
    output.output.commit(ex)
    place.holds("a")


@pytest.mark.slow
def test_an_old_checkpoint_is_not_gone_on_from(place: Place) -> None:
    assert place.write(place.output(), 5, "a")
    with pytest.raises(
        SendAbortedError, match="micro-batch 3 comes again, though Kafka has committ"
    ):
        place.write(place.output(), 3, "b")
    place.holds("a")


@pytest.mark.slow
def test_a_transaction_that_may_not_take_so_long_says_which_setting_it_is(place: Place) -> None:
    with pytest.raises(
        SendAbortedError, match="transaction_timeout to the brokers' transaction.max"
    ):
        place.write(place.output("transaction_timeout: 100h"), 0, "a")


def test_there_are_no_transactions_outside_of_a_stream():
    output = built("redpanda: {seed_brokers: ['localhost:1'], topic: a, transactional: true}")
    with pytest.raises(SendAbortedError, match="there are no transactions outside of a stream"):
        output.output.begin(Seen().ex)


def test_the_pages_reader_drops_what_comes_again_and_nothing_else():
    def records(number: int, part: str, places: range) -> list[dict[str, bytes]]:
        named = f"id-{number}-{part}".encode()
        return [{"batch_id": named, "batch_sequence": str(n).encode()} for n in places]

    is_new = pages_reader()
    written = [
        *records(0, "0", range(3)),
        *records(0, "s1", range(2)),
        *records(0, "0", range(5)),  # the micro-batch comes again, and gets further
        *records(1, "0", range(2)),
        *records(1, "s1", range(1)),
        *records(1, "0", range(2)),
    ]
    assert [is_new(0, one) for one in written] == [
        *[True] * 3,
        *[True] * 2,
        *[False] * 3,
        *[True] * 2,
        *[True] * 2,
        *[True],
        *[False] * 2,
    ]
    assert is_new(1, written[0])  # of another partition
