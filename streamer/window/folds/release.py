"""From packs to folded batches: the groups of a window whose mapping folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from streamer.bloblang.errors import QueryError, UnplacedError
from streamer.bloblang.folding import FoldedBatch
from streamer.bloblang.runtime import document
from streamer.message import Batch, Message
from streamer.window.folds.folder import Folder
from streamer.window.folds.groups import Groups, accumulator_of, fold_for, merged
from streamer.window.folds.pack import decode
from streamer.window.metas import Metas
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


def release_folded(
    folded: list[Groups], whole: list[Stored], metas: Metas
) -> Iterator[tuple[bytes | None, Batch]]:
    """Give the groups of a window.

    Args:
        folded: its folded groups, one at least.
        whole: packs of messages that are in it too; they are folded for the same mapping.
        metas: adds the window's metadata.

    Returns:
        Key and batch for each group, in order of first arrival. The key is None when there is no
        expression that gives keys. A batch is a `FoldedBatch`, but for messages without a key.
    """
    texts = by_text(folded)
    late = _Whole(texts[0][0].text, texts[0][0].key_id, [Pack(*entry) for entry in whole])
    texts[0] = sorted([*texts[0], *late.groups], key=lambda one: one.first)
    batches: list[tuple[int, bytes | None, Batch]] = []
    for same in texts:
        window = _Window(merged(same), late.broken)
        batches += window.batches(metas)
    if late.keyless:
        first, messages = late.messages(metas)
        batches.append((first, b"", messages))
    batches.sort(key=lambda entry: entry[0])
    for _, key, batch in batches:
        yield key, batch


class FoldedGroup(FoldedBatch):
    """A group of a window.

    Attributes:
        size: how many messages it stands for.
    """

    def __init__(self, first: Message, text: str, fold: Callable[[int], Any], size: int) -> None:
        super().__init__(first, text, fold)
        self.size = size


class _Window:
    """All groups of a window, and the values of their parts."""

    def __init__(self, groups: Groups, broken: dict[bytes, str]) -> None:
        self._groups = groups
        self._broken = broken
        self._parts = fold_for(groups.text).parts
        self._accumulators = [accumulator_of(part) for part in self._parts]

    def batches(self, metas: Metas) -> Iterator[tuple[int, bytes | None, Batch]]:
        """Give first arrival, key and batch of each group."""
        groups = self._groups
        for group, (key, payload, meta, size) in enumerate(
            zip(groups.keys, groups.payloads, groups.metas, groups.counts.tolist(), strict=True)
        ):
            first = metas.messages([payload], [meta], None)[0]
            batch = FoldedGroup(first, groups.text, partial(self._value, group), size)
            yield int(groups.arrivals[group]), None if groups.key_id is None else key, batch

    def _value(self, group: int, part: int) -> Any:
        broken = self._broken.get(self._groups.keys[group])
        if broken is not None and self._parts[part].origin:
            raise UnplacedError(broken)
        return self._accumulators[part].value(self._groups.states[part], group)


class _Whole:
    """Messages that were kept whole, folded now.

    Attributes:
        groups: what they are as groups.
        broken: by key, why the documents of a group cannot be looked at.
        keyless: the places of messages without a key: pack and group.
    """

    def __init__(self, text: str, key_id: int | None, packs: list[Pack]) -> None:
        self.groups: list[Groups] = []
        self.broken: dict[bytes, str] = {}
        self.keyless: list[tuple[Pack, int]] = []
        for pack in sorted(packs, key=lambda one: one.header.first):
            self._add(pack, Folder(fold_for(text), key_id))

    def _add(self, pack: Pack, folder: Folder) -> None:
        keys = pack.keys or [b""]
        for group, key in enumerate(keys):
            if pack.keys and not key:
                self.keyless.append((pack, group))
                continue
            raws = pack.group(group)
            docs = [self._document(raw, key) for raw in raws]
            span = pack.span(group)
            metas = pack.metas
            if pack.meta_ids is not None:
                metas = [pack.metas[i] for i in pack.meta_ids[span].tolist()]
            codes = np.full(len(raws), (_SLOT << SLOT_BITS) + group, np.int64)
            folder.add(raws, codes, pack.arrivals[span], metas, folder.columns(docs))
        self.groups += [groups for _, _, groups in folder.groups(_SLOT + 1, keys, None)]

    def _document(self, raw: bytes, key: bytes) -> Any:
        try:
            return document.for_json(Message(raw))
        except QueryError as e:
            self.broken.setdefault(key, str(e))
            return None

    def messages(self, metas: Metas) -> tuple[int, Batch]:
        """Return the messages without a key in order of arrival, and their first arrival."""
        found: list[tuple[int, Message]] = []
        for pack, group in self.keyless:
            span = pack.span(group)
            ids = None if pack.meta_ids is None else pack.meta_ids[span]
            messages = metas.messages(pack.group(group), pack.metas, ids)
            found += zip(pack.arrivals[span].tolist(), messages, strict=True)
        found.sort(key=lambda entry: entry[0])
        return found[0][0], [message for _, message in found]
