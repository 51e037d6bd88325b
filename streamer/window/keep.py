"""The packs of a pane in the store: they are put in as they come, and small ones are joined."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from streamer.errors import StreamerError
from streamer.window.folds.groups import Groups, merged
from streamer.window.folds.pack import decode
from streamer.window.folds.pack import encode as encode_groups
from streamer.window.index import Index, Pane
from streamer.window.merge import merge
from streamer.window.pack import LIMIT, Header, Pack, Stored, encode, peek
from streamer.window.store import Store

# So many packs of one level are joined into one of the next: a message is written again at most
# once for every level, of which there are few (4 KiB, 32 KiB, 256 KiB).
_JOIN: Final = 8
_SEALED: Final = LIMIT // _JOIN
# Folded groups have texts and keys in common, so that they shrink as they are joined.
_SEALED_FOLDED: Final = LIMIT // 4
_FIRST_LEVEL: Final = 4096
# A call to the store costs as much as joining so many bytes.
_TINY: Final = 32 * 1024

# What is added to a pack's arrival numbers, which is known only when it is taken, stands before it.
_SHIFT: Final = struct.Struct("<q")


class Arrived(NamedTuple):
    """A pack that came in.

    Attributes:
        body: as `pack.encode` wrote it.
        shift: what is to be added to its arrival numbers.
        header: its header.
    """

    body: bytes
    shift: int
    header: Header


class Keep:
    """Puts packs into a store, takes them out, and tells the index."""

    def __init__(self, store: Store, index: Index) -> None:
        self._store = store
        self._index = index

    def put(self, pane_id: int, arrived: Iterable[Arrived], horizon: int | None = None) -> None:
        """Keep packs of a pane, as they are where that is worth a place of their own.

        Args:
            pane_id: the pane.
            arrived: the packs.
            horizon: at which they are taken, if that has to be known later.
        """
        pane = self._index.pane(pane_id)
        tiny: list[Arrived] = []
        folded: list[Arrived] = []
        for pack in arrived:
            header = pack.header
            pane.count += header.messages
            pane.size += header.raw
            pane.folded = pane.folded or header.folded
            if horizon is not None and pane.runs and pane.runs[-1][0] == horizon:
                pane.runs[-1][1] += header.messages
            elif horizon is not None:
                pane.runs.append([horizon, header.messages])
            if header.raw < _TINY:
                tiny.append(pack)
            elif header.folded and header.raw < _SEALED_FOLDED:
                folded.append(pack)
            else:
                self._add(pane, pack.body, pack.shift, header.raw, 0)
        for start in range(0, len(tiny), LIMIT // _TINY):
            self._add_together(pane, tiny[start : start + LIMIT // _TINY])
        # Of a micro-batch's folded packs each has the same texts and keys.
        for start in range(0, len(folded), _JOIN):
            self._add_together(pane, folded[start : start + _JOIN])
        self._join(pane)

    def take(self, pane: Pane) -> list[Stored]:
        """Return the packs of a pane, each with its shift; they stay where they are."""
        return [self._get(pane, seq) for seq in pane.seqs()]

    def remove(self, pane: Pane) -> None:
        """Remove a pane and its packs."""
        for seq in pane.seqs():
            self._store.delete(pane.pane, seq)
        self._index.remove(pane)

    def _get(self, pane: Pane, seq: int) -> Stored:
        value = self._store.get(pane.pane, seq)
        if value is None:
            raise StreamerError(
                f"the checkpoint lacks pack {seq} of the window pane {pane.pane}: restore it from "
                "a copy, or start from another one"
            )
        return memoryview(value)[_SHIFT.size :], _SHIFT.unpack_from(value)[0]

    def _add_together(self, pane: Pane, packs: list[Arrived]) -> None:
        if len(packs) == 1:
            body, shift, header = packs[0]
            self._add(pane, body, shift, header.raw, 0)
            return
        for body, raw in _joined(pane, [(pack.body, pack.shift) for pack in packs]):
            self._add(pane, body, 0, raw, 0)

    def _add(self, pane: Pane, body: bytes, shift: int, raw: int, level: int) -> None:
        seq = pane.next_seq
        pane.next_seq += 1
        self._store.put(pane.pane, seq, _SHIFT.pack(shift) + body)
        if raw >= (_SEALED_FOLDED if pane.folded else _SEALED):
            if pane.sealed and pane.sealed[-1][1] == seq - 1:
                pane.sealed[-1][1] = seq
            else:
                pane.sealed.append([seq, seq])
            return
        while raw >= _FIRST_LEVEL * _JOIN**level:
            level += 1
        pane.loose.append([seq, level])

    def _join(self, pane: Pane) -> None:
        """Join packs of one level while there are enough of them."""
        for level in range(64):
            same = [seq for seq, other in pane.loose if other == level]
            if len(same) >= _JOIN:
                stored = [self._get(pane, seq) for seq in same[:_JOIN]]
                joined = _joined(pane, stored)
                for seq in same[:_JOIN]:
                    self._store.delete(pane.pane, seq)
                pane.loose = [entry for entry in pane.loose if entry[0] not in same[:_JOIN]]
                for body, raw in joined:
                    self._add(pane, body, 0, raw, level + 1)
            elif level > max((other for _, other in pane.loose), default=0):
                return


def _joined(pane: Pane, stored: list[Stored]) -> list[tuple[bytes, int]]:
    """Join packs of a pane: those of messages to one, folded groups to one for each mapping.

    Returns:
        Each with its size, by which the pane's own is corrected: folded groups become one.
    """
    whole: list[Pack] = []
    folded: dict[str, list[Groups]] = {}
    for body, shift in stored:
        if peek(body).folded:
            groups = decode(body, shift)
            folded.setdefault(groups.text, []).append(groups)
        else:
            whole.append(Pack(body, shift))
    found = []
    if whole:
        columns = merge(whole, grouped=True)
        found.append((encode(columns), sum(pack.header.raw for pack in whole)))
    for same in folded.values():
        same.sort(key=lambda groups: groups.first)
        found.append(encode_groups(merged(same)))
    pane.size += sum(raw for _, raw in found) - sum(peek(body).raw for body, _ in stored)
    return found
