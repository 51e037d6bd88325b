"""A producer of librdkafka's for a worker, and how records are given to it: many, then one wait.

librdkafka sends what is in its queue by itself, in batches of its own. So all that is at hand goes
into the queue first, and is waited for then. Only failures are told of single records: a call of
Python for each that has been taken would cost more than all the rest.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from streamer.durations import SECOND
from streamer.errors import StreamerError
from streamer.kafka.partitioning import Chooser
from streamer.kafka.record import Record
from streamer.kafka.untaken import told, untaken
from streamer.message import Execution
from streamer.sending.rejection import Reason, Rejection, invalid

_SLICE: Final = 0.5
_QUIET: Final = 5 * SECOND
_LONGEST: Final = 60 * SECOND
_NAMED: Final = 3

Producer = Any
"""A `confluent_kafka.Producer`."""


class BrokenProducerError(StreamerError):
    """The producer is of no use any more; another one has to be made."""


class Producing:
    """The producer of one output in one worker; threads may share it.

    Attributes:
        trouble: what it has told of brokers last.
        connected: whether a broker has answered once.
    """

    def __init__(self, settings: Callable[[], Mapping[str, Any]]) -> None:
        """Take what returns librdkafka's settings; the producer is made when it is needed."""
        self._settings = settings
        self._lock = threading.Lock()
        self._producer: Producer | None = None
        self.trouble = ""
        self.connected = False

    def producer(self) -> Producer:
        """Return the producer.

        Raises:
            StreamerError: the settings are refused.
        """
        with self._lock:
            if self._producer is None:
                self._producer = made({**self._settings(), "error_cb": self.hear})
            return self._producer

    def drop(self, producer: Producer) -> None:
        """Give up a producer that is broken; the next one is new."""
        with self._lock:
            if self._producer is producer:
                self._producer = None
                self.connected = False

    def hear(self, error: Any) -> None:
        """Take what librdkafka tells of brokers."""
        self.trouble = told(error)


# Numbers of Kafka's and librdkafka's errors that are a record's own.
_TOO_LARGE: Final = (10, 18)
"""Of a record, and of those that go with it."""
_TOPIC: Final = re.compile(r"(?!\.\.?$)[a-zA-Z0-9._-]{1,249}")
"""The name of a topic, as Kafka has it."""
_INVALID: Final = (17, 32, 87, -186)
"""The topic's name, the time, the record, an argument."""


def made(settings: Mapping[str, Any]) -> Producer:
    """Make a producer.

    Raises:
        StreamerError: librdkafka refuses the settings.
    """
    from confluent_kafka import KafkaException, Producer

    try:
        # Records that were taken are not told of: see the module.
        return Producer({**settings, "delivery.report.only.error": True})
    except KafkaException as error:
        raise StreamerError(f"librdkafka refuses the settings: {told(error.args[0])}") from None


def produce(
    producer: Producer,
    records: Sequence[Record],
    chooser: Chooser | None,
    ex: Execution,
    trouble: Callable[[], str] = str,
) -> dict[int, str]:
    """Send records, and wait until each is taken or given up.

    Args:
        producer: the producer.
        records: the records, in order.
        chooser: chooses partitions; None to leave it to librdkafka.
        ex: the run, which hears of it when brokers take none for long.
        trouble: returns what the producer has told of brokers last.

    Returns:
        What has failed, and why, by index.

    Raises:
        BrokenProducerError: the producer has broken down; nothing is known of the records.
    """
    from confluent_kafka import KafkaException

    failed: dict[int, Any] = {}

    def note(index: int, error: Any, _: Any) -> None:
        if error is not None:
            failed[index] = error

    patience = _Patience(ex, trouble, {record[0] for record in records})
    send = producer.produce
    for index, (topic, value, key, partition, timestamp, headers) in enumerate(records):
        if chooser is not None:
            partition = chooser.choose(topic)
        failing = partial(note, index)
        while True:
            try:
                send(topic, value, key, partition, failing, timestamp=timestamp, headers=headers)
                break
            except BufferError:
                # The queue is full: what is taken of it leaves.
                served(partial(producer.poll, _SLICE))
                patience.look(len(producer))
            except KafkaException as error:
                failed[index] = error.args[0]
                break
            except (ValueError, OverflowError) as error:
                # Such as a topic that is no UTF-8.
                failed[index] = str(error)
                break
    while left := served(partial(producer.flush, _SLICE)):
        patience.look(left)
    if chooser is not None:
        chooser.settle()
    if any(map(_is_fatal, failed.values())):
        raise BrokenProducerError(told(next(iter(failed.values()))))
    return {
        index: _failure(untaken(records[index], error), error, records[index][0])
        for index, error in sorted(failed.items())
    }


def _failure(text: str, error: Any, topic: str) -> str:
    """Return a text as what it says of its record: that it is refused for what it is, or not."""
    code = error if isinstance(error, str) else error.code()
    if code in _TOO_LARGE:
        return Rejection(text, Reason.TOO_LARGE)
    # A topic that cannot be is told as one that is not there where clients make none.
    if isinstance(error, str) or code in _INVALID or _TOPIC.fullmatch(topic) is None:
        return invalid(text)
    return text


class _Patience:
    """Says that records wait, when that takes long, and then again from time to time."""

    def __init__(self, ex: Execution, trouble: Callable[[], str], topics: set[str]) -> None:
        self._ex = ex
        some = sorted(topics)
        more = f" and {len(some) - _NAMED} more" if len(some) > _NAMED else ""
        self._where = f"{', '.join(map(repr, some[:_NAMED]))}{more}"
        self._trouble = trouble
        self._said = ex.elapsed()
        self._pause = _QUIET

    def look(self, left: int) -> None:
        if self._ex.elapsed() - self._said < self._pause:
            return
        self._said, self._pause = self._ex.elapsed(), min(self._pause * 2, _LONGEST)
        why = self._trouble()
        text = (
            f"Messages wait: brokers have not taken {left} records of the topics {self._where}"
            f"{f': {why}' if why else ''}; check that the brokers run"
        )
        self._ex.tell("WARN", text, {})


def served(call: Callable[[], Any]) -> Any:
    """Return what a call of the producer returns, in which librdkafka tells what has become of it.

    Raises:
        BrokenProducerError: the producer has broken down. That is raised wherever it is told, and
            where that is in the midst of others, Python finds an error that nobody has taken.
    """
    from confluent_kafka import KafkaException

    try:
        return call()
    except KafkaException as error:
        raise BrokenProducerError(told(error.args[0])) from None
    except SystemError as error:
        why = error.__cause__
        while why is not None and not isinstance(why, KafkaException):
            why = why.__cause__
        if why is None:
            raise
        raise BrokenProducerError(told(why.args[0])) from None


def _is_fatal(error: Any) -> bool:
    from confluent_kafka import KafkaError

    if isinstance(error, str):
        return False
    return bool(error.fatal()) or error.code() in (KafkaError._FATAL, KafkaError._FENCED)
