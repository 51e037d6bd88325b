"""Offsets that a stream skips because their messages were gone before they were read.

Spark's source goes on by itself: behind what was deleted, and in a topic that was made anew at the
offset where it stood, or at the topic's end when that comes before. So what it leaves out follows
from where a micro-batch begins and ends, and from where the partitions begin by then.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from streamer.connectors.kafka.cluster.consumer_group import PartitionRef
from streamer.connectors.kafka.input.input_protocol import SkippedMessages


def skipped_messages(
    stood: Mapping[PartitionRef, int],
    ends: Mapping[PartitionRef, int],
    begins: Mapping[PartitionRef, int],
    recreated: Container[str],
) -> list[SkippedMessages]:
    """Return what a micro-batch leaves out of each partition.

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
                f"{topic} was deleted and made anew; {place}, which stood at {at}, goes on at "
                f"{min(end, at)}, and {messages:,} messages from {begin} on are not read"
            )
        elif begin > at:
            # A micro-batch leaves out no more than it was to read.
            messages = min(begin, end) - at
            text = f"{place} stood at {at} and begins at {begin}"
        if text:
            result.append(SkippedMessages(topic, str(number), messages, begin or 0, text))
    return result
