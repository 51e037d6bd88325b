"""A Kafka input inside of an input that reads it on the driver, such as `sequence`.

It has the positions of a `KafkaRangeSource`, which go into the spool with the messages. Nobody
plans for it, so it waits for brokers and commits to its group by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from streamer.connectors.kafka.input.data_loss import DataLostError
from streamer.connectors.kafka.input.kafka_source import KafkaSource
from streamer.connectors.kafka.input.positions import KafkaPosition
from streamer.connectors.kafka.input.range_source import KafkaRangeSource
from streamer.connectors.kafka.input.start_offsets import nest_offsets
from streamer.core.errors import StreamerError
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.input.replayable import LatestOffset, Limit, Offset

_POLL_INTERVAL_S: Final = 0.25
"""Seconds between two questions for the ends of partitions while there is nothing new."""


class DriverKafkaSource(KafkaRangeSource):
    """An opened Kafka input that the driver reads."""

    has_partitions: ClassVar = False
    _progress: _Progress

    def __init__(
        self,
        source: KafkaSource,
        context: InputContext,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the opened input.

        Args:
            source: the input.
            context: logs, and is told what is waited for.
            now: a clock that never runs backwards, s.
        """
        super().__init__(source, mean_size=source.mean_message_size() or 0)
        progress = _Progress(source, context, now)
        object.__setattr__(self, "_progress", progress)
        # Threads and connections do not outlive the stream; neither may be waited for.
        context.on_stop(
            lambda: threading.Thread(target=progress.close, daemon=True, name="kafka-last").start()
        )

    def latest_offset(self, start: Offset, now: int, limit: Limit) -> LatestOffset:
        """Return how far to read; the position itself while no broker answers."""
        if not self._progress.begin_poll():
            return LatestOffset(start, 0)
        try:
            latest = super().latest_offset(start, now, limit)
        except DataLostError:
            raise
        except StreamerError as error:
            self._progress.note_outage(str(error))
            return LatestOffset(start, 0)
        self._progress.note_answer(start, latest.offset)
        return latest

    def on_committed(self, end: Offset) -> None:
        """Commit to the consumer group what is safe on the disk, when it is time."""
        self._progress.commit(end)


class _Progress:
    """The state of an input between two questions for its ends."""

    def __init__(
        self, source: KafkaSource, context: InputContext, now: Callable[[], float]
    ) -> None:
        self._source = source
        self._context = context
        self._now = now
        self._polled_at = self._committed_at = float("-inf")
        self._committed: Offset | None = None
        self._safe: Offset | None = None
        self._problem = self._failure = ""

    def begin_poll(self) -> bool:
        """Return whether brokers are to be asked now; commit what was not due before."""
        if self._safe is not None:
            self.commit(self._safe)
        return self._now() - self._polled_at >= _POLL_INTERVAL_S

    def note_answer(self, start: Offset, end: Offset) -> None:
        if end == start:
            self._polled_at = self._now()
        if self._problem:
            self._problem = ""
            self._context.report_waiting("")
            self._context.log("INFO", "Brokers answer again", {})
        if end != start:
            before, after = (nest_offsets(KafkaPosition.from_offset(at).at) for at in (start, end))
            for one in self._source.find_skipped(before, after):
                self._context.log("WARN", f"Messages are gone that were not read: {one.text}", {})

    def note_outage(self, problem: str) -> None:
        self._polled_at = self._now()
        if not self._problem:
            self._context.log("WARN", problem, {})
        self._problem = problem
        self._context.report_waiting(problem)

    def commit(self, end: Offset, is_last: bool = False) -> None:
        self._safe, source = end, self._source
        due = is_last or self._now() - self._committed_at >= source.commit_period / 1e9
        if not source.group or end == self._committed or not due:
            return
        self._committed_at = self._now()
        position = KafkaPosition.from_offset(end).at
        offsets = nest_offsets({place: at for place, at in position.items() if at >= 0})
        failure = source.commit(offsets) or ""
        if not failure:
            self._committed = end
        elif failure != self._failure:
            self._context.log("WARN", failure, {})
        self._failure = failure

    def close(self) -> None:
        if self._safe is not None:
            self.commit(self._safe, is_last=True)
        self._source.close()


@dataclass(frozen=True)
class DriverKafkaInput:
    """A Kafka input, not opened, inside of an input that reads it on the driver.

    Attributes:
        input: the input.
    """

    input: Any

    def open(self, context: InputContext) -> DriverKafkaSource:
        """Check that the topics can be read, and choose where to begin; see `OpenableInput`."""
        return DriverKafkaSource(self.input.open(context), context)

    def probe(self) -> str:
        """Check that the topics could be read; see `SupportsProbe`."""
        text: str = self.input.probe()
        return text
