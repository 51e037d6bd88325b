"""The output that `kafka`, `kafka_franz` and `redpanda` are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from streamer.backoff import Backoff
from streamer.errors import StreamerError
from streamer.kafka.clients import Cluster
from streamer.kafka.connection import Connection
from streamer.kafka.creating import Creating
from streamer.kafka.errors import KafkaError
from streamer.kafka.partitioning import Chooser
from streamer.kafka.patience import Patience
from streamer.kafka.producing import BrokenProducerError, Producing, produce
from streamer.kafka.record import Record, RecordMaker
from streamer.kafka.transactions import Held, Transactions, taken_back
from streamer.kafka.writable import writable
from streamer.message import Batch, Execution
from streamer.pipeline.batching import BatchPolicy
from streamer.sending import BulkOutput, NotConnectedError, SendError, TakenBackError
from streamer.sending.rejection import invalid
from streamer.sending.wait_budget import pause_own_try


@dataclass(frozen=True)
class Worker:
    """What an output has for as long as the worker lasts.

    Attributes:
        connection: how Kafka is reached.
        token: returns the token of OAUTHBEARER; None for the connection's own.
        producing: the producer.
        transactions: the producers of transactions; None without them.
        chooser: chooses partitions; None to leave it to librdkafka.
        creating: creates topics that are not there; None to leave it to the brokers.
    """

    connection: Connection
    token: Callable[[], str] | None
    producing: Producing
    transactions: Transactions | None
    chooser: Chooser | None
    creating: Creating | None


@dataclass(frozen=True)
class Retries:
    """How records that fail are sent again before the batch counts as failed.

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
        worker: Worker,
        maker: RecordMaker,
        max_in_flight: int,
        policy: BatchPolicy | None,
        retries: Retries | None = None,
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
        self._held: Held | None = None

    @property
    def transactional(self) -> bool:
        """Whether what a task sends becomes visible at once, and only once."""
        return self._worker.transactions is not None

    def connect(self, ex: Execution) -> None:
        """Look whether a broker answers, unless this worker has been connected before."""
        worker, producing = self._worker, self._worker.producing
        if producing.connected:
            return
        try:
            Cluster(worker.connection, worker.token).identity(worker.connection.patience)
        except KafkaError as error:
            raise SendError(str(error)) from None
        producing.connected = True

    def send_all(self, batches: Sequence[Batch], ex: Execution) -> list[SendError | None]:
        """Send all records of batches, then wait for them."""
        made, texts = self._maker.of_batches(batches, ex)
        # Of the texts of a config, which one of its messages has none for.
        errors = [None if text is None else SendError(invalid(text)) for text in texts]
        starts = [0, *accumulate(map(len, made))]
        failed = self._sent([record for records in made for record in records], starts, ex)
        by_batch: dict[int, dict[int, str]] = {}
        for at, text in failed.items():
            number = bisect_right(starts, at) - 1
            by_batch.setdefault(number, {})[at - starts[number]] = text
        as_batch = self._retries is not None and self._retries.as_batch
        for number, found in by_batch.items():
            errors[number] = SendError(next(iter(found.values())), {} if as_batch else found)
        # What librdkafka does not even take is no part of the transaction.
        spoilt = [error for error in errors if error is not None and not error.is_rejected]
        if self._held is not None and spoilt:
            first = spoilt[0].text
            raise TakenBackError(f"a record cannot be part of the transaction: {first}")
        return errors

    def _sent(
        self, records: Sequence[Record], starts: Sequence[int], ex: Execution
    ) -> dict[int, str]:
        """Send records, again if need be; return what has failed, by place.

        Args:
            records: of all batches.
            starts: where each batch begins in them, and where the last one ends.
            ex: the run.
        """
        failed = self._tried(records, ex)
        if not failed or self._retries is None or self._held is not None:
            return failed
        for pause in self._retries.backoff.pauses(ex.elapsed):
            if not pause_own_try(ex, pause):
                break
            again = sorted(failed)
            if self._retries.as_batch:
                whole = {bisect_right(starts, at) - 1 for at in failed}
                again = [at for n in sorted(whole) for at in range(starts[n], starts[n + 1])]
            found = self._tried([records[at] for at in again], ex)
            failed = {again[at]: text for at, text in found.items()}
            if not failed:
                break
        return failed

    def _tried(self, records: Sequence[Record], ex: Execution) -> dict[int, str]:
        worker, held = self._worker, self._held
        if not records:
            return {}
        try:
            if worker.creating is not None:
                worker.creating.create({topic for topic, *_ in records})
            producer = worker.producing.producer() if held is None else held.producer
            if held is not None:
                held.sent = True
            return produce(producer, records, worker.chooser, ex, lambda: worker.producing.trouble)
        except BrokenProducerError as error:
            if held is not None:
                raise TakenBackError(
                    taken_back(self._maker.topic.static or "", str(error))
                ) from None
            worker.producing.drop(producer)
            raise NotConnectedError(str(error)) from None
        except StreamerError as error:
            raise SendError(str(error)) from None

    def begin(self, ex: Execution) -> bool:
        """Begin a transaction; see `Transactional`."""
        transactions = self._worker.transactions
        assert transactions is not None
        if ex.micro_batch is None:
            raise TakenBackError("there are no transactions outside of a stream")
        self._held = transactions.begin(ex.micro_batch, ex)
        return self._held is not None

    def commit(self, ex: Execution) -> None:
        """Commit the transaction; see `Transactional`."""
        held, self._held = self._held, None
        assert held is not None and self._worker.transactions is not None
        assert ex.micro_batch is not None
        self._worker.transactions.commit(held, ex.micro_batch.number, ex)

    def abort(self) -> None:
        """Take the transaction back; see `Transactional`."""
        held, self._held = self._held, None
        if held is not None and self._worker.transactions is not None:
            self._worker.transactions.abort(held)

    def preflight(self, stream: str) -> str:
        """Look the same when the stream starts; a broker that is away is waited for."""
        try:
            self._look(stream)
        except KafkaError as error:
            if error.final:
                raise
            return str(error)
        return ""

    def probe(self) -> str:
        """Look whether a broker answers, the topic may be written, in a transaction if need be."""
        return self._look("")

    def _look(self, stream: str) -> str:
        worker, topic = self._worker, self._maker.topic.static
        cluster = Cluster(worker.connection, worker.token)
        patience = Patience()
        try:
            found = writable(cluster, worker.connection, topic, self._creates, patience)
        finally:
            cluster.close()
        if worker.transactions is not None:
            worker.transactions.rehearse(stream, worker.connection.who, patience.left)
        return found
