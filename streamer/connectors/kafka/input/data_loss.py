"""Errors about lost messages, which end a stream: one line, with the setting that goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from streamer.connectors.kafka.cluster.consumer_group import PartitionRef
from streamer.connectors.kafka.input.input_protocol import DataLostError

_MAX_LISTED: Final = 3


def check_topics(
    name: str, known: Mapping[str, str], now: Mapping[str, str], may_change: bool
) -> None:
    """Look whether the topics of a checkpoint are those that are there.

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
                f"input {name}: the topic {topic!r} was deleted and made anew, so that the "
                "checkpoint's offsets mean other messages; use another checkpoint, or set "
                "fail_on_data_loss: false to go on from those offsets"
            )


def recreated_topics_text(
    name: str,
    recreated: Iterable[str],
    at: Mapping[PartitionRef, int],
    begins: Mapping[PartitionRef, int],
) -> str:
    """Say that topics were deleted and made anew under a stream.

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
        f"input {name}: the topic {topics[0]!r} was deleted and made anew, so that the "
        f"checkpoint's offsets mean other messages: {_join_some(texts)}; use another checkpoint, "
        "or set fail_on_data_loss: false to go on from those offsets"
    )


def lost_messages_text(
    name: str,
    lost: list[PartitionRef],
    at: Mapping[PartitionRef, int],
    now: Mapping[PartitionRef, int],
    what: str,
) -> str:
    """Say that messages of partitions are gone.

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
        f"input {name}: messages are gone that were not read: {_join_some(texts)}; use another "
        "checkpoint, or set fail_on_data_loss: false to go on with what is there"
    )


def _join_some(texts: list[str]) -> str:
    more = f", and {len(texts) - _MAX_LISTED} more" if len(texts) > _MAX_LISTED else ""
    return f"{'; '.join(texts[:_MAX_LISTED])}{more}"
