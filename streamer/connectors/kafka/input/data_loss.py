"""Messages that were gone before they were read: errors that end a stream, and what it skips."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Final, NamedTuple

from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.core.errors import StreamerError

_MAX_LISTED: Final = 3


class DataLostError(StreamerError):
    """Raised when messages at the checkpoint's position are gone; names topic and offsets."""


class UnknownLossError(StreamerError):
    """Raised while it is not known whether something is gone, or brokers are changing."""


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


def check_topics(
    name: str, known: Mapping[str, str], now: Mapping[str, str], may_change: bool
) -> None:
    """Check that the topics of a checkpoint are those that are there.

    Args:
        name: the input's.
        known: the identities of the checkpoint's topics.
        now: the identities of those that are read.
        may_change: whether topics may be missing.

    Raises:
        DataLostError: they are not.
    """
    for topic, identity in known.items():
        if topic not in now and not may_change:
            raise DataLostError(
                f"input {name}: the checkpoint has offsets of the topic {topic!r}, which the field "
                "topics no longer names; name it, use another checkpoint, or set "
                "fail_on_data_loss: false"
            )
        if identity and now.get(topic) and identity != now[topic]:
            raise DataLostError(
                f"input {name}: the topic {topic!r} was deleted and recreated, so that the "
                "checkpoint's offsets mean other messages; use another checkpoint, or set "
                "fail_on_data_loss: false to continue from those offsets"
            )


def recreated_topics_text(
    name: str,
    recreated: Iterable[str],
    at: Mapping[PartitionRef, int],
    begins: Mapping[PartitionRef, int],
) -> str:
    """Return the error text for topics that were deleted and made anew under a stream.

    Args:
        name: the input's.
        recreated: the topics.
        at: where partitions stand.
        begins: where they begin now.
    """
    topics = sorted(recreated)
    texts = [
        f"{topic}:{number} stands at {at[topic, number]} and begins anew at "
        f"{begins.get((topic, number), 0)}"
        for topic, number in sorted(at)
        if topic in topics
    ]
    return (
        f"input {name}: the topic {topics[0]!r} was deleted and recreated, so that the "
        f"checkpoint's offsets mean other messages: {_join_some(texts)}; use another checkpoint, "
        "or set fail_on_data_loss: false to continue from those offsets"
    )


def lost_messages_text(
    name: str,
    lost: list[PartitionRef],
    at: Mapping[PartitionRef, int],
    now: Mapping[PartitionRef, int],
    what: str,
) -> str:
    """Return the error text for messages of partitions that are gone.

    Args:
        name: the input's.
        lost: the partitions.
        at: where they stand.
        now: where they begin or end; those that are gone are left out.
        what: which of both: `begins at` or `ends at`.
    """
    texts = [
        f"{topic}:{number} stands at {at[topic, number]} and "
        + (f"{what} {now[topic, number]}" if (topic, number) in now else "is gone")
        for topic, number in lost
    ]
    return (
        f"input {name}: unread messages are gone: {_join_some(texts)}; use another "
        "checkpoint, or set fail_on_data_loss: false to continue with the remaining messages"
    )


def _join_some(texts: list[str]) -> str:
    more = f", and {len(texts) - _MAX_LISTED} more" if len(texts) > _MAX_LISTED else ""
    return f"{'; '.join(texts[:_MAX_LISTED])}{more}"


def skipped_messages(
    stood: Mapping[PartitionRef, int],
    ends: Mapping[PartitionRef, int],
    begins: Mapping[PartitionRef, int],
    recreated: Container[str],
) -> list[SkippedMessages]:
    """Return what a micro-batch leaves out of each partition.

    Spark's source goes on by itself: behind what was deleted, and in a topic that was made anew at
    the offset where it stood, or at the topic's end when that comes before. So what it leaves out
    follows from where a micro-batch begins and ends, and from where the partitions begin by then.

    Args:
        stood: where partitions stand before it.
        ends: where it ends.
        begins: where the partitions begin now; those that are gone are left out.
        recreated: the topics that were deleted and made anew since the micro-batch before.
    """
    result = []
    for (topic, number), at in sorted(stood.items()):
        place = f"{topic}:{number}"
        end, begin = ends.get((topic, number)), begins.get((topic, number))
        messages, text = 0, ""
        if end is None or begin is None:
            text = f"{place} is gone; what came behind {at} is not read"
        elif end < at or topic in recreated:
            messages = max(min(end, at) - begin, 0)
            text = (
                f"{topic} was deleted and recreated; {place}, which stood at {at}, goes on at "
                f"{min(end, at)}, and {messages:,} messages from {begin} on are not read"
            )
        elif begin > at:
            # A micro-batch leaves out no more than it was to read.
            messages = min(begin, end) - at
            text = f"{place} stood at {at} and begins at {begin}"
        if text:
            result.append(SkippedMessages(topic, str(number), messages, begin or 0, text))
    return result
