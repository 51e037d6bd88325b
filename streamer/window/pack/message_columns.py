"""Messages as columns on their way into packs, and messages that are built of what packs hold.

Columns are collected, sorted by row and group, cut and encoded. Groups of keys are small numbers
that stand for the results of a key's expression. Metadata is shared by many messages.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import orjson

from streamer.core.json.dump import dump_json, dump_json_texts
from streamer.core.message import UNPARSED, Batch, Message
from streamer.core.value import DELETED, NOTHING
from streamer.window.contract import RowKind, ShuffleRow
from streamer.window.pack.metadata_codec import decode_meta
from streamer.window.pack.pack_codec import MAX_PACK_BYTES, PackColumns, encode_pack
from streamer.window.settings.int_codec import Ints

MAX_CACHED_RESULTS: Final = 65_536
"""How many results are kept at most; the memory is emptied when it is full."""

SLOT_BITS: Final = 32
"""A message's code is its slot, so many bits to the left, plus its group."""

GROUP_MASK: Final = (1 << SLOT_BITS) - 1
"""The bits of a code that are its group."""

MAX_BUFFERED_BYTES: Final = 8 * MAX_PACK_BYTES
"""Bytes of payload that are collected at most, whatever the number of rows they go into."""


class KeyGroups(dict[str, int]):
    """Keys that are texts by group: `groups[text]` is a small number; others raise TypeError.

    Attributes:
        key_of: by group, its key as bytes.
        shard_of: by group, its shard.
        other_spellings: how keys were spelt for which equal ones are written otherwise (1.0 is 1),
            in their order; the user of the groups empties it.
        resets: how often all groups were forgotten.
    """

    def __init__(self, shards: int, as_json: bool) -> None:
        """Make an empty memory.

        Args:
            shards: how many there are.
            as_json: a key is a JSON value, and a text is one with its quotes.
        """
        super().__init__()
        self._as_json = as_json
        self.key_of: list[bytes] = []
        self.shard_of: list[int] = []
        self.other_spellings: list[bytes] = []
        self.resets = 0
        self._group_of: dict[bytes, int] = {}
        self._shard_count = shards

    def __missing__(self, text: str) -> int:
        if type(text) is not str:
            raise TypeError(text)
        if self._as_json:
            key = dump_json(text)
        elif not (key := text.encode(errors="surrogatepass")):
            return self.group_of_bytes(key)
        group = self[text] = len(self.key_of)
        self._add_keys([key])
        return group

    def groups_of_texts(self, texts: Sequence[Any]) -> list[int]:
        """Return the group of each key: many that are new cost less together.

        Raises:
            TypeError: one is not a text.
        """
        groups: list[int | None] = list(map(self.get, texts))
        if None not in groups:
            return groups  # type: ignore[return-value]
        both = zip(texts, groups, strict=True)
        unknown = list(dict.fromkeys([text for text, group in both if group is None]))
        if self._as_json and set(map(type, unknown)) == {str}:
            keys = dump_json_texts(unknown)
            first = len(self.key_of)
            self._add_keys(keys)
            self.update(zip(unknown, range(first, first + len(keys)), strict=True))
        return list(map(self.__getitem__, texts))

    def group_of_result(self, value: Any) -> int:
        """Return the group of what a key's expression gave for a message."""
        if value is DELETED or value is NOTHING:
            return self.group_of_bytes(b"")
        if type(value) is str:
            return self[value]
        if not self._as_json:
            return self[str(value)]
        canonical = _normalise_numbers(value)
        key = dump_json(canonical)
        if canonical is not value and (spelling := dump_json(value)) != key:
            self.other_spellings.append(spelling)
        if key[:1] == b'"':  # bytes, times and their like are the keys that their texts are
            return self[orjson.loads(key)]
        return self.group_of_bytes(key)

    @property
    def keyless_group(self) -> int | None:
        """Group of messages whose key is unknown; None when there is none."""
        return self._group_of.get(b"")

    def group_of_bytes(self, key: bytes) -> int:
        """Return the group of a key that is no text, or of an unknown one, which is empty."""
        group = self._group_of.get(key)
        if group is None:
            group = self._group_of[key] = len(self.key_of)
            self._add_keys([key])
        return group

    def reset_if_full(self) -> None:
        """Forget all groups when they are many; only between packs."""
        if len(self.key_of) >= MAX_CACHED_RESULTS:
            self.resets += 1
            self.clear()
            self.key_of.clear()
            self.shard_of.clear()
            self._group_of.clear()

    def _add_keys(self, keys: list[bytes]) -> None:
        self.key_of += keys
        count = self._shard_count
        self.shard_of += [zlib.crc32(key) % count for key in keys]


