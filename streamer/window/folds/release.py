"""From packs to folded batches: the groups of a window whose mapping folds."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from streamer.bloblang.element import Broken
from streamer.bloblang.errors import QueryError, ToldError
from streamer.bloblang.folding import FoldedBatch
from streamer.bloblang.runtime import document
from streamer.documents import parsed
from streamer.errors import MessageError
from streamer.message import Message
from streamer.window.folds.accumulators import accumulator_of
from streamer.window.folds.folder import AT_ONCE, Folder
from streamer.window.folds.groups import Groups, fold_for, merged, numbering, numbers_of
from streamer.window.folds.pack import decode
from streamer.window.ints import Ints
from streamer.window.metadata import spelling_of
from streamer.window.metas import Labels, Metas, Released
from streamer.window.pack import Pack, Stored, peek
from streamer.window.stamps import SLOT_BITS

_SLOT = 1


class Parts:
    """What a pane, or a window, consists of.

    Attributes:
        folded: groups.
        whole: packs of messages.
    """

    def __init__(self, stored: list[Stored]) -> None:
        """Sort packs out; those of folded groups are unpacked."""
        self.folded = [decode(*entry) for entry in stored if peek(entry[0]).folded]
        self.whole = [entry for entry in stored if not peek(entry[0]).folded]

    def settle(self) -> None:
        """Merge the groups, when they will be asked for more than once."""
        self.folded = [merged(same) for same in by_text(self.folded)]


def by_text(groups: list[Groups]) -> list[list[Groups]]:
    """Return groups by the mapping that they are folded for, each in order of arrival."""
    found: dict[str, list[Groups]] = {}
    for each in sorted(groups, key=lambda one: one.first):
        found.setdefault(each.text, []).append(each)
    return list(found.values())


def release_folded(folded: list[Groups], whole: list[Stored], labels: Labels) -> Iterator[Released]:
    """Give the groups of a window.

    Args:
        folded: its folded groups, one at least.
        whole: packs of messages that are in it too; they are folded for the same mapping.
        labels: says what messages are told of the window.

    Returns:
        The groups in order of first arrival. The key is None when there is no expression that gives
        keys. A batch is a `FoldedGroup`, but for messages without a key.
    """
    texts = by_text(folded)
    firsts = [groups.first for groups in folded]
    late = _Whole(texts[0][0].text, texts[0][0].key_id, [Pack(*entry) for entry in whole], firsts)
    texts[0] = sorted([*texts[0], *late.groups], key=lambda one: one.first)
    windows = [_Window(merged(same), late.broken) for same in texts]
    alike = None
    if not labels.by_group:
        times = [late.newest, *(window.newest for window in windows)]
        alike = labels.of(None, max((time for time in times if time is not None), default=None))
    batches = [batch for window in windows for batch in window.batches(alike, labels)]
    if late.keyless:
        batches.append(late.released(alike or labels.of(b"", late.newest)))
    batches.sort(key=itemgetter(0))
    yield from batches


class FoldedGroup(FoldedBatch):
    """A group of a window.

    Attributes:
        size: how many messages it stands for.
    """

    __slots__ = ("size",)

    def __init__(self, first: Message, text: str, fold: Callable[[int], Any], size: int) -> None:
        # There is one for every session: what the class above does is done here.
        self.append(first)
        self.text = text
        self.fold = fold
        self.size = size


class _Window:
    """All groups of a window, and the values of their parts."""

    def __init__(self, groups: Groups, broken: dict[bytes, str]) -> None:
        self._groups = groups
        self._broken = broken
        self._parts = fold_for(groups.text).parts
        self._accumulators = [accumulator_of(part) for part in self._parts]

    @property
    def newest(self) -> int | None:
        """The largest event time of all, ns; None where it was not kept."""
        newest = self._groups.newest
        return None if newest is None else int(newest.max())

    def batches(self, alike: Metas | None, labels: Labels) -> Iterator[Released]:
        """Give the groups; `alike` adds the metadata when all are told the same."""
        groups = self._groups
        newest = None if groups.newest is None else groups.newest.tolist()
        for group, (key, payload, meta, size) in enumerate(
            zip(groups.keys, groups.payloads, groups.metas, groups.counts.tolist(), strict=True)
        ):
            named = None if groups.key_id is None else key
            told = named and (spelling_of(meta) or named)
            metas = alike or labels.of(told, None if newest is None else newest[group])
            first = metas.messages([payload], [meta], None)[0]
            batch = FoldedGroup(first, groups.text, partial(self._value, group), size)
            yield Released(int(groups.arrivals[group]), named, batch)

    def _value(self, group: int, part: int) -> Any:
        broken = self._broken.get(self._groups.keys[group])
        field = self._parts[part].element is None and self._parts[part].origin
        if broken is not None and field:
            raise ToldError(broken, sealed=False)
        return self._accumulators[part].value(self._groups.states[part], group)


class _Whole:
    """Messages that were kept whole, folded now.

    Attributes:
        groups: what they are as groups.
        broken: by key, why the documents of a group cannot be looked at.
        keyless: the places of messages without a key: pack and group.
        newest: the largest event time of the messages without a key, ns; None without any.
    """

    def __init__(
        self, text: str, key_id: int | None, packs: list[Pack], folded: Sequence[int]
    ) -> None:
        """Fold.

        Args:
            text: the mapping.
            key_id: identifies the expression that gave the keys; None when there is none.
            packs: the messages.
            folded: where groups begin that were folded before; those that are made now do not go
                across.
        """
        self.groups: list[Groups] = []
        self.broken: dict[bytes, str] = {}
        self.keyless: list[tuple[Pack, int]] = []
        self.newest: int | None = None
        for run in _runs(packs, sorted(folded)):
            # Where keys are many, each pack has most of them: one by one, they would have to be
            # merged once for each.
            number = numbering()
            folder = Folder(fold_for(text), key_id)
            for pack in run:
                self._add(pack, folder, number)
            self.groups += [made for _, _, made in folder.groups(_SLOT + 1, list(number), None)]

    def _add(self, pack: Pack, folder: Folder, number: dict[bytes, int]) -> None:
        """Add a pack's messages; `number` has the groups by their keys."""
        keys = pack.keys or [b""]
        groups = np.repeat(np.arange(len(keys)), np.diff(pack.starts))
        raws, arrivals, ids = pack.payloads(), pack.arrivals, pack.meta_ids
        if b"" in pack.keys:
            keyless = keys.index(b"")
            self._set_aside(pack, keyless)
            keyed = np.flatnonzero(groups != keyless)
            raws = [raws[index] for index in keyed.tolist()]
            groups, arrivals = groups[keyed], arrivals[keyed]
            ids = None if ids is None else ids[keyed]
        numbers = numbers_of(keys, number)
        # Of many groups at once, since a window may have hundreds of thousands.
        for start in range(0, len(raws), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            of = groups[some]
            docs = self._documents(raws[some], keys, of)
            metas = pack.metas if ids is None else [pack.metas[i] for i in ids[some].tolist()]
            # That the newest is each message's time makes the group's newest come out right.
            times = None if pack.newest is None else pack.newest[of]
            codes = (_SLOT << SLOT_BITS) + numbers[of]
            folder.add(raws[some], codes, arrivals[some], metas, folder.columns(docs), times)

    def _set_aside(self, pack: Pack, group: int) -> None:
        self.keyless.append((pack, group))
        if pack.newest is not None:
            newest = int(pack.newest[group])
            self.newest = newest if self.newest is None else max(self.newest, newest)

    def _documents(self, raws: list[bytes], keys: list[bytes], groups: Ints) -> list[Any]:
        try:
            return parsed(raws)
        except (MessageError, ValueError):
            pairs = zip(raws, groups.tolist(), strict=True)
            return [self._document(raw, keys[group]) for raw, group in pairs]

    def _document(self, raw: bytes, key: bytes) -> Any:
        try:
            return document.for_json(Message(raw))
        except QueryError as e:
            self.broken.setdefault(key, str(e))
            return Broken(raw)

    def released(self, metas: Metas) -> Released:
        """Return the messages without a key, in order of arrival."""
        found: list[tuple[int, Message]] = []
        for pack, group in self.keyless:
            span = pack.span(group)
            ids = None if pack.meta_ids is None else pack.meta_ids[span]
            messages = metas.messages(pack.group(group), pack.metas, ids)
            found += zip(pack.arrivals[span].tolist(), messages, strict=True)
        found.sort(key=lambda entry: entry[0])
        return Released(found[0][0], b"", [message for _, message in found])


def _runs(packs: list[Pack], folded: Sequence[int]) -> Iterator[list[Pack]]:
    """Part packs into such as follow one another, with nothing between that was folded before."""
    run: list[Pack] = []
    for pack in sorted(packs, key=lambda one: one.header.first):
        if run:
            before = run[-1].header
            between = bisect(folded, before.first) < bisect(folded, pack.header.first)
            # A folder has the times of all its messages, or of none.
            unlike = (pack.newest is None) != (run[-1].newest is None)
            if between or unlike or pack.header.first <= before.last:
                yield run
                run = []
        run.append(pack)
    if run:
        yield run
