"""Where a stream begins: at what its group has committed, else where the config says.

Once begun, the checkpoint rules. What a start has chosen is remembered, so that a stream that is
restarted before its first micro-batch begins at the same messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from streamer.durations import MILLISECOND
from streamer.kafka.clients import Cluster
from streamer.kafka.errors import KafkaError
from streamer.kafka.groups import Place
from streamer.kafka.topics import EARLIEST, LATEST, Selection
from streamer.timestamps import parse_rfc3339

_MS: Final = re.compile(r"[0-9]{1,18}")
_LISTED: Final = 5


class Start(NamedTuple):
    """Where partitions are begun that nobody has read.

    Attributes:
        at: `earliest`, `latest`, `committed` (nowhere: the group must have read them) or `time`.
        ms: with `time`: the first message of this Unix time or later.
    """

    at: str
    ms: int = 0

    @property
    def number(self) -> int:
        """What stands for it in offsets; `EARLIEST` when it is neither of both."""
        return LATEST if self.at == "latest" else EARLIEST


def read_start(text: str) -> Start | None:
    """Return what a field `start_offset` says: a word, Unix milliseconds, or an RFC 3339 time.

    None when it is none of these.
    """
    if text in ("earliest", "latest", "committed"):
        return Start(text)
    if _MS.fullmatch(text):
        return Start("time", int(text))
    try:
        return Start("time", parse_rfc3339(text).ns // MILLISECOND)
    except ValueError:
        return None


def starting_offsets(
    cluster: Cluster,
    places: Iterable[Place],
    selection: Selection,
    start: Start,
    committed: Mapping[Place, int],
    patience: float,
) -> dict[Place, int]:
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
        for topic, wanted in selection.partitions.items()
        for number, at in wanted.items()
        if at >= 0
    }
    begins = cluster.begins(every, patience) if committed or explicit else {}
    ends = cluster.ends(every, patience)
    kept = {
        place: at
        for place, at in committed.items()
        if begins.get(place, 0) <= at <= ends.get(place, at)
    }
    chosen = {place: at for place, at in explicit.items() if place not in kept} | kept
    rest = [place for place in every if place not in chosen]
    return chosen | _by_rule(cluster, rest, selection, start, ends, patience)


def _by_rule(
    cluster: Cluster,
    places: list[Place],
    selection: Selection,
    start: Start,
    ends: Mapping[Place, int],
    patience: float,
) -> dict[Place, int]:
    if start.at == "committed" and places and not selection.partitions:
        listed = ", ".join(f"{topic}:{number}" for topic, number in sorted(places)[:_LISTED])
        raise KafkaError(
            f"the consumer group has committed no offset for {listed}"
            f"{', …' if len(places) > _LISTED else ''}, and start_offset is committed; commit one, "
            "or use earliest or latest",
            final=True,
        )
    if start.at == "time":
        found = cluster.at(places, start.ms, patience)
        return {
            place: found[place] if found.get(place, -1) >= 0 else ends.get(place, EARLIEST)
            for place in places
        }
    begun = {}
    for place in places:
        asked = selection.partitions.get(place[0], {}).get(place[1], start.number)
        begun[place] = ends.get(place, EARLIEST) if asked == LATEST else EARLIEST
    return begun


def as_json(offsets: Mapping[Place, int]) -> str:
    """Write offsets as Spark does, sorted."""
    return json.dumps(nested(offsets), sort_keys=True)


def nested(offsets: Mapping[Place, int]) -> dict[str, dict[str, int]]:
    """Return offsets by topic, then partition as text."""
    found: dict[str, dict[str, int]] = {}
    for (topic, number), at in sorted(offsets.items()):
        found.setdefault(topic, {})[str(number)] = at
    return found


def flat(offsets: Mapping[str, Mapping[str, int]]) -> dict[Place, int]:
    """Return what `nested` has made again by partition."""
    return {
        (topic, int(n)): at for topic, of_topic in offsets.items() for n, at in of_topic.items()
    }
