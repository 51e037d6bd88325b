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
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from streamer.backoff import RECONNECT
from streamer.durations import SECOND
from streamer.errors import StreamerError
from streamer.kafka.producing import BrokenProducerError, Producer, made, served
from streamer.kafka.refusals import REFUSED, refusal
from streamer.kafka.rehearsal import rehearse
from streamer.kafka.untaken import told
from streamer.message import Execution, MicroBatch
from streamer.sending import SendError, TakenBackError
from streamer.sending.wait_budget import pause

_PATIENCE: Final = 15.0
_ANSWER: Final = 10.0
_NEVER: Final = -1
_KEPT: Final = 16
"""Producers that a worker keeps: each has threads and connections of its own, and a micro-batch may
have a hundred parts. Making one anew takes less than a tenth of a second."""
# Kafka's and librdkafka's numbers of errors that pass, where librdkafka does not say so by itself.
_PASSING: Final = frozenset(
    {7, 8, 14, 15, 16, 51, 88, -185, -187, -195, -166, -180}
)  # timeouts, brokers that are away, coordinators that move, transactions that still end

Settings = Callable[[], Mapping[str, Any]]


class Held:
    """A producer that has a transactional id.

    Attributes:
        name: the id; the group has the same name.
        producer: the producer.
        number: the newest micro-batch that is committed under the id; -1 for none.
        open: whether a transaction is open.
        sent: whether anything was sent in it.
    """

    def __init__(self, name: str, producer: Producer) -> None:
        """Take a producer that has shut out others of this id."""
        self.name = name
        self.producer = producer
        self.number = _NEVER
        self.open = False
        self.sent = False


