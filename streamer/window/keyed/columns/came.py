"""The messages of a micro-batch as columns, and which of them must be looked at one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from streamer.window.ints import Ints
from streamer.window.keyed.columns.lanes import Lanes
from streamer.window.keyed.columns.near import FAR
from streamer.window.keyed.columns.numbers import Bools, Numbers, joined
from streamer.window.keyed.columns.opened import picked
from streamer.window.keyed.state import NEVER
from streamer.window.merge import subset
from streamer.window.pack import Pack, encode

_NO_INTS: Final = np.empty(0, np.int64)


class Arrival(NamedTuple):
    """A pack that has come in.

    Attributes:
        pack: the pack, unpacked.
        body: the same as it came.
        shift: what is added to its arrival numbers.
        before: what its piece found the clock at.
        partition: that of its piece.
    """

    pack: Pack
    body: bytes
    shift: int
    before: int
    partition: bytes


class Numbered(dict[bytes, int]):
    """Numbers of keys: who asks for that of a new one makes it."""

    def __missing__(self, key: bytes) -> int:
        number = self[key] = len(self)
        return number


@dataclass(slots=True)
class Messages:
    """Some messages, by column.

    Attributes:
        codes: the number of the key.
        times: event times, ns.
        arrivals: numbers.
        payloads: the payload.
        metas: distinct metadata, as `encode_meta` writes it.
        meta_ids: which of it each has.
        numbers: what they bring to the parts of the mapping.
    """

    codes: Ints
    times: Ints
    arrivals: Ints
    payloads: list[bytes]
    metas: list[bytes]
    meta_ids: Ints
    numbers: list[Numbers]


class Came:
    """The messages of one micro-batch.

    Attributes:
        number: by key, its number; those of messages are the first.
        odd: by number, whether its messages must be looked at one by one.
    """

    def __init__(self, arrivals: Sequence[Arrival], lanes: Lanes, lateness: int) -> None:
        """Look at them.

        Args:
            arrivals: the packs, in order.
            lanes: the parts of the mapping.
            lateness: how far the clock may be beyond a message's time, ns.
        """
        self.number = Numbered()
        self._arrivals = arrivals
        self._codes: list[Ints] = []
        self._numbers: list[list[Numbers]] = []
        odd: list[Ints] = []
        for arrival in arrivals:
            pack = arrival.pack
            named = list(map(self.number.__getitem__, pack.keys or [b""]))
            codes = np.repeat(np.array(named, np.int64), np.diff(np.array(pack.starts)))
            self._codes.append(codes)
            numbers, rows = lanes.brought(pack.payloads())
            self._numbers.append(numbers)
            odd += [codes[some] for some in rows]
            odd.append(codes[_disordered(arrival, lateness)])
        self.odd: Bools = np.zeros(len(self.number), np.bool_)
        for some in odd:
            self.odd[some] = True

    def leave(self, keys: Iterable[bytes]) -> None:
        """Let messages of keys be looked at one by one."""
        for key in keys:
            self.odd[self.number[key]] = True

    def left(self) -> list[Arrival]:
        """Return those that must be looked at one by one, in packs of their own."""
        if not self.odd.any():
            return []
        found = []
        for arrival, codes in zip(self._arrivals, self._codes, strict=True):
            rows = np.flatnonzero(self.odd[codes])
            if len(rows) == len(codes):
                found.append(arrival)
            elif len(rows):
                columns = subset(arrival.pack, rows)
                if arrival.pack.lags is not None:
                    columns.lags = arrival.pack.lags[rows]
                body = encode(columns)
                found.append(arrival._replace(pack=Pack(body), body=body, shift=0))
        return found

    def plain(self) -> Messages:
        """Return all others."""
        metas: dict[bytes, int] = {}
        parts = []
        some_odd = bool(self.odd.any())
        for arrival, codes, numbers in zip(self._arrivals, self._codes, self._numbers, strict=True):
            pack = arrival.pack
            assert pack.times is not None
            known = np.array([metas.setdefault(meta, len(metas)) for meta in pack.metas], np.int64)
            of = np.zeros(len(codes), np.int64) if pack.meta_ids is None else pack.meta_ids
            part = Messages(
                codes, pack.times, pack.arrivals, pack.payloads(), [], known[of], numbers
            )
            parts.append(_chosen(part, ~self.odd[codes]) if some_odd else part)
        if not parts:
            return Messages(_NO_INTS, _NO_INTS, _NO_INTS, [], [], _NO_INTS, [])
        return Messages(
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.times for part in parts]),
            np.concatenate([part.arrivals for part in parts]),
            [payload for part in parts for payload in part.payloads],
            list(metas),
            np.concatenate([part.meta_ids for part in parts]),
            [joined(columns) for columns in zip(*(part.numbers for part in parts), strict=True)],
        )


def _chosen(messages: Messages, some: Bools) -> Messages:
    rows = np.flatnonzero(some)
    return Messages(
        messages.codes[rows],
        messages.times[rows],
        messages.arrivals[rows],
        picked(messages.payloads, rows),
        [],
        messages.meta_ids[rows],
        [column.take(rows) for column in messages.numbers],
    )


def _disordered(arrival: Arrival, lateness: int) -> Bools:
    """Return which messages find the clock further beyond their time than they may be late.

    Any other finds its sessions open, and closes none: these are told by times alone.
    """
    pack, before = arrival.pack, arrival.before
    times = pack.times
    assert times is not None
    odd: Bools = (times >= FAR) | (times <= -FAR)
    if pack.lags is not None:
        odd |= pack.lags > lateness
    if before != NEVER and len(times) and before - lateness > int(times.min()):
        odd |= times < before - lateness if before < FAR else True
    return odd
