"""The Kafka side of a stream: what its driver does for the inputs that Spark reads."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Event
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from streamer.engine.beside import KafkaChild, newest_planned, planned
from streamer.engine.kafka_connection import CountConnection, KafkaConnections
from streamer.engine.kafka_keeper import KafkaKeeper, SetGauge
from streamer.engine.kafka_rows import Wanted
from streamer.engine.location import Location
from streamer.engine.places import Labels
from streamer.engine.signals import Signals
from streamer.engine.troubles import NO_TROUBLE, Trouble
from streamer.errors import StreamerError
from streamer.kafka.reading import Offsets
from streamer.plan import Plan
from streamer.plan.metadata_read import metadata_read
from streamer.source.replayable import Limit
from streamer.spark.kafka import kafka_rows, settings
from streamer.spark.micro_batch import tell_plan

_OF_KAFKA: Final = re.compile(r"org\.apache\.kafka\.|KafkaException|kafka\.\w*TimeoutException")
_LOST: Final = re.compile(r"KAFKA_DATA_LOSS|failOnDataLoss|KafkaIllegalStateException")
_LONGEST: Final = 10.0
_SELDOM: Final = 60.0

LogLine = Callable[[str, str, Mapping[str, Any]], None]


class KafkaSide:
    """The Kafka inputs of one stream, on its driver."""

    def __init__(
        self,
        children: Sequence[KafkaChild],
        plan: Plan,
        spark: Location,
        signals: Signals,
        gauge: SetGauge,
        count: CountConnection,
        read: Callable[[], int],
        log: LogLine,
        begins: Sequence[Offsets] = (),
    ) -> None:
        """Begin to look after them.

        Args:
            children: the inputs.
            plan: the stream's plan.
            spark: Spark's checkpoint directory.
            signals: how the process that plans micro-batches is talked to.
            gauge: sets a gauge, by its name and labels.
            count: adds one to a counter of the input, by its name.
            read: returns how many messages of the micro-batch in hand have been read.
            log: takes log lines.
            begins: where a fresh checkpoint goes on from, for each input; none for the beginning.
        """
        places: list[Offsets] = [*begins, *({} for _ in children)]
        self.children = tuple(
            replace(_bounded(child, plan.limit_bytes), begins=at)
            for child, at in zip(children, places, strict=False)
        )
        self._begins = begins
        self.wanted = Wanted(metadata_read(plan))
        self._spark = spark
        self._signals = signals
        self._log = log
        self._trouble = ""
        self._said_at = 0.0
        self._keeper = KafkaKeeper(self.children, spark, gauge, log, read, count=count)
        self._connections = KafkaConnections(self.children, count)

    def frames(self, session: SparkSession, plan: Plan) -> list[DataFrame]:
        """Return what stage 1 makes of each, for a query in a session of the stream's own."""
        for name, value in settings(self._mean()).items():
            session.conf.set(name, value)
        properties = session._jvm.java.lang.System
        for child in self.children:
            for name, value in child.reading.jvm_properties().items():
                properties.setProperty(name, value)
        newest = newest_planned(self._spark)
        if newest is not None:
            self._signals.set_known(newest.ends)
            self._keeper.knows(newest.number, newest.ends)
        elif self._begins:
            self._signals.set_known(self._begins)
        return kafka_rows(session, plan, self.children, self.wanted)

    def plans(self, batch: DataFrame, number: int) -> None:
        """Tell tasks, the planner and the groups of a micro-batch that is about to run.

        It is called by the thread whose local properties tasks are given.
        """
        found = planned(self._spark, number)
        tell_plan(batch, found)
        self._signals.set_known(found.ends)
        self._keeper.plans(number, found.ends)

    def delivered(self) -> None:
        """Hear that the micro-batch has run."""
        self._keeper.delivered()

    @property
    def outage(self) -> str:
        """Why brokers do not answer now; empty while they do."""
        return self._connections.problem or self._signals.trouble()[0]

    @property
    def lost(self) -> str:
        """What is gone that was to be read, so that the stream has to end; empty for nothing."""
        text, lost = self._signals.trouble()
        return text if lost else self._keeper.lost

    def look(self, trouble: Trouble, place: Labels, abandon: Callable[[], None]) -> Trouble:
        """Return what is wrong with the stream, now that the brokers have been looked after.

        Args:
            trouble: what was wrong with it.
            place: label and path of the input.
            abandon: stops the query in the middle of a micro-batch.

        Raises:
            StreamerError: what was to be read is gone.
        """
        if self.lost:
            # A task may wait for it for a minute, in vain.
            abandon()
            raise StreamerError(self.lost)
        news = self.trouble()
        if news is None and not trouble.text:
            # A micro-batch that was on its way may have been delivered in the outage.
            news = self.outage
        if news is None:
            return trouble
        return Trouble(news, place) if news else NO_TROUBLE

    def trouble(self) -> str | None:
        """Return what is wrong with a broker now, "" when nothing is any more; None for no news."""
        text = self.outage
        before, self._trouble = self._trouble, text
        now = time.monotonic()
        if text and (not before or now - self._said_at >= _SELDOM):
            self._log("ERROR", f"Waiting for Kafka: {text}", {})
            self._said_at = now
        if before and not text:
            self._log("INFO", "Kafka answers again", {})
        return None if text == before else text

    def recovers(self, error: str, stopping: Event) -> bool:
        """Wait, after the query has failed, until all brokers answer.

        Args:
            error: what Spark says of the failure.
            stopping: ends the wait.

        Returns:
            Whether the failure was a broker's: no micro-batch can be blamed for it.

        Raises:
            StreamerError: what was to be read is gone.
        """
        text, lost = self._signals.trouble()
        if lost:
            raise StreamerError(text)
        if _LOST.search(error):
            self._lost(error)
        pause, waited = 0.25, False
        while (text := self._unreachable()) and not stopping.is_set():
            if self._keeper.lost:
                raise StreamerError(self._keeper.lost)
            self._signals.set_trouble(text)
            self.trouble()
            waited = True
            stopping.wait(pause)
            pause = min(pause * 2, _LONGEST)
        self._signals.set_trouble("")
        return waited or _OF_KAFKA.search(error) is not None

    def close(self) -> None:
        """Tell the groups what is safe, when the query has ended."""
        self._connections.close()
        self._keeper.close()

    def _mean(self) -> int:
        return max(child.reading.message_size() or 0 for child in self.children)

    def _unreachable(self) -> str:
        found = (child.reading.reachable() for child in self.children)
        return next((text for text in found if text is not None), "")

    def _lost(self, error: str) -> None:
        """Raise what was lost, in our words where the brokers tell what it was."""
        for places in self._places():
            for child, ends in zip(self.children, places, strict=True):
                lost = child.reading.lost(ends)
                if lost is not None:
                    raise StreamerError(lost)
        found = re.search(r"(?:KAFKA_DATA_LOSS|IllegalStateException)[^\n]*", error)
        raise StreamerError(
            f"Kafka no longer has what is to be read: {found[0] if found else error}; set "
            "fail_on_data_loss: false on the input to go on with what is there"
        )

    def _places(self) -> Iterator[Sequence[Offsets]]:
        """Return where the newest micro-batch begins, which is what fails, and where it ends."""
        newest = newest_planned(self._spark)
        before = newest.number - 1 if newest else -1
        if (self._spark / "offsets" / str(before)).exists():
            yield planned(self._spark, before).ends
        else:
            yield [child.begins for child in self.children]
        if newest:
            yield newest.ends


def _bounded(child: KafkaChild, size: int) -> KafkaChild:
    """Return an input that takes so many messages at most as are about `size` bytes."""
    mean = child.reading.message_size()
    most = Limit().messages if not mean else max(min(Limit().messages, size // mean), 1)
    bound = child.reading.bound
    return replace(child, most=most if bound is None else min(bound, most))
