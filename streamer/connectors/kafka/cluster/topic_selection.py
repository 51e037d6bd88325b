"""Selection of topics: by name, by partition, or by patterns of names.

Rules and examples are those of Redpanda Connect's fields `topics` and `regexp_topics_*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from streamer.sdk.regex_field import compile_pattern

EARLIEST: Final = -2
"""Stands for the first message that there is, as in Kafka's protocol and in Spark's offsets."""
LATEST: Final = -1
"""Stands for the next message that will come."""

_INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"}
)
_MAX_PARTITION: Final = 2**31 - 1
_MAX_OFFSET: Final = 2**63 - 1
_MAX_RANGE: Final = 100_000
# A comma within `{2,3}` belongs to the expression.
_COMMA: Final = re.compile(r",(?![^{]*\})")
_NUMBER: Final = re.compile(r"[0-9]+")
_OFFSET: Final = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True)
class TopicSelection:
    """A selection of topics; one of the three is not empty.

    Attributes:
        topics: whole topics, by name.
        partitions: partitions of topics, and where each is begun (`EARLIEST`, `LATEST` or an
            offset).
        include: expressions (RE2) of which one is found somewhere in a topic's name.
        exclude: expressions none of which is.
    """

    topics: tuple[str, ...] = ()
    partitions: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def is_by_pattern(self) -> bool:
        """Whether topics are found by their names."""
        return bool(self.include)

    @property
    def required_topics(self) -> tuple[str, ...]:
        """The topics that must be there; none when they are found by their names."""
        return self.topics or tuple(self.partitions)

    def select_topics(self, topics: Iterable[str]) -> list[str]:
        """Return which topics of a cluster are read, in order."""
        if not self.is_by_pattern:
            names = set(self.required_topics)
            return sorted(topic for topic in topics if topic in names)
        patterns = [compile_pattern(text) for text in self.include]
        unwanted = [compile_pattern(text) for text in self.exclude]
        return sorted(
            topic
            for topic in topics
            if topic not in _INTERNAL_TOPICS
            and any(pattern.search(topic) for pattern in patterns)
            and not any(pattern.search(topic) for pattern in unwanted)
        )


def split_patterns(items: Iterable[str]) -> tuple[str, ...]:
    """Return the expressions of a list, whose items may hold several, separated by commas."""
    patterns = (text.strip() for item in items for text in _COMMA.split(item))
    return tuple(dict.fromkeys(text for text in patterns if text))


def pattern_problem(items: Iterable[str]) -> str | None:
    """Return what is wrong with a list of expressions, or None."""
    for text in split_patterns(items):
        try:
            compile_pattern(text)
        except ValueError as error:
            return f"has {error}"
    return None


def topics_problem(items: Iterable[str], explicit_offsets: bool) -> str | None:
    """Return what is wrong with a list that `parse_topics` reads, or None."""
    try:
        topics, partitions = parse_topics(items, EARLIEST, explicit_offsets)
    except ValueError as error:
        return str(error)
    if topics and partitions:
        return "has whole topics and single partitions; use two inputs in a broker"
    return None if topics or partitions else "has no topic; expected a name"


def parse_topics(
    items: Iterable[str], default: int, explicit_offsets: bool
) -> tuple[tuple[str, ...], dict[str, dict[int, int]]]:
    """Read a list such as `["foo, bar", "baz:0-5", "baz:3:100"]`.

    Args:
        items: an item holds several, separated by commas: a topic, `topic:partition`,
            `topic:first-last`, or either of these with `:offset`.
        default: where a partition without an offset is begun.
        explicit_offsets: whether there may be offsets.

    Returns:
        The whole topics, and the partitions with where they are begun. An offset beats the default,
        and a later one an earlier one.

    Raises:
        ValueError: an item is not right; the text goes on after the field's name.
    """
    topics: dict[str, None] = {}
    partitions: dict[str, dict[int, int]] = {}
    for text in (part.strip() for item in items for part in item.split(",")):
        if not text:
            continue
        topic, *rest = text.split(":")
        if not rest:
            topics[text] = None
            continue
        if len(rest) > 2:
            raise ValueError(f"has {text!r}; expected topic:partition, or topic:partition:offset")
        if len(rest) == 2 and not explicit_offsets:
            raise ValueError(
                f"has {text!r}; this input takes no offsets, kafka_franz and redpanda do"
            )
        offset = _parse_offset(text, rest[1]) if len(rest) == 2 else default
        of_topic = partitions.setdefault(topic.strip(), {})
        for number in _parse_partitions(text, rest[0]):
            if offset != default or number not in of_topic:
                of_topic[number] = offset
    return tuple(topics), partitions


def _parse_partitions(text: str, written: str) -> range:
    first, dash, last = written.partition("-")
    numbers = (first, last) if dash else (first, first)
    if not all(_NUMBER.fullmatch(one) for one in numbers):
        raise ValueError(f"has {text!r}; expected a partition such as 3, or a range such as 0-5")
    low, high = map(int, numbers)
    if high < low:
        raise ValueError(f"has {text!r}; the range ends before it begins")
    if high > _MAX_PARTITION or high - low > _MAX_RANGE:
        raise ValueError(f"has {text!r}; there are no such partitions")
    return range(low, high + 1)


def _parse_offset(text: str, written: str) -> int:
    if not _OFFSET.fullmatch(written) or int(written) > _MAX_OFFSET:
        raise ValueError(f"has {text!r}; expected an offset such as 1000, or -1 for the end")
    return max(int(written), EARLIEST)
