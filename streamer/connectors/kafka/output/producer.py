"""A producer of librdkafka's for a worker, and how records are given to it: many, then one wait.

librdkafka sends what is in its queue by itself, in batches of its own. So all that is at hand goes
into the queue first, and is waited for then. Only failures are told of single records: a call of
Python for each that has been taken would cost more than all the rest.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from streamer.connectors.kafka.cluster.errors import (
    INVALID_RECORD,
    TOO_LARGE,
    error_text,
    record_error_text,
)
from streamer.connectors.kafka.output.partitioning import PartitionChooser
from streamer.connectors.kafka.output.record import Record
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.sdk.output.rejection import Reason, Rejection, make_invalid_rejection

_POLL_INTERVAL_S: Final = 0.5
_CONNECT_INTERVAL_S: Final = 0.25
_FIRST_REPORT_NS: Final = 5 * SECOND
_MAX_REPORT_INTERVAL_NS: Final = 60 * SECOND
_MAX_NAMED: Final = 3

Producer = Any
"""A `confluent_kafka.Producer`."""

Settings = Callable[[], Mapping[str, Any]]
"""Returns settings of librdkafka's."""


class BrokenProducerError(StreamerError):
    """The producer is of no use any more; another one has to be made."""


class WorkerProducer:
    """The producer of one output in one worker; threads may share it.

    Attributes:
        last_error: what it has told of brokers last.
        connected: whether a broker has answered once.
    """

    def __init__(self, settings: Settings) -> None:
        """Take what returns librdkafka's settings; the producer is made when it is needed."""
        self._settings = settings
        self._lock = threading.Lock()
        self._producer: Producer | None = None
        self.last_error = ""
        self.connected = False

    def get_producer(self) -> Producer:
        """Return the producer.

        Raises:
            StreamerError: the settings are refused.
        """
        with self._lock:
            if self._producer is None:
                self._producer = make_producer({**self._settings(), "error_cb": self.on_error})
            return self._producer

    def connect(self, timeout_s: float) -> None:
        """Check that a broker answers, unless one has before.

        Raises:
            StreamerError: none does in time.
        """
        if self.connected:
            return
        from confluent_kafka import KafkaException

        producer, until = self.get_producer(), time.monotonic() + timeout_s
        while True:
            # Among others, it asks for a token here.
            call_producer(partial(producer.poll, 0))
            try:
                producer.list_topics(timeout=_CONNECT_INTERVAL_S)
                break
            except KafkaException as error:
                if time.monotonic() >= until:
                    raise StreamerError(
                        "no broker answers: "
                        f"{self.last_error or error_text(error.args[0])}; check that Kafka runs "
                        "and that the addresses are right"
                    ) from None
        self.connected = True

    def drop(self, producer: Producer) -> None:
        """Give up a producer that is broken; the next one is new."""
        with self._lock:
            if self._producer is producer:
                self._producer = None
                self.connected = False

    def on_error(self, error: Any) -> None:
        """Take what librdkafka tells of brokers."""
        self.last_error = error_text(error)


_TOPIC_NAME: Final = re.compile(r"(?!\.\.?$)[a-zA-Z0-9._-]{1,249}")
"""The name of a topic, as Kafka has it."""


def make_producer(settings: Mapping[str, Any]) -> Producer:
    """Make a producer.

    Raises:
        StreamerError: librdkafka refuses the settings.
    """
    from confluent_kafka import KafkaException, Producer

    try:
        # Records that were taken are not told of: see the module.
        return Producer({**settings, "delivery.report.only.error": True})
    except KafkaException as error:
        raise StreamerError(
            f"librdkafka refuses the settings: {error_text(error.args[0])}"
        ) from None


