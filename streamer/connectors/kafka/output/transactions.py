"""Transactions: what one task sends of a micro-batch becomes visible at once, and only once.

Each part of a micro-batch (a shard, or a piece of the input) has a transaction of its own. Its id
names the checkpoint and the part, so that a task that goes on elsewhere shuts out the one before
it. In the same transaction the number of the micro-batch is committed, as an offset of a consumer
group of the same name, which nobody reads by. A task asks for it before it sends, after it has shut
out others: if it is its own micro-batch's, all is there, and nothing is sent.

The number could be a record of a topic of its own as well; an offset takes fewer rights and no such
topic, and can be asked for without reading one. Kafka keeps it for `offsets.retention.minutes`
after the last one (7 days): a stream that is stopped must be started again before that, if it was
killed after a transaction and before its checkpoint knew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from streamer.connectors.kafka.cluster.errors import (
    RETRIABLE_TRANSACTION,
    TRANSACTION_REFUSED,
    error_text,
    transaction_error,
)
from streamer.connectors.kafka.output.output_preflight import preflight_transaction
from streamer.connectors.kafka.output.producer import (
    BrokenProducerError,
    Producer,
    Settings,
    call_producer,
    make_producer,
)
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution, MicroBatch
from streamer.sdk.backoff import RECONNECT
from streamer.sdk.output.protocols import SendAbortedError, SendError
from streamer.sdk.output.wait_budget import pause_before_retry

_TRANSACTION_TIMEOUT_S: Final = 15.0
_COMMITTED_TIMEOUT_S: Final = 10.0
_NOTHING_COMMITTED: Final = -1
_MAX_PRODUCERS: Final = 16
"""Producers that a worker keeps: each has threads and connections of its own, and a micro-batch may
have a hundred parts. Making one anew takes less than a tenth of a second."""


class TransactionalProducer:
    """A producer that has a transactional id.

    Attributes:
        name: the id; the group has the same name.
        producer: the producer.
        number: the newest micro-batch that is committed under the id; -1 for none.
        is_open: whether a transaction is open.
        has_sent: whether anything was sent in it.
    """

    def __init__(self, name: str, producer: Producer) -> None:
        """Take a producer that has shut out others of this id."""
        self.name = name
        self.producer = producer
        self.number = _NOTHING_COMMITTED
        self.is_open = False
        self.has_sent = False


class Transactions:
    """The transactional producers of one output in one worker."""

    def __init__(
        self, producer_settings: Settings, connection_settings: Settings, topic: str
    ) -> None:
        """Set up.

        Args:
            producer_settings: returns librdkafka's settings of a producer.
            connection_settings: the same of a connection alone.
            topic: where records go; the numbers of micro-batches are kept with it.
        """
        self._topic = topic
        self._producer_settings = producer_settings
        self._connection_settings = connection_settings
        self._producers: dict[str, TransactionalProducer] = {}
        self._groups: dict[str, Any] = {}
        self._lock = threading.Lock()
        self.last_error = ""
        self._refusal: Any = None

    def preflight(self, stream: str, user_text: str, timeout_s: float) -> None:
        """Check that transactions of a stream will be accepted; see `preflight_transaction`."""
        preflight_transaction(
            self._producer_settings,
            self._connection_settings,
            stream,
            self._topic,
            user_text,
            timeout_s,
        )

    def begin(self, part: MicroBatch, ex: Execution) -> TransactionalProducer | None:
        """Begin a transaction; wait for as long as no broker answers.

        Returns:
            The producer to send by; None when the part has been committed before.

        Raises:
            SendError: no broker answers, and the run's patience has ended.
            SendAbortedError: Kafka refuses.
        """
        from confluent_kafka import KafkaException

        name = f"streamer-{part.stream}-{part.part}"
        pauses = RECONNECT.pauses()
        with self._lock:
            while True:
                try:
                    return self._begin_once(name, part.number)
                except KafkaException as error:
                    cause = error.args[0]
                    self._drop(name)
                    if name in self._groups:
                        self._poll_errors(self._groups[name])
                    if self._refusal is not None:
                        # A consumer waits in vain for a group that it may not see.
                        cause, self._refusal = self._refusal, None
                        if name in self._groups:
                            self._close_group(name)
                        raise self._refusal_error(name, cause) from None
                    if not is_retriable(cause):
                        raise self._refusal_error(name, cause) from None
                    text = (
                        f"Messages for the topic {self._topic!r} wait: a transaction cannot begin: "
                        f"{self.last_error or error_text(cause)}"
                    )
                    ex.report_wait("WARN", text, {})
                    if not pause_before_retry(ex, next(pauses)):
                        raise SendError(text, not_tried=True) from None
                except SendError:
                    raise
                except StreamerError as error:
                    raise SendAbortedError(str(error)) from None

    def commit(self, transaction: TransactionalProducer, number: int, ex: Execution) -> None:
        """Commit a transaction, and with it that the micro-batch of that number is there.

        Raises:
            SendAbortedError: it is not known to be there.
        """
        from confluent_kafka import TopicPartition

        producer = transaction.producer
        if transaction.has_sent:
            # An offset is the next that is to be read.
            place = [TopicPartition(self._topic, 0, number + 1)]
            group = self._group_consumer(transaction.name).consumer_group_metadata()
            self._finish_step(
                transaction,
                lambda: producer.send_offsets_to_transaction(place, group, _TRANSACTION_TIMEOUT_S),
                ex,
            )
        self._finish_step(
            transaction, lambda: producer.commit_transaction(_TRANSACTION_TIMEOUT_S), ex
        )
        transaction.is_open = False
        if transaction.has_sent:
            transaction.number = number

    def abort(self, transaction: TransactionalProducer) -> None:
        """Take back what was sent in a transaction; its id is ready for the next one."""
        if not transaction.is_open:
            return
        transaction.is_open = False
        try:
            with suppress(BrokenProducerError):
                call_producer(transaction.producer.purge)
            call_producer(lambda: transaction.producer.abort_transaction(_TRANSACTION_TIMEOUT_S))
        except BrokenProducerError:
            # The next one of this id ends it.
            self._drop(transaction.name)

    def _begin_once(self, name: str, number: int) -> TransactionalProducer | None:
        transaction = self._producers.get(name)
        if transaction is not None and transaction.is_open:
            self.abort(transaction)
            transaction = self._producers.get(name)
        newest = _NOTHING_COMMITTED if transaction is None else self._newest_committed(name)
        if transaction is None or transaction.number != newest:
            # Somebody else has had the id since. The number is asked for once he is shut out.
            self._drop(name)
            transaction = TransactionalProducer(name, self._make_ready_producer(name))
            transaction.number = newest = self._newest_committed(name)
            self._keep(transaction)
        if newest == number:
            return None
        if newest > number:
            raise SendAbortedError(
                f"micro-batch {number} comes again, though Kafka has committed {newest} of this "
                "stream: the checkpoint is an older copy; take the newest one, or another directory"
            )
        transaction.has_sent = False
        transaction.producer.begin_transaction()
        transaction.is_open = True
        return transaction

    def _keep(self, transaction: TransactionalProducer) -> None:
        """Keep a producer for later micro-batches; let the one go that was made first."""
        while len(self._producers) >= _MAX_PRODUCERS:
            name, oldest = next(iter(self._producers.items()))
            self.abort(oldest)
            self._drop(name)
        self._producers[transaction.name] = transaction

    def _make_ready_producer(self, name: str) -> Producer:
        producer = make_producer(
            {**self._producer_settings(), "transactional.id": name, "error_cb": self._on_error}
        )
        producer.init_transactions(_TRANSACTION_TIMEOUT_S)
        return producer

    def _on_error(self, error: Any) -> None:
        self.last_error = error_text(error)
        if error.code() in TRANSACTION_REFUSED:
            self._refusal = error

    def _finish_step(
        self, transaction: TransactionalProducer, step: Callable[[], Any], ex: Execution
    ) -> None:
        """Take a step towards a transaction's end, as often as it may be tried again."""
        from confluent_kafka import KafkaException

        pauses = RECONNECT.pauses()
        while True:
            try:
                step()
                return
            except KafkaException as error:
                cause = error.args[0]
                if cause.retriable() and not cause.txn_requires_abort():
                    text = (
                        f"Messages for the topic {self._topic!r} wait: a transaction cannot end: "
                        f"{error_text(cause)}"
                    )
                    ex.report_wait("WARN", text, {})
                    ex.sleep(min(next(pauses), SECOND))
                    continue
                if cause.txn_requires_abort():
                    self.abort(transaction)
                else:
                    transaction.is_open = False
                    self._drop(transaction.name)
                if cause.code() in TRANSACTION_REFUSED:
                    raise self._refusal_error(transaction.name, cause) from None
                raise SendAbortedError(aborted_text(self._topic, error_text(cause))) from None

    def _newest_committed(self, name: str) -> int:
        """Return the newest micro-batch that is committed under a name."""
        from confluent_kafka import KafkaException, TopicPartition

        # It answers when nothing is open any more that could still be committed.
        [place] = self._group_consumer(name).committed(
            [TopicPartition(self._topic, 0)], timeout=_COMMITTED_TIMEOUT_S
        )
        if place.error is not None:
            raise KafkaException(place.error)
        newest: int = place.offset - 1
        return max(newest, _NOTHING_COMMITTED)

    def _group_consumer(self, name: str) -> Any:
        """Return a consumer that asks for a group, and never joins it.

        librdkafka's admin client could be asked without one, but it ends the process when the
        broker of a group is not ready (its issue 4605).
        """
        if name not in self._groups:
            from confluent_kafka import Consumer

            settings = {"group.id": name, "enable.auto.commit": False, "error_cb": self._on_error}
            while len(self._groups) >= _MAX_PRODUCERS:
                self._close_group(next(iter(self._groups)))
            self._groups[name] = Consumer({**self._connection_settings(), **settings})
        group = self._groups[name]
        self._poll_errors(group)
        return group

    def _poll_errors(self, group: Any) -> None:
        """Take what a consumer has to say: that a group is refused comes as a message."""
        message = group.poll(0)
        if message is not None and message.error() is not None:
            self._on_error(message.error())

    def _close_group(self, name: str) -> None:
        # Closing waits for brokers that may be away.
        close = self._groups.pop(name).close
        threading.Thread(target=close, daemon=True, name="kafka-close").start()

    def _drop(self, name: str) -> None:
        self._producers.pop(name, None)

    def _refusal_error(self, name: str, error: Any) -> SendAbortedError:
        return SendAbortedError(str(transaction_error(error, name.rpartition("-")[0], self._topic)))


def is_retriable(error: Any) -> bool:
    """Return whether one of librdkafka's errors may be over when it is tried again."""
    return bool(error.retriable()) or error.code() in RETRIABLE_TRANSACTION


def aborted_text(topic: str, why: str) -> str:
    """Return the error text for a transaction that was aborted."""
    return (
        f"the transaction of the topic {topic!r} is aborted, and the micro-batch is repeated: {why}"
    )
