"""The messages that a join makes: a pair, or what has found no match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from streamer.documents import parser_for
from streamer.durations import MILLISECOND, SECOND
from streamer.errors import MessageError
from streamer.message import Message
from streamer.timestamps import format_rfc3339
from streamer.value import parse_json
from streamer.window.emission import Emission, WindowReason
from streamer.window.ints import Ints
from streamer.window.keyed.joins import Events, Pairs, Side
from streamer.window.keyed.key_numbers import KeyNumbers
from streamer.window.keyed.pages import Page
from streamer.window.keyed.told import Told
from streamer.window.keyed.waiting import Alone
from streamer.window.labels import EMIT, END, END_MS, KEY, NEWEST, START, START_MS, key_text
from streamer.window.metadata import decode_meta, spelling_of

_ROW_BITS: Final = 32
_TOGETHER: Final = 200
_AT_ONCE: Final = 500
"""So many messages of pairs are made together."""


class Joined:
    """Makes messages for one micro-batch; documents are parsed once for a portion of pairs."""

    def __init__(self, keyed: bool) -> None:
        """Prepare.

        Args:
            keyed: whether messages are told of a key.
        """
        self._keyed = keyed
        self._seconds: dict[int, str] = {}
        self._metas: dict[bytes, Mapping[str, Any]] = {}
        self._together: dict[tuple[bytes, bytes], Mapping[str, Any]] = {}

    def pairs(
        self, found: Pairs, left: Sequence[Page], right: Sequence[Page], keys: KeyNumbers
    ) -> Iterator[Emission]:
        """Give the messages of pairs, each a batch by itself.

        Args:
            found: the pairs.
            left: the pages that the left events are on.
            right: the pages of the right ones.
            keys: what the numbers of the pairs' keys stand for.
        """
        lefts, left_metas = _contents(found.left, left)
        rights, right_metas = _contents(found.right, right)
        times, others = found.left.times, found.right.times
        starts, ends = np.minimum(times, others), np.maximum(times, others)
        of_key = found.left.keys

        def entries(place: int) -> dict[str, Any]:
            mine, other = left_metas[place], right_metas[place]
            end = int(ends[place])
            told = None
            if self._keyed:
                told = spelling_of(mine) or keys.key(int(of_key[place]))
            both = self._both(mine, other)
            return self._told(both, (int(starts[place]), end), end, told, "event")

        for first in range(0, len(lefts), _AT_ONCE):
            last = first + _AT_ONCE
            sides = zip(lefts[first:last], rights[first:last], strict=True)
            messages = [
                Message(None, Told(entries, place), None, {"left": mine, "right": other})
                for place, (mine, other) in enumerate(sides, first)
            ]
            yield Emission(None, messages, "event", apart=True)

    def alone(
        self, side: Side, one: Alone, bounds: tuple[int, int], reason: WindowReason
    ) -> Emission:
        """Give the batch of a message that has found no match.

        Args:
            side: the message's.
            one: the message.
            bounds: between which times its match would have been, both inclusive.
            reason: why it comes out now.
        """
        (doc,), (meta,) = _on_page(one.page, np.array([one.row]))
        body = {"left": doc, "right": None} if side == "left" else {"left": None, "right": doc}
        start, end = bounds
        told = (spelling_of(meta) or one.key) if self._keyed else None
        entries = self._told(self._decoded(meta), bounds, one.time, told, reason)
        messages = [Message(None, entries, None, body)]
        return Emission(end, messages, reason, one.key if self._keyed else None, start)

    def _told(
        self,
        meta: Mapping[str, Any],
        bounds: tuple[int, int],
        newest: int,
        key: bytes | None,
        reason: WindowReason,
    ) -> dict[str, Any]:
        """Return metadata; a key is told in the spelling of the message, the left one of a pair."""
        start, end = bounds
        ends = self._text(end)
        found = {
            **meta,
            START: self._text(start),
            END: ends,
            START_MS: start // MILLISECOND,
            END_MS: end // MILLISECOND,
            EMIT: reason,
            NEWEST: ends if newest == end else self._text(newest),
        }
        if key is not None:
            found[KEY] = key_text(key)
        return found

    def _text(self, time: int) -> str:
        """Return a time as text: most of them lie in a few seconds, which are written once."""
        second, rest = divmod(time, SECOND)
        text = self._seconds.get(second)
        if text is None:
            text = self._seconds[second] = format_rfc3339(second * SECOND)[:-1]
        return f"{text}.{rest:09d}".rstrip("0") + "Z" if rest else text + "Z"

    def _both(self, left: bytes, right: bytes) -> Mapping[str, Any]:
        """Return the metadata of both sides; what both have is the left one's."""
        both = self._together.get((left, right))
        if both is None:
            both = {**self._decoded(right), **self._decoded(left)}
            self._together[left, right] = both
        return both

    def _decoded(self, meta: bytes) -> Mapping[str, Any]:
        found = self._metas.get(meta)
        if found is None:
            found = self._metas[meta] = decode_meta(meta)[0]
        return found


def _contents(events: Events, sheets: Sequence[Page]) -> tuple[list[Any], Sequence[bytes]]:
    """Return document and metadata of each event; one that is there twice is parsed once."""
    places = (events.pages << _ROW_BITS) + events.rows
    order = np.argsort(places, kind="stable")
    places = places[order]
    begins = np.diff(places, prepend=places[:1] - 1) != 0
    of = np.empty_like(order)
    of[order] = np.cumsum(begins) - 1
    distinct = places[begins]
    pages, rows = distinct >> _ROW_BITS, distinct & ((1 << _ROW_BITS) - 1)
    bounds = [0, *(np.flatnonzero(np.diff(pages)) + 1).tolist(), len(distinct)]
    docs: list[Any] = []
    metas: list[bytes] = []
    for first, last in pairwise(bounds):
        some = _on_page(sheets[pages[first]], rows[first:last])
        docs += some[0]
        metas += some[1]
    chosen = of.tolist()
    return [docs[place] for place in chosen], [metas[place] for place in chosen]


def _on_page(page: Page, rows: Ints) -> tuple[list[Any], list[bytes]]:
    pack, payloads = page.pack, page.payloads
    docs = _documents([payloads[row] for row in rows.tolist()])
    if pack.meta_ids is None:
        return docs, [pack.metas[0]] * len(docs)
    metas = pack.metas
    return docs, [metas[number] for number in pack.meta_ids[rows].tolist()]


def _documents(raws: list[bytes]) -> list[Any]:
    """Return what payloads say; a number that asks for a slow parser slows its neighbours only."""
    found: list[Any] = []
    for start in range(0, len(raws), _TOGETHER):
        some = raws[start : start + _TOGETHER]
        try:
            found += map(parser_for(some), some)
        except (ValueError, MessageError):
            del found[start:]
            found += map(_document, some)
    return found


def _document(raw: bytes) -> Any:
    """Return what a payload says; one that is no JSON is a text."""
    try:
        return parse_json(raw)
    except (ValueError, MessageError):
        return raw.decode(errors="replace")
