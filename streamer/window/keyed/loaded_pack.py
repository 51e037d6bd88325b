"""Packs of messages that are at hand, and which of their messages are gone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamer.window.pack.pack_codec import Pack
from streamer.window.settings.int_codec import Ints

Bools = NDArray[np.bool_]


@dataclass(slots=True)
class PackEntry:
    """A pack in the store.

    Attributes:
        seq: its number.
        low: of its messages' times, the least.
        high: the largest.
        count: how many messages it holds.
        gone: how many of them were given back.
        size: bytes of their payloads.
    """

    seq: int
    low: int
    high: int
    count: int
    gone: int
    size: int


class LoadedPack:
    """A pack that is at hand.

    Attributes:
        entry: where it is in the store; None when it has come in this micro-batch.
        pack: the messages.
        times: of each, or its arrival number where windows have no time.
        gone: which were given back.
        changed: whether some of them were given back in this micro-batch.
        stored: the pack as it is stored; empty when it has come from there.
    """

    __slots__ = ("entry", "pack", "times", "gone", "changed", "stored", "_payloads", "_listed")

    def __init__(
        self, pack: Pack, by_arrival: bool, stored: bytes, entry: PackEntry | None
    ) -> None:
        self.pack = pack
        times = pack.arrivals if by_arrival else pack.times
        assert times is not None
        self.times = times
        self.entry = entry
        self.gone: Bools = np.zeros(len(times), np.bool_)
        self.changed = False
        self.stored = stored
        self._payloads: list[bytes] | None = None
        self._listed: tuple[list[int], list[int]] | None = None

    def free(self, rows: Ints) -> None:
        """Mark messages as gone."""
        self.gone[rows] = True
        self.changed = True

    def keep_only(self, rows: Ints) -> None:
        """Mark all messages as gone but some; what was marked stays so."""
        others = np.ones(len(self.gone), np.bool_)
        others[rows] = False
        self.gone |= others
        self.changed = True

    @property
    def arrivals_and_times(self) -> tuple[list[int], list[int]]:
        """Arrivals and times, as lists: one by one they are faster so."""
        if self._listed is None:
            self._listed = self.pack.arrivals.tolist(), self.times.tolist()
        return self._listed

    @property
    def payloads(self) -> list[bytes]:
        """All payloads; they are kept, since whoever asks for one asks for more."""
        if self._payloads is None:
            self._payloads = self.pack.payloads()
        return self._payloads


class FreshPack(LoadedPack):
    """A pack that has come in this micro-batch.

    Attributes:
        watermark: what its piece found the clock at.
        partition: that of its piece.
        lags: by message, how far the clock before it was beyond its time; None for nowhere.
        max_watermark: the clock before any of its messages is not beyond this.
    """

    __slots__ = ("watermark", "partition", "lags", "max_watermark")

    def __init__(
        self, pack: Pack, by_arrival: bool, stored: bytes, watermark: int, partition: bytes
    ) -> None:
        super().__init__(pack, by_arrival, stored, None)
        self.watermark = watermark
        self.partition = partition
        self.lags: list[int] | None = None
        self.max_watermark = watermark
        lags = pack.lags
        if lags is not None and lags.any():
            self.lags = lags.tolist()
            self.max_watermark = max(watermark, int((self.times + lags)[lags > 0].max()))
