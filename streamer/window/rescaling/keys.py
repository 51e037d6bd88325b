"""Shards that decide key by key (`keyed.step`), cut anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from streamer.errors import StreamerError
from streamer.window.event import EventWindow
from streamer.window.keyed.columns.blocks import Blocks
from streamer.window.keyed.columns.lanes import lanes_of
from streamer.window.keyed.columns.opened import Opened, all_of
from streamer.window.keyed.drawers import Drawers, Dues
from streamer.window.keyed.folds import Folds
from streamer.window.keyed.head import Head
from streamer.window.keyed.ledger import Ledger
from streamer.window.keyed.rules import rules_of
from streamer.window.keyed.state import KeyState
from streamer.window.merge import subset
from streamer.window.pack import encode
from streamer.window.rescaling.packs import ShardOf, shards_of
from streamer.window.rescaling.sums import DISAGREE, sum_of
from streamer.window.store import Store

_AT_ONCE = 4096


def rescale_keys(
    window: EventWindow, shard_of: ShardOf, stores: Sequence[Store], into: Sequence[Store]
) -> tuple[int, int]:
    """Cut them anew; see `rescale`.

    Returns:
        How many messages are held, in how many open windows.
    """
    heads = [Head.read(store, window.fingerprint) for store in stores]
    for head in heads[1:]:
        if head.clocks != heads[0].clocks:
            raise StreamerError(DISAGREE)
    arrival = max(head.next_arrival for head in heads)
    after = [_After(window, store) for store in into]
    for one in after:
        one.head.clocks, one.head.next_arrival = heads[0].clocks, arrival
    after[0].head.counters = sum_of([head.counters for head in heads])
    timeless = rules_of(window).timeless
    held_before = 0
    for store, head in zip(stores, heads, strict=True):
        ledger, blocks = _ledger(store, head, timeless), Blocks(store, head.columns)
        held_before += ledger.held + head.folded + blocks.held
        _move_records(store, head, after, shard_of)
        _move_messages(ledger, after, shard_of)
        _move_columns(blocks, after, shard_of)
    open_before = sum(head.open for head in heads)
    open_after = sum(one.finish() for one in after)
    held_after = sum(one.held for one in after)
    if (open_before, held_before) != (open_after, held_after):
        raise StreamerError(
            f"the shards had {held_before} messages in {open_before} open windows and would have "
            f"{held_after} in {open_after}: this is a bug; the checkpoint stays as it is"
        )
    return held_after, open_after


def _ledger(store: Store, head: Head, timeless: bool) -> Ledger:
    return Ledger(store, timeless, head.packs, head.next_pack)


class _After:
    """A shard that there is to be."""

    def __init__(self, window: EventWindow, store: Store) -> None:
        rules = rules_of(window)
        self.head = Head(window.fingerprint)
        self.store = store
        self.drawers = Drawers(store, {}, 1, 0, {})
        self.ledger = Ledger(store, rules.timeless, [], 0)
        self.folds = Folds(None, [], [], 0, rules.joins)
        self.blocks = Blocks(store, known=False)
        self.sessions: dict[str, list[Opened]] = {}
        self.held = 0
        self._records: list[tuple[bytes, KeyState, Dues]] = []

    def take(self, key: bytes, state: KeyState, dues: Dues, texts: Sequence[str]) -> None:
        """Take the record of a key; `texts` are the mappings of the shard that had it."""
        for window in state.windows:
            if window.folded is not None:
                window.folded.number = self.folds.number_of(texts[window.folded.number])
                self.folds.held += window.folded.absorbed
        self.folds.counted(state, 1)
        self.head.open += len(state.windows)
        self._records.append((key, state, dues))
        if len(self._records) >= _AT_ONCE:
            self._put_away()

    def finish(self) -> int:
        """Write the head; return how many windows are open."""
        self._put_away()
        self.ledger.settle()
        head, drawers = self.head, self.drawers
        if len(self.sessions) > 1:
            raise StreamerError(
                "the shards keep sessions for different mappings; start the stream once with its "
                "config, and try again"
            )
        for text, parts in self.sessions.items():
            lanes = lanes_of(text)
            assert lanes is not None
            opened = all_of(parts)
            head.open += len(opened)
            self.blocks.put_back(opened, [], text, lanes.columns)
        self.blocks.write()
        head.columns = len(self.blocks) > 0
        head.drawers, head.keys, head.least = drawers.count, drawers.keys, drawers.least
        head.packs, head.next_pack = self.ledger.head()
        head.texts, head.uses = self.folds.texts, self.folds.uses
        head.folded, head.sizes = self.folds.held, drawers.sizes
        head.write(self.store)
        self.held = self.ledger.held + self.folds.held + self.blocks.held
        return head.open

    def _put_away(self) -> None:
        self.drawers.adopt(self._records)
        self._records = []
        self.drawers.make_room()


def _move_records(store: Store, head: Head, after: Sequence[_After], shard_of: ShardOf) -> None:
    drawers = Drawers(store, head.least, head.drawers, head.keys, head.sizes)
    for _, drawer in drawers.all():
        for key, state, dues in drawer.records():
            after[shard_of(key)].take(key, state, dues, head.texts)


def _move_messages(ledger: Ledger, after: Sequence[_After], shard_of: ShardOf) -> None:
    for page in ledger.stored():
        left = ~page.gone
        shards = shards_of(page.pack.keys, shard_of, page.pack.header.key_id)
        of_message = np.repeat(shards, np.diff(page.pack.starts))
        for shard in np.unique(of_message[left]).tolist():
            rows = np.flatnonzero(left & (of_message == shard))
            after[shard].ledger.adopt(encode(subset(page.pack, rows)))


def _move_columns(blocks: Blocks, after: Sequence[_After], shard_of: ShardOf) -> None:
    for text, opened in _opened(blocks):
        shards = np.fromiter(map(shard_of, opened.keys), np.int64, len(opened))
        for shard in np.unique(shards).tolist():
            part = opened.take(np.flatnonzero(shards == shard))
            after[shard].sessions.setdefault(text, []).append(part)


def _opened(blocks: Blocks) -> Iterator[tuple[str, Opened]]:
    """Give the sessions that are kept as columns, with the mapping that they are kept for."""
    lanes = None if blocks.text is None else lanes_of(blocks.text)
    if lanes is not None:
        for number in blocks.all():
            yield lanes.text, blocks.take_out([number], lanes.columns)
