"""The packs of a pane in the store: they are put in as they come, and small ones are joined."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from streamer.core.errors import StreamerError
from streamer.window.aggregate.aggregate_codec import decode_aggregates
from streamer.window.aggregate.aggregate_codec import encode_aggregates as encode_groups
from streamer.window.aggregate.partial_aggregates import PartialAggregates, merge_partial_aggregates
from streamer.window.pack.merge_packs import merge_packs
from streamer.window.pack.pack_codec import (
    MAX_PACK_BYTES,
    Header,
    Pack,
    StoredPack,
    encode_pack,
    read_header,
)
from streamer.window.state.layout import decode_stored_pack, encode_stored_pack
from streamer.window.state.pane_index import Pane, PaneIndex
from streamer.window.state_store import StateStore

# So many packs of one level are joined into one of the next: a message is written again at most
# once for every level, of which there are few (4 KiB, 32 KiB, 256 KiB).
_PACKS_PER_JOIN: Final = 8
_SEALED_BYTES: Final = MAX_PACK_BYTES // _PACKS_PER_JOIN
# Folded groups have texts and keys in common, so that they shrink as they are joined.
_SEALED_AGGREGATED_BYTES: Final = MAX_PACK_BYTES // 4
_FIRST_LEVEL_BYTES: Final = 4096
# A call to the store costs as much as joining so many bytes.
_TINY_BYTES: Final = 32 * 1024


class IncomingPack(NamedTuple):
    """A pack that came in.

    Attributes:
        body: as `encode_pack` wrote it.
        shift: what is to be added to its arrival numbers.
        header: its header.
    """

    body: bytes
    shift: int
    header: Header


class PaneStore:
    """Puts packs into a store, takes them out, and tells the index."""

    def __init__(self, store: StateStore, index: PaneIndex) -> None:
        self._store = store
        self._index = index

    def put(
        self, pane_id: int, incoming: Iterable[IncomingPack], closed_until: int | None = None
    ) -> None:
        """Keep packs of a pane, as they are where that is worth a place of their own.

        Args:
            pane_id: the pane.
            incoming: the packs.
            closed_until: at which they are taken, if that has to be known later.
        """
        pane = self._index.get_or_create(pane_id)
        tiny: list[IncomingPack] = []
        aggregated: list[IncomingPack] = []
        for pack in incoming:
            header = pack.header
            pane.count += header.messages
            pane.size += header.payload_bytes
            pane.is_aggregated = pane.is_aggregated or header.is_aggregated
            if closed_until is not None and pane.runs and pane.runs[-1][0] == closed_until:
                pane.runs[-1][1] += header.messages
            elif closed_until is not None:
                pane.runs.append([closed_until, header.messages])
            if header.payload_bytes < _TINY_BYTES:
                tiny.append(pack)
            elif header.is_aggregated and header.payload_bytes < _SEALED_AGGREGATED_BYTES:
                aggregated.append(pack)
            else:
                self._add(pane, pack.body, pack.shift, header.payload_bytes, 0)
        for start in range(0, len(tiny), MAX_PACK_BYTES // _TINY_BYTES):
            self._add_joined(pane, tiny[start : start + MAX_PACK_BYTES // _TINY_BYTES])
        # Of a micro-batch's aggregated packs each has the same texts and keys.
        for start in range(0, len(aggregated), _PACKS_PER_JOIN):
            self._add_joined(pane, aggregated[start : start + _PACKS_PER_JOIN])
        self._compact(pane)

    def load_packs(self, pane: Pane) -> list[StoredPack]:
        """Return the packs of a pane, each with its shift; they stay where they are."""
        return [self._load_pack(pane, seq) for seq in pane.all_seqs()]

    def remove(self, pane: Pane) -> None:
        """Remove a pane and its packs."""
        for seq in pane.all_seqs():
            self._store.delete(pane.pane, seq)
        self._index.remove(pane)

    def _load_pack(self, pane: Pane, seq: int) -> StoredPack:
        value = self._store.get(pane.pane, seq)
        if value is None:
            raise StreamerError(
                f"the checkpoint lacks pack {seq} of the window pane {pane.pane}: restore it from "
                "a copy, or start from another one"
            )
        return decode_stored_pack(value)

    def _add_joined(self, pane: Pane, packs: list[IncomingPack]) -> None:
        if len(packs) == 1:
            body, shift, header = packs[0]
            self._add(pane, body, shift, header.payload_bytes, 0)
            return
        for body, raw in _join_packs(pane, [(pack.body, pack.shift) for pack in packs]):
            self._add(pane, body, 0, raw, 0)

    def _add(self, pane: Pane, body: bytes, shift: int, raw: int, level: int) -> None:
        seq = pane.next_seq
        pane.next_seq += 1
        self._store.put(pane.pane, seq, encode_stored_pack(body, shift))
        if raw >= (_SEALED_AGGREGATED_BYTES if pane.is_aggregated else _SEALED_BYTES):
            if pane.sealed and pane.sealed[-1][1] == seq - 1:
                pane.sealed[-1][1] = seq
            else:
                pane.sealed.append([seq, seq])
            return
        while raw >= _FIRST_LEVEL_BYTES * _PACKS_PER_JOIN**level:
            level += 1
        pane.loose.append([seq, level])

    def _compact(self, pane: Pane) -> None:
        """Join packs of one level while there are enough of them."""
        for level in range(64):
            same = [seq for seq, other in pane.loose if other == level]
            if len(same) >= _PACKS_PER_JOIN:
                stored = [self._load_pack(pane, seq) for seq in same[:_PACKS_PER_JOIN]]
                joined = _join_packs(pane, stored)
                for seq in same[:_PACKS_PER_JOIN]:
                    self._store.delete(pane.pane, seq)
                pane.loose = [
                    entry for entry in pane.loose if entry[0] not in same[:_PACKS_PER_JOIN]
                ]
                for body, raw in joined:
                    self._add(pane, body, 0, raw, level + 1)
            elif level > max((other for _, other in pane.loose), default=0):
                return


def _join_packs(pane: Pane, stored: list[StoredPack]) -> list[tuple[bytes, int]]:
    """Join packs of a pane: those of messages to one, aggregated groups to one for each mapping.

    Returns:
        Each with its size, by which the pane's own is corrected: aggregated groups become one.
    """
    whole: list[Pack] = []
    aggregated: dict[str, list[PartialAggregates]] = {}
    for body, shift in stored:
        if read_header(body).is_aggregated:
            groups = decode_aggregates(body, shift)
            aggregated.setdefault(groups.text, []).append(groups)
        else:
            whole.append(Pack(body, shift))
    bodies = []
    if whole:
        columns = merge_packs(whole, grouped=True)
        bodies.append((encode_pack(columns), sum(pack.header.payload_bytes for pack in whole)))
    for same in aggregated.values():
        same.sort(key=lambda groups: groups.first_arrival)
        bodies.append(encode_groups(merge_partial_aggregates(same)))
    pane.size += sum(raw for _, raw in bodies) - sum(
        read_header(body).payload_bytes for body, _ in stored
    )
    return bodies
