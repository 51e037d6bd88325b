"""New positions for the partitions of a stopped stream: chosen, checked, and compared with the old.

Pure: what brokers tell is handed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from streamer.connectors.kafka.cluster.partition_ref import PartitionRef
from streamer.connectors.kafka.cluster.topic_selection import EARLIEST
from streamer.core.errors import StreamerError


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The state of a partition.

    Attributes:
        position: the offset of the next message to be read; `EARLIEST` for the oldest there is.
        first: the offset of the oldest message.
        last: the offset after the newest.
    """

    position: int
    first: int
    last: int

    @property
    def offset(self) -> int:
        """The position as a number."""
        return self.first if self.position == EARLIEST else self.position

    @property
    def lag(self) -> int:
        """The number of messages that wait."""
        return max(self.last - max(self.offset, self.first), 0)


class OffsetMove(NamedTuple):
    """A partition whose position changes.

    Attributes:
        place: topic and number.
        before: the offset of the next message to be read until now.
        after: the one to be.
    """

    place: PartitionRef
    before: int
    after: int

    @property
    def effect(self) -> str:
        """The effect on messages, in a few words."""
        number = abs(self.after - self.before)
        if not number:
            return "unchanged"
        return f"{number:,} {'again' if self.after < self.before else 'skipped'}"


def plan_moves(
    states: Mapping[PartitionRef, PartitionState], targets: Mapping[PartitionRef, int]
) -> list[OffsetMove]:
    """Return what changes, by topic and partition.

    Args:
        states: the partitions as they are.
        targets: the offsets that some of them are to have.

    Raises:
        StreamerError: an offset is not in its partition; all of them are named.
    """
    problems = [
        f"{topic}:{number} has the offsets {state.first} to {state.last}, not {targets[place]}"
        for place, state in sorted(states.items())
        for topic, number in [place]
        if place in targets and not state.first <= targets[place] <= state.last
    ]
    if problems:
        raise StreamerError(f"{'; '.join(problems)}; choose an offset within")
    return [
        OffsetMove(place, state.offset, targets[place])
        for place, state in sorted(states.items())
        if place in targets
    ]


def shift_offsets(
    states: Mapping[PartitionRef, PartitionState], places: Iterable[PartitionRef], by: int
) -> dict[PartitionRef, int]:
    """Return positions that are moved by a number of messages, within what there is."""
    return {
        place: min(max(states[place].offset + by, states[place].first), states[place].last)
        for place in places
    }


def copy_offsets(
    states: Mapping[PartitionRef, PartitionState],
    places: Iterable[PartitionRef],
    source: Mapping[PartitionRef, int],
    what: str,
) -> dict[PartitionRef, int]:
    """Return the positions that another reader has, of those partitions that it has read.

    Args:
        states: the partitions.
        places: which are to be moved.
        source: the positions of the other; `EARLIEST` for the oldest message.
        what: names the other, for what is wrong.

    Raises:
        StreamerError: it has none of them.
    """
    if not (places := list(places)):
        return {}
    copied = {
        place: states[place].first if source[place] == EARLIEST else source[place]
        for place in places
        if place in source
    }
    if not copied:
        raise StreamerError(f"{what} has no position of these partitions; nothing is copied")
    return copied


def select_places(states: Iterable[PartitionRef], selectors: Iterable[str]) -> list[PartitionRef]:
    """Return the partitions that `--topic` names: `orders`, or `orders:0,3`; all without any."""
    texts = list(selectors)
    if not texts:
        return sorted(states)
    parsed = [_parse_selector(text) for text in texts]
    return sorted(
        (topic, number)
        for topic, number in states
        if any(topic == name and (not numbers or number in numbers) for name, numbers in parsed)
    )


def check_selectors(places: Iterable[PartitionRef], selectors: Iterable[str]) -> None:
    """Check that a stream reads all that `--topic` names.

    Args:
        places: the partitions of all its inputs.
        selectors: the values of the option.

    Raises:
        StreamerError: it does not, or a value is none.
    """
    known = set(places)
    for text in selectors:
        name, numbers = _parse_selector(text)
        if name not in {topic for topic, _ in known} or not {(name, n) for n in numbers} <= known:
            raise StreamerError(
                f"--topic {text}: the stream does not read it; it reads "
                + ", ".join(sorted({topic for topic, _ in known}))
            )


def _parse_selector(text: str) -> tuple[str, set[int]]:
    """Return a topic and numbers of partitions; none of these for all."""
    topic, colon, numbers = text.partition(":")
    if colon and not all(one.isascii() and one.isdigit() for one in numbers.split(",")):
        raise StreamerError(f"--topic {text}: expected TOPIC, or TOPIC:0,3")
    return topic, {int(one) for one in numbers.split(",")} if colon else set()
