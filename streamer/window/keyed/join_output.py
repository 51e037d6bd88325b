"""Builds the messages of a join: of pairs, and of events without a match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from streamer.core.errors import MessageError
from streamer.core.json.bulk import choose_parser
from streamer.core.json.parse import parse_json
from streamer.core.message import Message
from streamer.window.contract import Emission, WindowReason
from streamer.window.keyed.join_matching import EventColumns, MatchedPairs, Side
from streamer.window.keyed.join_metadata import JoinMetadata
from streamer.window.keyed.join_side import UnmatchedRow
from streamer.window.keyed.key_ids import KeyIds
from streamer.window.keyed.lazy_metadata import LazyMetadata
from streamer.window.keyed.message_rows import LoadedPack
from streamer.window.pack.metadata_codec import read_key_spelling
from streamer.window.settings.int_codec import Ints

_ROW_BITS: Final = 32
_DOCUMENTS_PER_PARSE: Final = 200
_PAIRS_PER_BATCH: Final = 500
"""Number of pairs whose messages are built together."""


class JoinOutput:
    """Builds the messages of one micro-batch; a document is parsed once for a portion of pairs."""

    def __init__(self, keyed: bool) -> None:
        """Create an output.

        Args:
            keyed: whether the join has keys, which messages then have as metadata.
        """
        self._keyed = keyed
        self._metadata = JoinMetadata()

    def emit_pairs(
        self,
        matched: MatchedPairs,
        left: Sequence[LoadedPack],
        right: Sequence[LoadedPack],
        keys: KeyIds,
    ) -> Iterator[Emission]:
        """Give the messages of pairs, each a batch of its own.

        Args:
            matched: the pairs.
            left: the packs of the left events.
            right: the packs of the right events.
            keys: the keys by id.
        """
        lefts, left_metas = _load_contents(matched.left, left)
        rights, right_metas = _load_contents(matched.right, right)
        times, others = matched.left.times, matched.right.times
        starts, ends = np.minimum(times, others), np.maximum(times, others)
        of_key = matched.left.keys

        def entries(place: int) -> dict[str, Any]:
            mine, other = left_metas[place], right_metas[place]
            end = int(ends[place])
            spelt_key = None
            if self._keyed:
                spelt_key = read_key_spelling(mine) or keys.key_of(int(of_key[place]))
            both = self._metadata.merge(mine, other)
            return self._metadata.make(both, (int(starts[place]), end), end, spelt_key, "event")

        for first in range(0, len(lefts), _PAIRS_PER_BATCH):
            last = first + _PAIRS_PER_BATCH
            sides = zip(lefts[first:last], rights[first:last], strict=True)
            messages = [
                Message(None, LazyMetadata(entries, place), None, {"left": mine, "right": other})
                for place, (mine, other) in enumerate(sides, first)
            ]
            yield Emission(None, messages, "event", is_per_message=True)

    def emit_unmatched(
        self, side: Side, unmatched: UnmatchedRow, bounds: tuple[int, int], reason: WindowReason
    ) -> Emission:
        """Return the batch of a message without a match.

        Args:
            side: the message's side.
            unmatched: the message.
            bounds: the range of times of a match, ns, both inclusive.
            reason: why it is emitted.
        """
        (doc,), (meta,) = _load_rows(unmatched.loaded, np.array([unmatched.row]))
        body = {"left": doc, "right": None} if side == "left" else {"left": None, "right": doc}
        start, end = bounds
        spelt_key = (read_key_spelling(meta) or unmatched.key) if self._keyed else None
        entries = self._metadata.make(
            self._metadata.decode(meta), bounds, unmatched.time, spelt_key, reason
        )
        messages = [Message(None, entries, None, body)]
        return Emission(end, messages, reason, unmatched.key if self._keyed else None, start)


def _load_contents(
    events: EventColumns, loaded_packs: Sequence[LoadedPack]
) -> tuple[list[Any], Sequence[bytes]]:
    """Return document and metadata by event; a message of several events is parsed once."""
    places = (events.pack_numbers << _ROW_BITS) + events.rows
    order = np.argsort(places, kind="stable")
    places = places[order]
    begins = np.diff(places, prepend=places[:1] - 1) != 0
    of = np.empty_like(order)
    of[order] = np.cumsum(begins) - 1
    distinct = places[begins]
    pack_numbers, rows = distinct >> _ROW_BITS, distinct & ((1 << _ROW_BITS) - 1)
    bounds = [0, *(np.flatnonzero(np.diff(pack_numbers)) + 1).tolist(), len(distinct)]
    docs: list[Any] = []
    metas: list[bytes] = []
    for first, last in pairwise(bounds):
        some = _load_rows(loaded_packs[pack_numbers[first]], rows[first:last])
        docs += some[0]
        metas += some[1]
    places_of_events = of.tolist()
    return [docs[place] for place in places_of_events], [metas[place] for place in places_of_events]


def _load_rows(loaded: LoadedPack, rows: Ints) -> tuple[list[Any], list[bytes]]:
    pack, payloads = loaded.pack, loaded.payloads
    docs = parse_documents([payloads[row] for row in rows.tolist()])
    if pack.meta_ids is None:
        return docs, [pack.metas[0]] * len(docs)
    metas = pack.metas
    return docs, [metas[number] for number in pack.meta_ids[rows].tolist()]


def parse_documents(raws: list[bytes]) -> list[Any]:
    """Parse payloads, a few at a time: one that needs the slow parser slows these few only."""
    documents: list[Any] = []
    for start in range(0, len(raws), _DOCUMENTS_PER_PARSE):
        some = raws[start : start + _DOCUMENTS_PER_PARSE]
        try:
            documents += map(choose_parser(some), some)
        except (ValueError, MessageError):
            del documents[start:]
            documents += map(_parse_document, some)
    return documents


def _parse_document(raw: bytes) -> Any:
    """Parse a payload; one that is not JSON becomes a string."""
    try:
        return parse_json(raw)
    except (ValueError, MessageError):
        return raw.decode(errors="replace")
