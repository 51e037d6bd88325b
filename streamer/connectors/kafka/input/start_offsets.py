"""Start offsets of a stream: those that its group has committed, else those of the config.

Once begun, the checkpoint rules. What a start has chosen is remembered, so that a stream that is
restarted before its first micro-batch begins at the same messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from streamer.connectors.kafka.cluster.cluster_client import ClusterClient
from streamer.connectors.kafka.cluster.errors import KafkaError
from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.cluster.topic_selection import EARLIEST, LATEST, TopicSelection
from streamer.core.durations import MILLISECOND
from streamer.core.timestamps import parse_rfc3339

_MS: Final = re.compile(r"[0-9]{1,18}")
_MAX_LISTED: Final = 5


class StartRule(NamedTuple):
    """Start offsets of partitions that were never read.

    Attributes:
        at: `earliest`, `latest`, `committed` (nowhere: the group must have read them) or `time`.
        ms: with `time`: the first message of this Unix time or later.
    """

    at: str
    ms: int = 0

    @property
    def number(self) -> int:
        """The number that stands for the rule in offsets; `EARLIEST` when it is neither of both."""
        return LATEST if self.at == "latest" else EARLIEST


def read_start(text: str) -> StartRule | None:
    """Return what a field `start_offset` says: a word, Unix milliseconds, or an RFC 3339 time.

    None when it is none of these.
    """
    if text in ("earliest", "latest", "committed"):
        return StartRule(text)
    if _MS.fullmatch(text):
        return StartRule("time", int(text))
    try:
        return StartRule("time", parse_rfc3339(text).ns // MILLISECOND)
    except ValueError:
        return None


def choose_start_offsets(
    cluster: ClusterClient,
    places: Iterable[PartitionRef],
    selection: TopicSelection,
    start: StartRule,
    committed: Mapping[PartitionRef, int],
    timeout_s: float,
) -> dict[PartitionRef, int]:
    """Choose where each partition is begun.

    A committed offset that is no longer there counts as none, as in Kafka's own clients.

    Returns:
        An offset, or `EARLIEST`, which stays right while old messages go.

    Raises:
        KafkaError: with `committed`, a partition that the group has not read; or no answer.
    """
    every = list(places)
    explicit = {
        (topic, number): at
        for topic, partitions in selection.partitions.items()
        for number, at in partitions.items()
        if at >= 0
    }
    begins = cluster.begin_offsets(every, timeout_s) if committed or explicit else {}
    ends = cluster.end_offsets(every, timeout_s)
    continued = {
        place: at
        for place, at in committed.items()
        if begins.get(place, 0) <= at <= ends.get(place, at)
    }
    offsets = {place: at for place, at in explicit.items() if place not in continued} | continued
    rest = [place for place in every if place not in offsets]
    return offsets | _offsets_by_rule(cluster, rest, selection, start, ends, timeout_s)


def _offsets_by_rule(
    cluster: ClusterClient,
    places: list[PartitionRef],
    selection: TopicSelection,
    start: StartRule,
    ends: Mapping[PartitionRef, int],
    timeout_s: float,
) -> dict[PartitionRef, int]:
    if start.at == "committed" and places and not selection.partitions:
        listed = ", ".join(f"{topic}:{number}" for topic, number in sorted(places)[:_MAX_LISTED])
        raise KafkaError(
            f"the consumer group has committed no offset for {listed}"
            f"{', …' if len(places) > _MAX_LISTED else ''}, and start_offset is committed; commit "
            "one, or use earliest or latest",
            is_final=True,
        )
    if start.at == "time":
        offsets = cluster.offsets_at(places, start.ms, timeout_s)
        return {
            place: offsets[place] if offsets.get(place, -1) >= 0 else ends.get(place, EARLIEST)
            for place in places
        }
    begun = {}
    for place in places:
        offset = selection.partitions.get(place[0], {}).get(place[1], start.number)
        begun[place] = ends.get(place, EARLIEST) if offset == LATEST else EARLIEST
    return begun


def nest_offsets(offsets: Mapping[PartitionRef, int]) -> dict[str, dict[str, int]]:
    """Return offsets by topic, then partition as text."""
    result: dict[str, dict[str, int]] = {}
    for (topic, number), at in sorted(offsets.items()):
        result.setdefault(topic, {})[str(number)] = at
    return result


def flatten_offsets(offsets: Mapping[str, Mapping[str, int]]) -> dict[PartitionRef, int]:
    """Return what `nested` has made again by partition."""
    return {
        (topic, int(n)): at for topic, of_topic in offsets.items() for n, at in of_topic.items()
    }
