"""The Kafka side of a stream: what its driver does for its inputs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Any, Final

from streamer.connectors.kafka.input.message_metadata import NeededMetadata
from streamer.connectors.kafka.input.opened_input import Offsets
from streamer.core.errors import StreamerError
from streamer.engine.driver.failure_diagnosis import NO_DIAGNOSIS, Diagnosis
from streamer.engine.driver.kafka_connection import CountConnection, KafkaConnections
from streamer.engine.driver.kafka_offset_committer import KafkaOffsetCommitter, SetGauge
from streamer.engine.planner.checkpoint_path import CheckpointPath
from streamer.engine.planner.kafka_inputs import (
    StreamKafkaInput,
    list_range_sources,
    replace_range_sources,
)
from streamer.engine.planner.offset_log import read_newest_planned, read_planned
from streamer.engine.planner.planner_channels import PlannerChannel
from streamer.engine.report.component_errors import ComponentFailure
from streamer.engine.report.metric_labels import Labels
from streamer.plan import Plan
from streamer.plan.metadata_read import find_read_metadata
from streamer.sdk.input.replayable import Limit, ReplayableSource
from streamer.spark.checkpoint.reader_switch import take_over_kafka

_KAFKA_ERROR: Final = re.compile(r"KafkaException|has given nothing from offset")
_DATA_LOSS_ERROR: Final = "unread messages are gone"
_MAX_RECONNECT_PAUSE_S: Final = 10.0
_LOG_INTERVAL_S: Final = 60.0

LogLine = Callable[[str, str, Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class InputReport:
    """Callbacks by which a stream's Kafka inputs report.

    Attributes:
        set_gauge: sets a gauge of the input, by its name and labels.
        count: adds one to a counter of the input, by its name.
        count_read: returns how many messages of the micro-batch in hand have been read.
        log: takes log lines.
    """

    set_gauge: SetGauge
    count: CountConnection
    count_read: Callable[[], int]
    log: LogLine


class KafkaDriver:
    """The Kafka inputs of one stream, on its driver."""

    def __init__(
        self,
        children: Sequence[StreamKafkaInput],
        plan: Plan,
        spark: CheckpointPath,
        signals: PlannerChannel,
        report: InputReport,
        start_offsets: Sequence[Offsets] = (),
    ) -> None:
        """Begin to look after them.

        Args:
            children: the inputs.
            plan: the stream's plan.
            spark: Spark's checkpoint directory.
            signals: how the process that plans micro-batches is talked to.
            report: takes log lines and figures of the input.
            start_offsets: where a fresh checkpoint goes on from, for each input; none for the
                beginning.
        """
        places: list[Offsets] = [*start_offsets, *({} for _ in children)]
        self.children = tuple(
            replace(_limit_batch(child, plan.limit_bytes), start_offsets=at)
            for child, at in zip(children, places, strict=False)
        )
        self._plan = plan
        self._spark = spark
        self._signals = signals
        self._log = report.log
        self._trouble = ""
        # The reason why brokers do not answer while no query runs, which the planner cannot report.
        self._outage: str | None = None
        self._logged_at = 0.0
        self._offset_committer = KafkaOffsetCommitter(
            self.children,
            spark,
            report.set_gauge,
            report.log,
            report.count_read,
            count=report.count,
        )
        self._connections = KafkaConnections(self.children, report.count)

    def prepare_source(self, source: ReplayableSource) -> ReplayableSource:
        """Return the input with what the stream needs of its Kafka inputs.

        Where Spark's own source read Kafka before, it goes on from where that has ended.

        Raises:
            StreamerError: a micro-batch that was begun can be ended by that source only.
        """
        if take_over_kafka(self._spark, self._plan, source, self.children):
            self._log("INFO", "The checkpoint continues with the workers' reader of Kafka", {})
        needed = NeededMetadata(find_read_metadata(self._plan))
        ours = [
            replace(
                one,
                needed=needed,
                # Without windows a task's results leave it: each partition stays in its order.
                is_split=self._plan.window is not None,
                max_messages=child.max_messages,
                start_offsets=child.start_offsets,
            )
            for one, child in zip(list_range_sources(source), self.children, strict=True)
        ]
        return replace_range_sources(source, ours)

    def begin_query(self) -> None:
        """Note where the newest micro-batch ends, before the query begins."""
        self._outage = None
        newest = read_newest_planned(self._spark)
        if newest is not None:
            self._offset_committer.note_end(newest.number, newest.ends)

    def batch_started(self, number: int) -> None:
        """Note the end of a micro-batch that is about to run, for the consumer groups."""
        self._offset_committer.batch_started(number, read_planned(self._spark, number).ends)

    def batch_delivered(self) -> None:
        """Note that the micro-batch has run."""
        self._offset_committer.batch_delivered()

    @property
    def outage(self) -> str:
        """The reason why brokers do not answer now; empty while they do."""
        return self._connections.problem or self._planner_trouble()[0]

    @property
    def data_loss(self) -> str:
        """Lost messages that were to be read, so that the stream has to end; empty for none."""
        text, is_lost = self._planner_trouble()
        return text if is_lost else self._offset_committer.data_loss

    def _planner_trouble(self) -> tuple[str, bool]:
        """Return why no micro-batch starts, and whether that is for good."""
        if self._outage is not None:
            return self._outage, False
        hints = self._signals.planner.read()
        return hints.trouble, hints.is_lost

    def check(self, trouble: Diagnosis, place: Labels, abandon: Callable[[], None]) -> Diagnosis:
        """Return what is wrong with the stream, now that the brokers have been looked after.

        Args:
            trouble: what was wrong with it.
            place: label and path of the input.
            abandon: stops the query in the middle of a micro-batch.

        Raises:
            StreamerError: what was to be read is gone.
        """
        if self.data_loss:
            # A task may wait for it for a minute, in vain.
            abandon()
            raise StreamerError(self.data_loss)
        news = self.poll_trouble()
        if news is None and not trouble.text:
            # A micro-batch that was on its way may have been delivered in the outage.
            news = self.outage
        if news is None:
            return trouble
        return Diagnosis(news, place) if news else NO_DIAGNOSIS

    def poll_trouble(self) -> str | None:
        """Return what is wrong with a broker now, "" when nothing is any more; None for no news."""
        text = self.outage
        before, self._trouble = self._trouble, text
        now = time.monotonic()
        if text and (not before or now - self._logged_at >= _LOG_INTERVAL_S):
            self._log("ERROR", f"Waiting for Kafka: {text}", {})
            self._logged_at = now
        if before and not text:
            self._log("INFO", "Kafka answers again", {})
        return None if text == before else text

    def wait_until_reachable(self, error: str, stopping: Event) -> bool:
        """Wait, after the query has failed, until all brokers answer.

        Args:
            error: what Spark says of the failure.
            stopping: ends the wait.

        Returns:
            Whether the failure was a broker's: no micro-batch can be blamed for it.

        Raises:
            StreamerError: what was to be read is gone.
        """
        text, is_lost = self._planner_trouble()
        if is_lost:
            raise StreamerError(text)
        if _DATA_LOSS_ERROR in error:
            self._raise_data_loss(error)
        pause, waited = 0.25, False
        while (text := self._find_unreachable()) and not stopping.is_set():
            if self._offset_committer.data_loss:
                raise StreamerError(self._offset_committer.data_loss)
            self._outage = text
            self.poll_trouble()
            waited = True
            stopping.wait(pause)
            pause = min(pause * 2, _MAX_RECONNECT_PAUSE_S)
        self._outage = ""
        return waited or _KAFKA_ERROR.search(error) is not None

    def close(self) -> None:
        """Commit to the groups what is safe, when the query has ended."""
        self._connections.close()
        self._offset_committer.close()

    def _find_unreachable(self) -> str:
        reasons = (child.input.reachability_problem() for child in self.children)
        return next((text for text in reasons if text is not None), "")

    def _raise_data_loss(self, error: str) -> None:
        """Raise what was lost, in our words where the brokers tell what it was."""
        for places in self._newest_offsets():
            for child, ends in zip(self.children, places, strict=True):
                loss = child.input.lost_text(ends)
                if loss is not None:
                    raise StreamerError(loss)
        if (failure := ComponentFailure.from_error_text(error)) is not None:
            raise StreamerError(failure.text)
        raise StreamerError(f"Kafka no longer has the messages to read: {error}")

    def _newest_offsets(self) -> Iterator[Sequence[Offsets]]:
        """Return where the newest micro-batch begins, which is what fails, and where it ends."""
        newest = read_newest_planned(self._spark)
        before = newest.number - 1 if newest else -1
        if (self._spark / "offsets" / str(before)).exists():
            yield read_planned(self._spark, before).ends
        else:
            yield [child.start_offsets for child in self.children]
        if newest:
            yield newest.ends


def _limit_batch(child: StreamKafkaInput, size: int) -> StreamKafkaInput:
    """Return an input that takes so many messages at most as are about `size` bytes."""
    mean_size = child.input.mean_message_size()
    max_messages = (
        Limit().messages if not mean_size else max(min(Limit().messages, size // mean_size), 1)
    )
    bound = child.input.bound
    return replace(child, max_messages=max_messages if bound is None else min(bound, max_messages))