def encode_key(value: Any) -> bytes:
    """Return a value as JSON, equal for values that are equal as keys; empty for none."""
    if value is DELETED or value is NOTHING:
        return b""
    return dump_json(_normalise_numbers(value))


def _normalise_numbers(value: Any) -> Any:
    """Make numbers that are equal look equal: 1.0 and 1 are one key."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(value)
    if isinstance(value, list):
        return [_normalise_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: _normalise_numbers(item) for key, item in value.items()}
    return value


class EventTimes(NamedTuple):
    """The event times of some messages.

    Attributes:
        times: by message, ns.
        lags: by message, how far the clock before it was beyond its time, ns, >= 0.
    """

    times: Ints
    lags: Ints

    def select(self, indices: Ints) -> EventTimes:
        """Return those of some messages."""
        return EventTimes(self.times[indices], self.lags[indices])


class MessageColumns:
    """Collects messages, and gives them back as rows.

    Attributes:
        size: payload bytes that are held.
    """

    def __init__(self) -> None:
        self.size = 0
        self._payloads: list[bytes] = []
        self._codes: list[Ints] = []
        self._arrivals: list[Ints] = []
        self._lengths: list[Ints] = []
        self._metas: dict[bytes, int] = {}
        self._meta_ids: list[Ints] = []
        self._event_times: list[EventTimes] = []
        self._single: tuple[list[int], ...] = ([], [], [], [])

    def add(
        self,
        payloads: Sequence[bytes],
        lengths: Ints,
        codes: Ints,
        arrivals: Ints,
        metas: list[bytes],
        event_times: EventTimes | None = None,
    ) -> None:
        """Add messages.

        Args:
            payloads: by message.
            lengths: by message, of its payload.
            codes: by message, slot and group (`SLOT_BITS`).
            arrivals: by message.
            metas: by message, as `encode_meta` writes it; or the one that all share.
            event_times: their event times, for windows that follow them.
        """
        self._flush_singles()
        if event_times is not None:
            self._event_times.append(event_times)
        numbers = [self._metas.setdefault(meta, len(self._metas)) for meta in metas]
        meta_ids = np.full(len(payloads), numbers[0]) if len(metas) == 1 else np.array(numbers)
        self._payloads += payloads
        self._codes.append(codes)
        self._arrivals.append(arrivals)
        self._meta_ids.append(meta_ids)
        self._lengths.append(lengths)
        self.size += int(lengths.sum())

    def add_one(
        self,
        payload: bytes,
        code: int,
        arrival: int,
        meta: bytes,
        event_times: EventTimes | None = None,
    ) -> None:
        """Add a message."""
        if event_times is not None:
            self._event_times.append(event_times)
        codes, arrivals, meta_ids, lengths = self._single
        codes.append(code)
        arrivals.append(arrival)
        meta_ids.append(self._metas.setdefault(meta, len(self._metas)))
        self._payloads.append(payload)
        lengths.append(len(payload))
        self.size += len(payload) + len(meta)

    def _flush_singles(self) -> None:
        if self._single[0]:
            columns = (self._codes, self._arrivals, self._meta_ids, self._lengths)
            for column, single in zip(columns, self._single, strict=True):
                column.append(np.array(single, np.int64))
            self._single = ([], [], [], [])

    def can_take(self, size: int, rows: int) -> bool:
        """Whether to go on before giving back.

        Args:
            size: bytes that are to be added.
            rows: how many rows there are for messages to go into.
        """
        return not self.size or self.size + size <= min(
            MAX_PACK_BYTES * max(rows, 1), MAX_BUFFERED_BYTES
        )

    def flush_rows(
        self,
        targets: list[tuple[RowKind, int]],
        groups: KeyGroups | None,
        key_id: int,
        max_times_kind: RowKind | None = None,
    ) -> Iterator[ShuffleRow]:
        """Return all messages, in packs of at most `MAX_PACK_BYTES`.

        Args:
            targets: by slot, kind and pane.
            groups: by group, key and shard; None when there is no key: all go to shard 0.
            key_id: identifies the key's expression.
            max_times_kind: of rows of this kind the largest event times by group are kept, not all.
        """
        if not self._payloads:
            return
        self._flush_singles()
        codes = np.concatenate(self._codes)
        slots, group_ids = codes >> SLOT_BITS, codes & (1 << SLOT_BITS) - 1
        rows = slots
        if groups is not None:
            shards = np.array(groups.shard_of, np.int64)[group_ids]
            rows = slots + len(targets) * shards
        arrivals, meta_ids = np.concatenate(self._arrivals), np.concatenate(self._meta_ids)
        lengths = np.concatenate(self._lengths)
        timed = self._concat_event_times()
        for indices in group_indices(rows):
            shard, slot = divmod(int(rows[indices[0]]), len(targets))
            kind, pane = targets[slot]
            for part in self._split_by_size(indices, lengths[indices]):
                keys = counts = None
                if groups is not None:
                    part = part[_sort_stable(group_ids[part])]
                    starts, counts = _find_runs(group_ids[part])
                    keys = [groups.key_of[group] for group in group_ids[part[starts]].tolist()]
                metas, ids = distinct_metadata(list(self._metas), meta_ids[part])
                columns = PackColumns(
                    self._select_payloads(part),
                    lengths[part],
                    arrivals[part],
                    metas,
                    ids,
                    keys,
                    counts,
                    key_id,
                )
                if timed is not None:
                    _set_event_times(columns, timed, part, only_max_times=kind == max_times_kind)
                yield ShuffleRow(
                    shard, kind, pane, int(columns.arrivals.min()), encode_pack(columns)
                )

    def _concat_event_times(self) -> EventTimes | None:
        if not self._event_times:
            return None
        times, lags = zip(*self._event_times, strict=True)
        return EventTimes(np.concatenate(times), np.concatenate(lags))

    def _select_payloads(self, part: Ints) -> list[bytes]:
        if len(part) == 1:
            return [self._payloads[part[0]]]
        if len(part) == len(self._payloads) and np.array_equal(part, np.arange(len(part))):
            return self._payloads
        return list(itemgetter(*part.tolist())(self._payloads))

    def _split_by_size(self, indices: Ints, lengths: Ints) -> Iterator[Ints]:
        """Cut the messages of one row, which are in order of arrival, to packs."""
        if self.size <= MAX_PACK_BYTES:
            yield indices
            return
        ends = np.cumsum(lengths)
        # In equal parts, rather than whole ones and a small rest.
        size = int(ends[-1])
        most = min(MAX_PACK_BYTES, size // -(-size // MAX_PACK_BYTES) + int(lengths.max()))
        start = 0
        while start < len(indices):
            before = int(ends[start - 1]) if start else 0
            stop = int(np.searchsorted(ends, before + most, "right"))
            stop = max(stop, start + 1)
            yield indices[start:stop]
            start = stop


def _set_event_times(
    columns: PackColumns, event_times: EventTimes, part: Ints, only_max_times: bool
) -> None:
    """Add the event times to a pack's columns."""
    times = event_times.times[part]
    if not only_max_times:
        columns.times = times
        lags = event_times.lags[part]
        columns.lags = lags if lags.any() else None
    elif columns.counts is None:
        columns.max_times = times.max(keepdims=True)
    else:
        columns.max_times = np.maximum.reduceat(times, np.cumsum(columns.counts) - columns.counts)


