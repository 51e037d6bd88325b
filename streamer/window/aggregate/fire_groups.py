"""Firing of a window whose mapping aggregates: from packs to pre-aggregated batches."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from streamer.bloblang.analysis.pre_aggregation import PreAggregatedBatch
from streamer.bloblang.errors import QueryError, RecordedError
from streamer.bloblang.message_expression import InvalidDocument
from streamer.bloblang.runtime import document
from streamer.core.errors import MessageError
from streamer.core.json.bulk import parse_payloads
from streamer.core.message import Message
from streamer.window.aggregate.aggregate_codec import decode_aggregates
from streamer.window.aggregate.partial_aggregates import (
    PartialAggregates,
    aggregation_for,
    make_numbering,
    merge_partial_aggregates,
    number_keys,
)
from streamer.window.aggregate.pre_aggregator import DOCUMENTS_PER_PARSE, PreAggregator
from streamer.window.aggregate.registry import make_accumulator
from streamer.window.pack.message_columns import (
    SLOT_BITS,
    FiredGroup,
    GroupMetadata,
    MessageBuilder,
)
from streamer.window.pack.metadata_codec import read_key_spelling
from streamer.window.pack.pack_codec import Pack, StoredPack, read_header
from streamer.window.settings.int_codec import Ints

_SINGLE_SLOT = 1


class PaneParts:
    """The packs of a pane, or of a window.

    Attributes:
        aggregated: groups.
        message_packs: packs of messages.
    """

    def __init__(self, stored: list[StoredPack]) -> None:
        """Separate packs of groups, which are decoded, from packs of messages."""
        self.aggregated = [
            decode_aggregates(*entry) for entry in stored if read_header(entry[0]).is_aggregated
        ]
        self.message_packs = [entry for entry in stored if not read_header(entry[0]).is_aggregated]

    def merge_groups(self) -> None:
        """Merge the groups, where several windows read them."""
        self.aggregated = [
            merge_partial_aggregates(same) for same in group_by_mapping(self.aggregated)
        ]


def group_by_mapping(groups: list[PartialAggregates]) -> list[list[PartialAggregates]]:
    """Return groups by the mapping that they are aggregated for, each in order of arrival."""
    by_mapping: dict[str, list[PartialAggregates]] = {}
    for each in sorted(groups, key=lambda one: one.first_arrival):
        by_mapping.setdefault(each.text, []).append(each)
    return list(by_mapping.values())


class CollectedGroups:
    """The groups of a window that fires, merged.

    Attributes:
        windows: by mapping that they are aggregated for, one at least.
        unaggregated: the messages that had been kept whole; they are aggregated for the first one.
    """

    def __init__(
        self, aggregated: list[PartialAggregates], message_packs: list[StoredPack]
    ) -> None:
        """Merge.

        Args:
            aggregated: pre-aggregated groups, one at least.
            message_packs: packs of other messages of the window.
        """
        texts = group_by_mapping(aggregated)
        firsts = [groups.first_arrival for groups in aggregated]
        self.unaggregated = UnaggregatedMessages(
            texts[0][0].text, texts[0][0].key_id, [Pack(*entry) for entry in message_packs], firsts
        )
        texts[0] = sorted([*texts[0], *self.unaggregated.groups], key=lambda one: one.first_arrival)
        self.unaggregated.groups = []
        self.windows = [
            WindowGroups(merge_partial_aggregates(same), self.unaggregated.broken) for same in texts
        ]

    @property
    def are_alike(self) -> bool:
        """Whether all groups are of one mapping, and nothing else is in the window."""
        unaggregated = self.unaggregated
        return len(self.windows) == 1 and not unaggregated.keyless_groups


def fire_groups(collected: CollectedGroups, labels: GroupMetadata) -> Iterator[FiredGroup]:
    """Give the groups of a window.

    Args:
        collected: the groups.
        labels: gives the metadata of messages.

    Returns:
        The groups in order of first arrival. The key is None when there is no expression that gives
        keys. A batch is a `AggregatedGroup`, but for messages without a key.
    """
    windows, unaggregated = collected.windows, collected.unaggregated
    alike = None
    if not labels.differs_by_group:
        times = [unaggregated.max_event_time, *(window.max_event_time for window in windows)]
        alike = labels.builder_for(
            None, max((time for time in times if time is not None), default=None)
        )
    batches = [batch for window in windows for batch in window.iterate_groups(alike, labels)]
    if unaggregated.keyless_groups:
        batches.append(
            unaggregated.build_keyless(
                alike or labels.builder_for(b"", unaggregated.max_event_time)
            )
        )
    batches.sort(key=itemgetter(0))
    yield from batches


class AggregatedGroup(PreAggregatedBatch):
    """A group of a window.

    Attributes:
        size: how many messages it stands for.
    """

    __slots__ = ("size",)

    def __init__(
        self, first: Message, text: str, result_of: Callable[[int], Any], size: int
    ) -> None:
        # There is one for every session: what the class above does is done here.
        self.append(first)
        self.text = text
        self.aggregate_value = result_of
        self.size = size


class WindowGroups:
    """All groups of a window, and the values of their aggregates.

    Attributes:
        groups: the groups.
    """

    def __init__(self, groups: PartialAggregates, broken: dict[bytes, str]) -> None:
        self.groups = groups
        self._broken = broken
        self._parts = aggregation_for(groups.text).aggregates
        self._accumulators = [make_accumulator(part) for part in self._parts]

    @property
    def max_event_time(self) -> int | None:
        """The largest event time of all, ns; None where it was not kept."""
        newest = self.groups.max_times
        return None if newest is None else int(newest.max())

    def iterate_groups(
        self, alike: MessageBuilder | None, labels: GroupMetadata
    ) -> Iterator[FiredGroup]:
        """Give the groups; `alike` adds the metadata where that of all is the same."""
        groups = self.groups
        newest = None if groups.max_times is None else groups.max_times.tolist()
        for group, (key, payload, meta, size) in enumerate(
            zip(groups.keys, groups.payloads, groups.metas, groups.counts.tolist(), strict=True)
        ):
            named = None if groups.key_id is None else key
            spelt_key = named and (read_key_spelling(meta) or named)
            metas = alike or labels.builder_for(
                spelt_key, None if newest is None else newest[group]
            )
            first = metas.build_messages([payload], [meta], None)[0]
            batch = AggregatedGroup(first, groups.text, partial(self.read_result, group), size)
            yield FiredGroup(int(groups.arrivals[group]), named, batch)

    def list_results(self, groups: Ints) -> list[list[Any]] | None:
        """Return by aggregate its values in some groups; None where one of them fails."""
        if self._broken:
            return None
        states = zip(self._accumulators, self.groups.states, strict=True)
        try:
            return [accumulator.results_of_groups(state, groups) for accumulator, state in states]
        except QueryError:
            return None

    def read_result(self, group: int, part: int) -> Any:
        """Return the value of an aggregate in a group, or raise what it fails with."""
        broken = self._broken.get(self.groups.keys[group])
        field = self._parts[part].expression is None and self._parts[part].origin
        if broken is not None and field:
            raise RecordedError(broken, sealed=False)
        return self._accumulators[part].result_of_group(self.groups.states[part], group)


class UnaggregatedMessages:
    """Messages that were kept whole, aggregated now.

    Attributes:
        groups: what they are as groups.
        broken: by key, why the documents of a group cannot be looked at.
        keyless_groups: the places of messages without a key: pack and group.
        max_event_time: the largest event time of the messages without a key, ns; None without any.
    """

    def __init__(
        self, text: str, key_id: int | None, packs: list[Pack], aggregated_starts: Sequence[int]
    ) -> None:
        """Aggregate.

        Args:
            text: the mapping.
            key_id: identifies the expression that gave the keys; None when there is none.
            packs: the messages.
            aggregated_starts: where groups begin that were aggregated before; those that are made
                now do not go across.
        """
        self.groups: list[PartialAggregates] = []
        self.broken: dict[bytes, str] = {}
        self.keyless_groups: list[tuple[Pack, int]] = []
        self.max_event_time: int | None = None
        for run in _split_runs(packs, sorted(aggregated_starts)):
            # Where keys are many, each pack has most of them: one by one, they would have to be
            # merged once for each.
            number = make_numbering()
            pre_aggregator = PreAggregator(aggregation_for(text), key_id)
            for pack in run:
                self._add(pack, pre_aggregator, number)
            self.groups += [
                made
                for _, _, made in pre_aggregator.flush_groups(_SINGLE_SLOT + 1, list(number), None)
            ]

    def _add(self, pack: Pack, pre_aggregator: PreAggregator, number: dict[bytes, int]) -> None:
        """Add a pack's messages; `number` has the groups by their keys."""
        keys = pack.keys or [b""]
        groups = np.repeat(np.arange(len(keys)), np.diff(pack.starts))
        raws, arrivals, ids = pack.payloads(), pack.arrivals, pack.meta_ids
        if b"" in pack.keys:
            keyless = keys.index(b"")
            self._add_keyless(pack, keyless)
            keyed = np.flatnonzero(groups != keyless)
            raws = [raws[index] for index in keyed.tolist()]
            groups, arrivals = groups[keyed], arrivals[keyed]
            ids = None if ids is None else ids[keyed]
        numbers = number_keys(keys, number)
        newest = pack.group_max_times()
        # Of many groups at once, since a window may have hundreds of thousands.
        for start in range(0, len(raws), DOCUMENTS_PER_PARSE):
            some = slice(start, start + DOCUMENTS_PER_PARSE)
            of = groups[some]
            docs = self._parse_documents(raws[some], keys, of)
            metas = pack.metas if ids is None else [pack.metas[i] for i in ids[some].tolist()]
            # That the newest is each message's time makes the group's newest come out right.
            times = None if newest is None else newest[of]
            codes = (_SINGLE_SLOT << SLOT_BITS) + numbers[of]
            pre_aggregator.add(
                raws[some], codes, arrivals[some], metas, pre_aggregator.make_columns(docs), times
            )

    def _add_keyless(self, pack: Pack, group: int) -> None:
        self.keyless_groups.append((pack, group))
        of_groups = pack.group_max_times()
        if of_groups is not None:
            newest = int(of_groups[group])
            self.max_event_time = (
                newest if self.max_event_time is None else max(self.max_event_time, newest)
            )

    def _parse_documents(self, raws: list[bytes], keys: list[bytes], groups: Ints) -> list[Any]:
        try:
            return parse_payloads(raws)
        except (MessageError, ValueError):
            pairs = zip(raws, groups.tolist(), strict=True)
            return [self._parse_document(raw, keys[group]) for raw, group in pairs]

    def _parse_document(self, raw: bytes, key: bytes) -> Any:
        try:
            return document.get_json_document(Message(raw))
        except QueryError as e:
            self.broken.setdefault(key, str(e))
            return InvalidDocument(raw)

    def build_keyless(self, metas: MessageBuilder) -> FiredGroup:
        """Return the messages without a key, in order of arrival."""
        entries: list[tuple[int, Message]] = []
        for pack, group in self.keyless_groups:
            span = pack.group_slice(group)
            ids = None if pack.meta_ids is None else pack.meta_ids[span]
            messages = metas.build_messages(pack.group_payloads(group), pack.metas, ids)
            entries += zip(pack.arrivals[span].tolist(), messages, strict=True)
        entries.sort(key=lambda entry: entry[0])
        return FiredGroup(entries[0][0], b"", [message for _, message in entries])


def _split_runs(packs: list[Pack], aggregated_starts: Sequence[int]) -> Iterator[list[Pack]]:
    """Split packs into runs that have no pre-aggregated group between their messages."""
    run: list[Pack] = []
    for pack in sorted(packs, key=lambda one: one.header.first):
        if run:
            before = run[-1].header
            between = bisect(aggregated_starts, before.first) < bisect(
                aggregated_starts, pack.header.first
            )
            # A pre-aggregator has the times of all its messages, or of none.
            unlike = pack.has_event_times != run[-1].has_event_times
            if between or unlike or pack.header.first <= before.last:
                yield run
                run = []
        run.append(pack)
    if run:
        yield run
