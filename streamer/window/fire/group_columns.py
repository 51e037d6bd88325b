"""Aggregated groups that are emitted together, in columns, until objects are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import repeat
from typing import Any, TypeVar

from streamer.core.message import Message
from streamer.window.aggregate.fire_groups import AggregatedGroup

T = TypeVar("T")


@dataclass(frozen=True)
class LabelColumns:
    """The metadata that windows add to the first messages of groups.

    Attributes:
        shared: what all groups have, by name.
        by_group: the names that differ, and a function that gives their values, by group.
    """

    shared: Mapping[str, Any]
    by_group: Mapping[str, Callable[[], Sequence[Any]]]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """By group, all of it; only where something differs."""
        names = [*self.by_group]
        columns = [column() for column in self.by_group.values()]
        shared = self.shared
        return [
            {**shared, **dict(zip(names, values, strict=True))}
            for values in zip(*columns, strict=True)
        ]


@dataclass
class GroupColumns:
    """Some groups, all aggregated for one mapping.

    Attributes:
        text: the mapping.
        payloads: by group, of its first message.
        sizes: by group, how many messages it stands for.
        own: distinct metadata of first messages, without what windows add, each with the error
            that marks the message.
        own_numbers: by group, the index into `own`; None where all have the first.
        labels: what windows add.
        results: by aggregate, its values by group; None where one of them fails.
        read_result: returns the value of a group and an aggregate, or raises what it fails with.
    """

    text: str
    payloads: Sequence[bytes]
    sizes: Sequence[int]
    own: Sequence[tuple[Mapping[str, Any], str | None]]
    own_numbers: Sequence[int] | None
    labels: LabelColumns
    results: Sequence[Sequence[Any]] | None
    read_result: Callable[[int, int], Any] | None = None

    def __len__(self) -> int:
        return len(self.sizes)

    def metadata_column(self, name: str, convert: Callable[[Any], Any]) -> list[Any]:
        """Return what a function makes of the metadata of a name, None where there is none."""
        labels = self.labels
        if name in labels.by_group:
            return list(map(convert, labels.by_group[name]()))
        if name in labels.shared:
            return [convert(labels.shared[name])] * len(self)
        return self._spread([convert(own[name]) if name in own else None for own, _ in self.own])

    @property
    def has_failed_messages(self) -> bool:
        """Whether an error marks one of the first messages."""
        return any(error is not None for _, error in self.own)

    def build_groups(self) -> list[AggregatedGroup]:
        """Return the groups as batches of one message."""
        metas, errors = self._build_metadata(), self._spread([error for _, error in self.own])
        messages = map(Message, self.payloads, metas, errors)
        groups = zip(messages, self._result_functions(), self.sizes, strict=True)
        return [AggregatedGroup(message, self.text, read, size) for message, read, size in groups]

    def _result_functions(self) -> Iterator[Callable[[int], Any]]:
        """Give by group what returns its aggregates."""
        if self.results is None:
            assert self.read_result is not None
            return (partial(self.read_result, group) for group in range(len(self)))
        rows = zip(*self.results, strict=True) if self.results else repeat((), len(self))
        return (row.__getitem__ for row in rows)

    def _build_metadata(self) -> Sequence[Mapping[str, Any]]:
        labels = self.labels
        if not labels.by_group:
            return self._spread([{**own, **labels.shared} for own, _ in self.own])
        rows = labels.rows
        if not any(own for own, _ in self.own):
            return rows
        owned = self._spread([own for own, _ in self.own])
        return [{**own, **row} for own, row in zip(owned, rows, strict=True)]

    def _spread(self, values: list[T]) -> list[T]:
        """Return by group what belongs to its distinct metadata."""
        if self.own_numbers is None:
            return values[:1] * len(self)
        return [values[number] for number in self.own_numbers]
