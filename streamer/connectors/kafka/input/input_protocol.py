"""Protocol between the engine and a Kafka input.

Spark's own source reads the messages, and keeps its offsets in the checkpoint. This says with which
options, whether there is anything to read, and tells the consumer group what is safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from streamer.core.errors import StreamerError

Offsets = Mapping[str, Mapping[str, int]]
"""Positions as Spark's Kafka source writes them, `{"topic": {"0": 123}}`: the next to be read."""


class DataLostError(StreamerError):
    """Raised when messages at the checkpoint's position are gone; names topic and offsets."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Messages of the topics beyond the planned offsets.

    Attributes:
        waiting: messages beyond the offsets that were given; transactions' marks count with them.
        more: more wait than one micro-batch takes.
        ends: the ends of all partitions.
    """

    waiting: int
    more: bool
    ends: Offsets


@dataclass(frozen=True, slots=True)
class MetadataSettings:
    """Settings of the metadata of messages. They can be pickled.

    Attributes:
        key_bytes: `kafka_key` is bytes, not a string, as with `redpanda`.
        multi_header: a header's value is the list of all values of that name.
        named_first: a header cannot take the place of `kafka_key` and its like, as with `kafka`.
    """

    key_bytes: bool = False
    multi_header: bool = False
    named_first: bool = False


class SkippedMessages(NamedTuple):
    """Messages of a partition that a micro-batch was to read, and does not.

    Attributes:
        topic: of the partition.
        partition: its number, as text.
        messages: how many; 0 when nobody can tell.
        begins: where the partition begins now: several micro-batches may lie before it.
        text: what happened, with offsets, in one line.
    """

    topic: str
    partition: str
    messages: int
    begins: int
    text: str


@runtime_checkable
class OpenKafkaInput(Protocol):
    """An opened Kafka input. It can be pickled; each process opens a client when it asks first.

    What asks a broker takes `request_timeout_overhead` (10 s where there is no such field) at most.
    """

    @property
    def metadata(self) -> MetadataSettings:
        """The settings of the metadata of messages."""

    @property
    def lag_metric(self) -> str:
        """The gauge of `lag`, with the labels topic and partition; it is empty for none."""

    @property
    def lag_period(self) -> int:
        """Interval at which the gauge is set, ns."""

    @property
    def lost_metric(self) -> str:
        """The counter of messages that were gone before they were read, with the same labels."""

    @property
    def commit_period(self) -> int:
        """Interval at which offsets are committed to the group, ns."""

    @property
    def group(self) -> str:
        """The consumer group that hears what is safe; empty for none."""

    @property
    def bound(self) -> int | None:
        """The most messages of a micro-batch as the config says; None when it does not."""

    def spark_options(self, max_messages: int) -> dict[str, str]:
        """Return the options of `spark.readStream.format("kafka")`. They hold secrets.

        Args:
            max_messages: messages of a micro-batch at most, when the config does not say fewer.
        """

    def jvm_properties(self) -> dict[str, str]:
        """Return the system properties that the JVM must have before the source is made."""

    def backlog(self, known: Offsets) -> Backlog:
        """Ask how much waits beyond the newest micro-batch; made to be called often.

        Args:
            known: where the newest micro-batch that was planned ends; what is not in it stands
                where the stream begins to read it. Empty before there is any.

        Raises:
            DataLostError: a partition ends before what is known of it, begins behind it, is gone,
                or is one of another topic of the same name; not when `fail_on_data_loss` is off.
            StreamerError: no broker answers in time, or it refuses.
        """

    def lost_text(self, known: Offsets) -> str | None:
        """Return which messages were deleted before they were read, in one line; None for none.

        For when Spark fails and names no reason of use. It names topic, partition, offsets and the
        setting that goes on all the same.
        """

    def find_skipped(self, since: Offsets, ends: Offsets) -> list[SkippedMessages]:
        """Return what is gone of the micro-batch that is about to run, partition by partition.

        Nothing while `fail_on_data_loss` is on, since the stream ends then, nor when no broker
        answers.

        Args:
            since: where the micro-batch before it ends; empty for the first.
            ends: where it ends.
        """

    def commit(self, ends: Offsets) -> str | None:
        """Tell the group that everything before these offsets is safe. Call it in a thread.

        Returns:
            None, or one line to be logged why the group did not take it. Nothing depends on it;
            the next call says it again.
        """

    def reachability_problem(self) -> str | None:
        """Return None when brokers answer and all is well, else why not, in one line."""

    def connection_problem(self) -> str | None:
        """Return None while brokers answer, else why they do not, in one line.

        Cheap enough to be asked each second; it takes three seconds at most, and has a client of
        its own, which nothing else holds up.
        """

    def consumer_lag(self, ends: Offsets) -> dict[tuple[str, str], int]:
        """Return, by topic and partition, how many messages the newest standing is ahead of `ends`.

        Empty before `standing` was asked in this process.
        """

    def mean_message_size(self) -> int | None:
        """Return the mean size of recent messages in bytes, keys and headers with it.

        None when there are none, or when it cannot be told.
        """

    def close(self) -> None:
        """Let the clients of this process go."""


def is_kafka(source: Any) -> bool:
    """Return whether an opened input is read by Spark's Kafka source."""
    return isinstance(source, OpenKafkaInput)