def distinct_metadata(metas: list[bytes], ids: Ints) -> tuple[list[bytes], Ints | None]:
    """Leave out metadata that none of the messages has."""
    if len(metas) == 1:
        return metas, None
    used, renumbered = np.unique(ids, return_inverse=True)
    used_metas = [metas[i] for i in used.tolist()]
    return used_metas, renumbered.astype(np.int64) if len(used_metas) > 1 else None


def _sort_stable(values: Ints) -> Ints:
    # numpy sorts 16-bit numbers by radix, ten times as fast.
    narrow = values.astype(np.uint16) if int(values.max()) < 1 << 16 else values
    return np.argsort(narrow, kind="stable")


def _find_runs(values: Ints) -> tuple[Ints, Ints]:
    """Return the start and the length of every run of equal values."""
    starts = np.concatenate((np.zeros(1, np.int64), np.flatnonzero(np.diff(values)) + 1))
    return starts, np.diff(starts, append=len(values))


def group_indices(values: Ints) -> list[Ints]:
    """Return the indices of equal values, in their order, for each value."""
    if int(values.min()) == int(values.max()):
        return [np.arange(len(values))]
    order = _sort_stable(values)
    starts, _ = _find_runs(values[order])
    return np.split(order, starts[1:])


DecodedMetadata = dict[bytes, tuple[Mapping[str, Any], str | None]]
"""Metadata and error, by what `encode_meta` wrote."""