class Transactions:
    """The transactional producers of one output in one worker."""

    def __init__(self, producing: Settings, connection: Settings, topic: str) -> None:
        """Set up.

        Args:
            producing: returns librdkafka's settings of a producer.
            connection: the same of a connection alone.
            topic: where records go; the numbers of micro-batches are kept with it.
        """
        self._topic = topic
        self._producing = producing
        self._connection = connection
        self._held: dict[str, Held] = {}
        self._groups: dict[str, Any] = {}
        self._lock = threading.Lock()
        self.trouble = ""
        self._refusal: Any = None

    def rehearse(self, stream: str, who: str, patience: float) -> None:
        """Look whether transactions of a stream will be let in; see `rehearsal`."""
        rehearse(self._producing, self._connection, stream, self._topic, who, patience)

    def begin(self, part: MicroBatch, ex: Execution) -> Held | None:
        """Begin a transaction; wait for as long as no broker answers.

        Returns:
            The producer to send by; None when the part has been committed before.

        Raises:
            SendError: no broker answers, and the run's patience has ended.
            TakenBackError: Kafka refuses.
        """
        from confluent_kafka import KafkaException

        name = f"streamer-{part.stream}-{part.part}"
        pauses = RECONNECT.pauses()
        with self._lock:
            while True:
                try:
                    return self._begun(name, part.number)
                except KafkaException as error:
                    found = error.args[0]
                    self._drop(name)
                    if name in self._groups:
                        self._listen(self._groups[name])
                    if self._refusal is not None:
                        # A consumer waits in vain for a group that it may not see.
                        found, self._refusal = self._refusal, None
                        if name in self._groups:
                            self._leave(name)
                        raise self._refused(name, found) from None
                    if not passes(found):
                        raise self._refused(name, found) from None
                    text = (
                        f"Messages for the topic {self._topic!r} wait: a transaction cannot begin: "
                        f"{self.trouble or told(found)}"
                    )
                    ex.tell("WARN", text, {})
                    if not pause(ex, next(pauses)):
                        raise SendError(text, held=True) from None
                except SendError:
                    raise
                except StreamerError as error:
                    raise TakenBackError(str(error)) from None

    def commit(self, held: Held, number: int, ex: Execution) -> None:
        """Commit a transaction, and with it that the micro-batch of that number is there.

        Raises:
            TakenBackError: it is not known to be there.
        """
        from confluent_kafka import TopicPartition

        producer = held.producer
        if held.sent:
            # An offset is the next that is to be read.
            place = [TopicPartition(self._topic, 0, number + 1)]
            group = self._group(held.name).consumer_group_metadata()
            self._ended(
                held, lambda: producer.send_offsets_to_transaction(place, group, _PATIENCE), ex
            )
        self._ended(held, lambda: producer.commit_transaction(_PATIENCE), ex)
        held.open = False
        if held.sent:
            held.number = number

    def abort(self, held: Held) -> None:
        """Take back what was sent in a transaction; its id is ready for the next one."""
        if not held.open:
            return
        held.open = False
        try:
            with suppress(BrokenProducerError):
                served(held.producer.purge)
            served(lambda: held.producer.abort_transaction(_PATIENCE))
        except BrokenProducerError:
            # The next one of this id ends it.
            self._drop(held.name)

    def _begun(self, name: str, number: int) -> Held | None:
        held = self._held.get(name)
        if held is not None and held.open:
            self.abort(held)
            held = self._held.get(name)
        newest = _NEVER if held is None else self._newest(name)
        if held is None or held.number != newest:
            # Somebody else has had the id since. The number is asked for once he is shut out.
            self._drop(name)
            held = Held(name, self._ready(name))
            held.number = newest = self._newest(name)
            self._keep(held)
        if newest == number:
            return None
        if newest > number:
            raise TakenBackError(
                f"micro-batch {number} comes again, though Kafka has committed {newest} of this "
                "stream: the checkpoint is an older copy; take the newest one, or another directory"
            )
        held.sent = False
        held.producer.begin_transaction()
        held.open = True
        return held

    def _keep(self, held: Held) -> None:
        """Keep a producer for later micro-batches; let the one go that was made first."""
        while len(self._held) >= _KEPT:
            name, oldest = next(iter(self._held.items()))
            self.abort(oldest)
            self._drop(name)
        self._held[held.name] = held

    def _ready(self, name: str) -> Producer:
        producer = made({**self._producing(), "transactional.id": name, "error_cb": self._hear})
        producer.init_transactions(_PATIENCE)
        return producer

    def _hear(self, error: Any) -> None:
        self.trouble = told(error)
        if error.code() in REFUSED:
            self._refusal = error

    def _ended(self, held: Held, step: Callable[[], Any], ex: Execution) -> None:
        """Take a step towards a transaction's end, as often as it may be tried again."""
        from confluent_kafka import KafkaException

        pauses = RECONNECT.pauses()
        while True:
            try:
                step()
                return
            except KafkaException as error:
                found = error.args[0]
                if found.retriable() and not found.txn_requires_abort():
                    text = (
                        f"Messages for the topic {self._topic!r} wait: a transaction cannot end: "
                        f"{told(found)}"
                    )
                    ex.tell("WARN", text, {})
                    ex.sleep(min(next(pauses), SECOND))
                    continue
                if found.txn_requires_abort():
                    self.abort(held)
                else:
                    held.open = False
                    self._drop(held.name)
                if found.code() in REFUSED:
                    raise self._refused(held.name, found) from None
                raise TakenBackError(taken_back(self._topic, told(found))) from None

    def _newest(self, name: str) -> int:
        """Return the newest micro-batch that is committed under a name."""
        from confluent_kafka import KafkaException, TopicPartition

        # It answers when nothing is open any more that could still be committed.
        [place] = self._group(name).committed([TopicPartition(self._topic, 0)], timeout=_ANSWER)
        if place.error is not None:
            raise KafkaException(place.error)
        newest: int = place.offset - 1
        return max(newest, _NEVER)

    def _group(self, name: str) -> Any:
        """Return a consumer that asks for a group, and never joins it.

        librdkafka's admin client could be asked without one, but it ends the process when the
        broker of a group is not ready (its issue 4605).
        """
        if name not in self._groups:
            from confluent_kafka import Consumer

            settings = {"group.id": name, "enable.auto.commit": False, "error_cb": self._hear}
            while len(self._groups) >= _KEPT:
                self._leave(next(iter(self._groups)))
            self._groups[name] = Consumer({**self._connection(), **settings})
        group = self._groups[name]
        self._listen(group)
        return group

    def _listen(self, group: Any) -> None:
        """Take what a consumer has to say: that a group is refused comes as a message."""
        said = group.poll(0)
        if said is not None and said.error() is not None:
            self._hear(said.error())

    def _leave(self, name: str) -> None:
        # Closing waits for brokers that may be away.
        close = self._groups.pop(name).close
        threading.Thread(target=close, daemon=True, name="kafka-close").start()

    def _drop(self, name: str) -> None:
        self._held.pop(name, None)

    def _refused(self, name: str, error: Any) -> TakenBackError:
        return TakenBackError(str(refusal(error, name.rpartition("-")[0], self._topic)))


def passes(error: Any) -> bool:
    """Tell whether one of librdkafka's errors may be over when it is tried again."""
    return bool(error.retriable()) or error.code() in _PASSING


def taken_back(topic: str, why: str) -> str:
    """Return what is said of a transaction that has come to nothing."""
    return (
        f"the transaction of the topic {topic!r} is taken back, and the micro-batch comes again: "
        f"{why}"
    )
