"""The messages of a micro-batch as columns, and the keys that need the row path instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from streamer.window.keyed.columns.merge_sessions import MAX_TIME_DISTANCE_NS
from streamer.window.keyed.columns.numbers import NumberColumn, concat_numbers
from streamer.window.keyed.columns.numeric_aggregates import NumericAggregates
from streamer.window.keyed.columns.open_sessions import select_items
from streamer.window.keyed.state import NEVER
from streamer.window.pack.merge_packs import select_rows
from streamer.window.pack.pack_codec import Pack, encode_pack
from streamer.window.settings.int_codec import Bools, Ints

_EMPTY_INTS: Final = np.empty(0, np.int64)


class UnpackedPack(NamedTuple):
    """A pack that came in with this micro-batch.

    Attributes:
        pack: the pack, unpacked.
        body: the pack as it came in.
        shift: is added to its arrival numbers.
        watermark: the watermark before the piece of input that it is from, ns.
        partition: the source partition of that piece.
    """

    pack: Pack
    body: bytes
    shift: int
    watermark: int
    partition: bytes


class KeyNumbering(dict[bytes, int]):
    """Numbers of keys; reading the number of a new key gives it the next one."""

    def __missing__(self, key: bytes) -> int:
        number = self[key] = len(self)
        return number


@dataclass(slots=True)
class IncomingColumns:
    """Some messages, by column.

    Attributes:
        codes: the number of the key.
        times: event times, ns.
        arrivals: arrival numbers.
        payloads: payloads.
        metas: distinct metadata, as `encode_meta` writes it.
        meta_ids: by message, an index into `metas`.
        numbers: by aggregate of the mapping, the messages' values.
    """

    codes: Ints
    times: Ints
    arrivals: Ints
    payloads: list[bytes]
    metas: list[bytes]
    meta_ids: Ints
    numbers: list[NumberColumn]


class IncomingMessages:
    """The messages of one micro-batch.

    Attributes:
        key_numbers: the numbers of keys; keys of messages have the first ones.
        needs_row_path: by key number, whether its messages take the row path.
    """

    def __init__(
        self, arrivals: Sequence[UnpackedPack], aggregates: NumericAggregates, lateness: int
    ) -> None:
        """Split packs into messages for the column path, and keys that need the row path.

        Args:
            arrivals: the packs, in order.
            aggregates: the aggregates of the mapping.
            lateness: the allowed lateness, ns.
        """
        self.key_numbers = KeyNumbering()
        self._arrivals = arrivals
        self._codes: list[Ints] = []
        self._numbers: list[list[NumberColumn]] = []
        odd: list[Ints] = []
        for arrival in arrivals:
            pack = arrival.pack
            named = list(map(self.key_numbers.__getitem__, pack.keys or [b""]))
            codes = np.repeat(np.array(named, np.int64), np.diff(np.array(pack.starts)))
            self._codes.append(codes)
            numbers, rows = aggregates.read_messages(pack.payloads())
            self._numbers.append(numbers)
            odd += [codes[some] for some in rows]
            odd.append(codes[_find_disordered(arrival, lateness)])
        self.needs_row_path: Bools = np.zeros(len(self.key_numbers), np.bool_)
        for some in odd:
            self.needs_row_path[some] = True

    def require_row_path(self, keys: Iterable[bytes]) -> None:
        """Let the messages of keys take the row path."""
        for key in keys:
            self.needs_row_path[self.key_numbers[key]] = True

    def select_row_path(self) -> list[UnpackedPack]:
        """Return the messages of the row path, in packs of their own."""
        if not self.needs_row_path.any():
            return []
        packs = []
        for arrival, codes in zip(self._arrivals, self._codes, strict=True):
            rows = np.flatnonzero(self.needs_row_path[codes])
            if len(rows) == len(codes):
                packs.append(arrival)
            elif len(rows):
                columns = select_rows(arrival.pack, rows)
                if arrival.pack.lags is not None:
                    columns.lags = arrival.pack.lags[rows]
                body = encode_pack(columns)
                packs.append(arrival._replace(pack=Pack(body), body=body, shift=0))
        return packs

    def select_column_path(self) -> IncomingColumns:
        """Return the messages of the column path."""
        metas: dict[bytes, int] = {}
        parts = []
        some_odd = bool(self.needs_row_path.any())
        for arrival, codes, numbers in zip(self._arrivals, self._codes, self._numbers, strict=True):
            pack = arrival.pack
            assert pack.times is not None
            known = np.array([metas.setdefault(meta, len(metas)) for meta in pack.metas], np.int64)
            of = np.zeros(len(codes), np.int64) if pack.meta_ids is None else pack.meta_ids
            part = IncomingColumns(
                codes, pack.times, pack.arrivals, pack.payloads(), [], known[of], numbers
            )
            parts.append(_select_rows(part, ~self.needs_row_path[codes]) if some_odd else part)
        if not parts:
            return IncomingColumns(_EMPTY_INTS, _EMPTY_INTS, _EMPTY_INTS, [], [], _EMPTY_INTS, [])
        return IncomingColumns(
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.times for part in parts]),
            np.concatenate([part.arrivals for part in parts]),
            [payload for part in parts for payload in part.payloads],
            list(metas),
            np.concatenate([part.meta_ids for part in parts]),
            [
                concat_numbers(columns)
                for columns in zip(*(part.numbers for part in parts), strict=True)
            ],
        )


def _select_rows(messages: IncomingColumns, some: Bools) -> IncomingColumns:
    rows = np.flatnonzero(some)
    return IncomingColumns(
        messages.codes[rows],
        messages.times[rows],
        messages.arrivals[rows],
        select_items(messages.payloads, rows),
        [],
        messages.meta_ids[rows],
        [column.take(rows) for column in messages.numbers],
    )


def _find_disordered(arrival: UnpackedPack, lateness: int) -> Bools:
    """Return which messages are late, or have times too large for the column path.

    Sessions of all other messages are open, so that they depend on event times alone.
    """
    pack, watermark = arrival.pack, arrival.watermark
    times = pack.times
    assert times is not None
    odd: Bools = (times >= MAX_TIME_DISTANCE_NS) | (times <= -MAX_TIME_DISTANCE_NS)
    if pack.lags is not None:
        odd |= pack.lags > lateness
    if watermark != NEVER and len(times) and watermark - lateness > int(times.min()):
        odd |= times < watermark - lateness if watermark < MAX_TIME_DISTANCE_NS else True
    return odd
