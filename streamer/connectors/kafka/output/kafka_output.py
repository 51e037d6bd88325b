"""The output that `kafka`, `kafka_franz` and `redpanda` are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.cluster.connection import Connection
from streamer.connectors.kafka.cluster.deadline import Deadline
from streamer.connectors.kafka.cluster.errors import KafkaError
from streamer.connectors.kafka.output.output_preflight import check_writable
from streamer.connectors.kafka.output.partitioning import PartitionChooser
from streamer.connectors.kafka.output.producer import BrokenProducerError, WorkerProducer, produce
from streamer.connectors.kafka.output.record import Record, RecordMaker
from streamer.connectors.kafka.output.topic_creation import TopicCreator
from streamer.connectors.kafka.output.transactions import (
    TransactionalProducer,
    Transactions,
    aborted_text,
)
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.backoff import Backoff
from streamer.sdk.output.protocols import BulkOutput, NotConnectedError, SendAbortedError, SendError
from streamer.sdk.output.rejection import make_invalid_rejection
from streamer.sdk.output.wait_budget import pause_own_try
from streamer.sdk.processing.batching import BatchPolicy


@dataclass(frozen=True)
class WorkerClients:
    """Resources of an output for as long as the worker lasts.

    Attributes:
        connection: how Kafka is reached.
        producer: the producer.
        transactions: the producers of transactions; None without them.
        chooser: chooses partitions; None to leave it to librdkafka.
        topic_creator: creates topics that are not there; None to leave it to the brokers.
    """

    connection: Connection
    producer: WorkerProducer
    transactions: Transactions | None
    chooser: PartitionChooser | None
    topic_creator: TopicCreator | None


@dataclass(frozen=True)
class RetrySettings:
    """Retry policy of records before the batch counts as failed.

    Attributes:
        backoff: how tries follow each other.
        as_batch: whether the whole batch is sent again.
    """

    backoff: Backoff
    as_batch: bool


class KafkaOutput(BulkOutput):
    """Sends records; in transactions when it is asked to."""

    def __init__(
        self,
        worker: WorkerClients,
        maker: RecordMaker,
        max_in_flight: int,
        policy: BatchPolicy | None,
        retries: RetrySettings | None = None,
        creates: bool = True,
    ) -> None:
        """Set up.

        Args:
            worker: what lasts.
            maker: makes records.
            max_in_flight: with more than one, all batches at hand are sent at once.
            policy: how batches are cut before.
            retries: how failures are sent again here; None to leave that to others.
            creates: whether brokers may create topics.
        """
        self._worker = worker
        self._maker = maker
        self.max_in_flight = max_in_flight
        self.policy = policy
        self._retries = retries
        self._creates = creates
        self._transaction: TransactionalProducer | None = None

    @property
    def transactional(self) -> bool:
        """Whether what a task sends becomes visible at once, and only once."""
        return self._worker.transactions is not None

    def connect(self, ex: Execution) -> None:
        """Check that a broker answers, unless this worker has been connected before."""
        try:
            self._worker.producer.connect(self._worker.connection.answer_timeout_s)
        except StreamerError as error:
            raise SendError(str(error)) from None

    def send_all(self, batches: Sequence[Batch], ex: Execution) -> list[SendError | None]:
        """Send all records of batches, then wait for them."""
        record_lists, texts = self._maker.records_of_batches(batches, ex)
        # Of the texts of a config, which one of its messages has none for.
        errors = [
            None if text is None else SendError(make_invalid_rejection(text)) for text in texts
        ]
        starts = [0, *accumulate(map(len, record_lists))]
        failed = self._send_with_retries(
            [record for records in record_lists for record in records], starts, ex
        )
        by_batch: dict[int, dict[int, str]] = {}
        for at, text in failed.items():
            number = bisect_right(starts, at) - 1
            by_batch.setdefault(number, {})[at - starts[number]] = text
        as_batch = self._retries is not None and self._retries.as_batch
        for number, texts_by_place in by_batch.items():
            errors[number] = SendError(
                next(iter(texts_by_place.values())), {} if as_batch else texts_by_place
            )
        # What librdkafka does not even take is no part of the transaction.
        unsendable = [error for error in errors if error is not None and not error.is_rejected]
        if self._transaction is not None and unsendable:
            first = unsendable[0].text
            raise SendAbortedError(f"a record cannot be part of the transaction: {first}")
        return errors

    def _send_with_retries(
        self, records: Sequence[Record], starts: Sequence[int], ex: Execution
    ) -> dict[int, str]:
        """Send records, again if need be; return what has failed, by place.

        Args:
            records: of all batches.
            starts: where each batch begins in them, and where the last one ends.
            ex: the run.
        """
        failed = self._send_once(records, ex)
        if not failed or self._retries is None or self._transaction is not None:
            return failed
        for pause in self._retries.backoff.pauses(ex.elapsed):
            if not pause_own_try(ex, pause):
                break
            again = sorted(failed)
            if self._retries.as_batch:
                whole = {bisect_right(starts, at) - 1 for at in failed}
                again = [at for n in sorted(whole) for at in range(starts[n], starts[n + 1])]
            errors = self._send_once([records[at] for at in again], ex)
            failed = {again[at]: text for at, text in errors.items()}
            if not failed:
                break
        return failed

    def _send_once(self, records: Sequence[Record], ex: Execution) -> dict[int, str]:
        worker, transaction = self._worker, self._transaction
        if not records:
            return {}
        try:
            if worker.topic_creator is not None:
                worker.topic_creator.create({topic for topic, *_ in records})
            producer = (
                worker.producer.get_producer() if transaction is None else transaction.producer
            )
            if transaction is not None:
                transaction.has_sent = True
            return produce(
                producer, records, worker.chooser, ex, lambda: worker.producer.last_error
            )
        except BrokenProducerError as error:
            if transaction is not None:
                raise SendAbortedError(
                    aborted_text(self._maker.topic.static or "", str(error))
                ) from None
            worker.producer.drop(producer)
            raise NotConnectedError(str(error)) from None
        except StreamerError as error:
            raise SendError(str(error)) from None

    def begin(self, ex: Execution) -> bool:
        """Begin a transaction; see `Transactional`."""
        transactions = self._worker.transactions
        assert transactions is not None
        if ex.micro_batch is None:
            raise SendAbortedError("there are no transactions outside of a stream")
        self._transaction = transactions.begin(ex.micro_batch, ex)
        return self._transaction is not None

    def commit(self, ex: Execution) -> None:
        """Commit the transaction; see `Transactional`."""
        transaction, self._transaction = self._transaction, None
        assert transaction is not None and self._worker.transactions is not None
        assert ex.micro_batch is not None
        self._worker.transactions.commit(transaction, ex.micro_batch.number, ex)

    def abort(self) -> None:
        """Take the transaction back; see `Transactional`."""
        transaction, self._transaction = self._transaction, None
        if transaction is not None and self._worker.transactions is not None:
            self._worker.transactions.abort(transaction)

    def preflight(self, stream: str) -> str:
        """Check the same when the stream starts; a broker that is away is waited for."""
        try:
            self._check_writable(stream)
        except KafkaError as error:
            if error.is_final:
                raise
            return str(error)
        return ""

    def probe(self) -> str:
        """Check that a broker answers and the topic may be written, in a transaction if need be."""
        return self._check_writable("")

    def _check_writable(self, stream: str) -> str:
        worker, topic = self._worker, self._maker.topic.static
        cluster = ClusterClient(worker.connection)
        deadline = Deadline()
        try:
            summary = check_writable(cluster, worker.connection, topic, self._creates, deadline)
        finally:
            cluster.close()
        if worker.transactions is not None:
            worker.transactions.preflight(stream, worker.connection.user_text, deadline.remaining_s)
        return summary
