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
from streamer.window.keyed.pages import Page
from streamer.window.keyed.waiting import Alone
from streamer.window.labels import EMIT, END, END_MS, KEY, NEWEST, START, START_MS, key_text
from streamer.window.metadata import decode_meta, spelling_of

_ROW_BITS: Final = 32
_TOGETHER: Final = 200


class Joined:
    """Makes messages for one micro-batch; documents are parsed once for a portion of pairs."""

    def __init__(self, names: Mapping[bytes, int], keyed: bool) -> None:
        """Prepare.

        Args:
            names: the numbers of keys, in their order from 0; it may still grow.
            keyed: whether messages are told of a key.
        """
        self._names = names
        self._keyed = keyed
        self._seconds: dict[int, str] = {}
        self._metas: dict[bytes, Mapping[str, Any]] = {}
        self._together: dict[tuple[bytes, bytes], Mapping[str, Any]] = {}

    def pairs(
        self, found: Pairs, left: Sequence[Page], right: Sequence[Page]
    ) -> Iterator[Emission]:
        """Give a batch for every pair.

        Args:
            found: the pairs.
            left: the pages that the left events are on.
            right: the pages of the right ones.
        """
        lefts, rights = _contents(found.left, left), _contents(found.right, right)
        times = zip(found.left.times.tolist(), found.right.times.tolist(), strict=True)
        names = list(self._names)
        keys = [names[number] for number in found.left.keys.tolist()]
        for mine, other, (time, beside), key in zip(lefts, rights, times, keys, strict=True):
            start, end = (time, beside) if time <= beside else (beside, time)
            meta = self._both(mine[1], other[1])
            body = {"left": mine[0], "right": other[0]}
            told = spelling_of(mine[1]) or key
            yield self._emission(body, meta, start, end, end, (key, told), "event")

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
        ((doc, meta),) = _on_page(one.page, np.array([one.row]))
        body = {"left": doc, "right": None} if side == "left" else {"left": None, "right": doc}
        key = one.key, spelling_of(meta) or one.key
        return self._emission(body, self._decoded(meta), *bounds, one.time, key, reason)

    def _emission(
        self,
        body: dict[str, Any],
        meta: Mapping[str, Any],
        start: int,
        end: int,
        newest: int,
        key: tuple[bytes, bytes],
        reason: WindowReason,
    ) -> Emission:
        """Make a batch; a key is told in the spelling of the message, the left one of a pair."""
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
        if self._keyed:
            found[KEY] = key_text(key[1])
        messages = [Message(None, found, None, body)]
        return Emission(end, messages, reason, key[0] if self._keyed else None, start)

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


def _contents(events: Events, sheets: Sequence[Page]) -> Iterator[tuple[Any, bytes]]:
    """Give document and metadata of each event; one that is there twice is parsed once."""
    places = (events.pages << _ROW_BITS) + events.rows
    order = np.argsort(places, kind="stable")
    places = places[order]
    begins = np.diff(places, prepend=places[:1] - 1) != 0
    of = np.empty_like(order)
    of[order] = np.cumsum(begins) - 1
    distinct = places[begins]
    pages, rows = distinct >> _ROW_BITS, distinct & ((1 << _ROW_BITS) - 1)
    bounds = [0, *(np.flatnonzero(np.diff(pages)) + 1).tolist(), len(distinct)]
    found: list[tuple[Any, bytes]] = []
    for first, last in pairwise(bounds):
        found += _on_page(sheets[pages[first]], rows[first:last])
    return map(found.__getitem__, of.tolist())


def _on_page(page: Page, rows: Ints) -> list[tuple[Any, bytes]]:
    pack, payloads = page.pack, page.payloads
    docs = _documents([payloads[row] for row in rows.tolist()])
    if pack.meta_ids is None:
        meta = pack.metas[0]
        return [(doc, meta) for doc in docs]
    metas = pack.metas
    return [(doc, metas[i]) for doc, i in zip(docs, pack.meta_ids[rows].tolist(), strict=True)]


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