class MessageBuilder:
    """Decodes metadata, adds entries to it, and gives equal ones as one object."""

    def __init__(self, entries: Mapping[str, Any], decoded: DecodedMetadata | None = None) -> None:
        """Prepare.

        Args:
            entries: what is added.
            decoded: remembers metadata without what is added, for those who add other entries.
        """
        self._entries = dict(entries)
        self._decoded = {} if decoded is None else decoded
        self._known: DecodedMetadata = {}

    def build_messages(
        self,
        payloads: Iterable[bytes],
        metas: list[bytes],
        ids: Ints | None,
        documents: list[Any] | None = None,
    ) -> Batch:
        """Make messages of payloads and their metadata, with their documents if they are known."""
        of: Iterable[tuple[Mapping[str, Any], str | None]]
        if ids is None:
            known = self._metadata_of(metas[0])
            if known[1] is None:
                meta = repeat(known[0])
                if documents is not None:
                    return list(map(Message, payloads, meta, repeat(None), documents))
                return list(map(Message, payloads, meta))
            of = repeat(known)
        elif len(ids) < len(metas):
            # Of a pack in which each message has its own, a window may need those of one message.
            of = (self._metadata_of(metas[i]) for i in ids.tolist())
        else:
            every = [self._metadata_of(one) for one in metas]
            of = (every[i] for i in ids.tolist())
        docs = repeat(UNPARSED) if documents is None else documents
        return [
            Message(raw, meta, error, doc)
            for raw, (meta, error), doc in zip(payloads, of, docs, strict=False)
        ]

    def _metadata_of(self, encoded: bytes) -> tuple[Mapping[str, Any], str | None]:
        entry = self._known.get(encoded)
        if entry is None:
            decoded = self._decoded.get(encoded)
            if decoded is None:
                decoded = self._decoded[encoded] = decode_meta(encoded)
            meta, error = decoded
            entry = self._known[encoded] = ({**meta, **self._entries}, error)
        return entry


class FiredGroup(NamedTuple):
    """A group of a window, or a whole window.

    Attributes:
        first: the arrival of its first message.
        key: the group's; None for a whole window.
        messages: its messages, in order of arrival.
    """

    first: int
    key: bytes | None
    messages: Batch


class GroupMetadata(Protocol):
    """Gives the metadata that a window adds to its messages.

    Attributes:
        differs_by_group: whether groups get different metadata; else all get the same.
    """

    differs_by_group: bool

    def builder_for(self, key: bytes | None, max_time: int | None) -> MessageBuilder:
        """Return what adds the metadata of a group, or of the whole window.

        Args:
            key: the group's, in the spelling of its first message; None for the whole window.
            max_time: the largest event time inside, ns; None where it was not kept.
        """


class SameMetadata:
    """The same metadata for all messages, whatever their group and their times."""

    differs_by_group = False

    def __init__(self, entries: Mapping[str, Any]) -> None:
        """Take the metadata."""
        self._builder = MessageBuilder(entries)

    def builder_for(self, key: bytes | None, max_time: int | None) -> MessageBuilder:
        """Return the builder that all groups share."""
        return self._builder