def produce(
    producer: Producer,
    records: Sequence[Record],
    chooser: PartitionChooser | None,
    ex: Execution,
    last_error: Callable[[], str] = str,
) -> dict[int, str]:
    """Send records, and wait until each is taken or given up.

    Args:
        producer: the producer.
        records: the records, in order.
        chooser: chooses partitions; None to leave it to librdkafka.
        ex: the run, which hears of it when brokers take none for long.
        last_error: returns what the producer has told of brokers last.

    Returns:
        What has failed, and why, by index.

    Raises:
        BrokenProducerError: the producer has broken down; nothing is known of the records.
    """
    from confluent_kafka import KafkaException

    failed: dict[int, Any] = {}

    def on_delivery(index: int, error: Any, _: Any) -> None:
        if error is not None:
            failed[index] = error

    reporter = _WaitReporter(ex, last_error, {record[0] for record in records})
    send = producer.produce
    for index, (topic, value, key, partition, timestamp, headers) in enumerate(records):
        if chooser is not None:
            partition = chooser.choose(topic)
        failing = partial(on_delivery, index)
        while True:
            try:
                send(topic, value, key, partition, failing, timestamp=timestamp, headers=headers)
                break
            except BufferError:
                # The queue is full: what is taken of it leaves.
                call_producer(partial(producer.poll, _POLL_INTERVAL_S))
                reporter.report_if_due(len(producer))
            except KafkaException as error:
                failed[index] = error.args[0]
                break
            except (ValueError, OverflowError) as error:
                # Such as a topic that is no UTF-8.
                failed[index] = str(error)
                break
    while left := call_producer(partial(producer.flush, _POLL_INTERVAL_S)):
        reporter.report_if_due(left)
    if chooser is not None:
        chooser.reset()
    if any(map(_is_fatal, failed.values())):
        raise BrokenProducerError(error_text(next(iter(failed.values()))))
    return {
        index: _rejection_text(records[index], error) for index, error in sorted(failed.items())
    }


def _rejection_text(record: Record, error: Any) -> str:
    """Return why a record was not taken, as a `Rejection` where it is refused for what it is."""
    topic, _, _, partition, *_ = record
    text = record_error_text(topic, partition, error)
    code = error if isinstance(error, str) else error.code()
    if code in TOO_LARGE:
        return Rejection(text, Reason.TOO_LARGE)
    # A topic that cannot be is told as one that is not there where clients make none.
    if isinstance(error, str) or code in INVALID_RECORD or _TOPIC_NAME.fullmatch(topic) is None:
        return make_invalid_rejection(text)
    return text


class _WaitReporter:
    """Logs that records wait, when that takes long, and then again from time to time."""

    def __init__(self, ex: Execution, last_error: Callable[[], str], topics: set[str]) -> None:
        self._ex = ex
        some = sorted(topics)
        more = f" and {len(some) - _MAX_NAMED} more" if len(some) > _MAX_NAMED else ""
        self._where = f"{', '.join(map(repr, some[:_MAX_NAMED]))}{more}"
        self._last_error = last_error
        self._reported_at = ex.elapsed()
        self._interval = _FIRST_REPORT_NS

    def report_if_due(self, left: int) -> None:
        if self._ex.elapsed() - self._reported_at < self._interval:
            return
        self._reported_at, self._interval = (
            self._ex.elapsed(),
            min(self._interval * 2, _MAX_REPORT_INTERVAL_NS),
        )
        why = self._last_error()
        text = (
            f"Output blocked: brokers have not taken {left} records of the topics {self._where}"
            f"{f': {why}' if why else ''}; check that the brokers run"
        )
        self._ex.report_wait("WARN", text, {})


def call_producer(call: Callable[[], Any]) -> Any:
    """Return what a call of the producer returns, in which librdkafka tells what has become of it.

    Raises:
        BrokenProducerError: the producer has broken down. That is raised wherever it is told, and
            where that is in the midst of others, Python finds an error that nobody has taken.
    """
    from confluent_kafka import KafkaException

    try:
        return call()
    except KafkaException as error:
        raise BrokenProducerError(error_text(error.args[0])) from None
    except SystemError as error:
        why = error.__cause__
        while why is not None and not isinstance(why, KafkaException):
            why = why.__cause__
        if why is None:
            raise
        raise BrokenProducerError(error_text(why.args[0])) from None


def _is_fatal(error: Any) -> bool:
    from confluent_kafka import KafkaError

    if isinstance(error, str):
        return False
    return bool(error.fatal()) or error.code() in (KafkaError._FATAL, KafkaError._FENCED)
