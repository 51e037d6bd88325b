"""The row that carries everything from stage 1 to a shard: packs, the clock, counters."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

PIECE_BITS: Final = 40
"""An arrival number is the number of the piece, then so many bits for the message in it."""


class RowKind(IntEnum):
    """Content of a row; the numbers are part of the format."""

    PACK = 0
    """Messages of one pane; `pane` is its id."""
    NOW = 1
    """Messages whose mapping said now(): the shard, which knows the time, gives them their pane."""
    EXACT = 2
    """Messages whose own time is exactly the micro-batch's, which is in `pane`."""
    CLOCK = 3
    """The micro-batch's time and what the driver knows (`MicroBatchInfo`), one for every shard."""
    COUNT = 4
    """Counters of stage 1 as JSON, for shard 0."""
    FAILED = 5
    """Messages that were marked as failed upstream: they pass by."""
    DROPPED = 6
    """Messages that stage 1 dropped, for `late_output`."""
    NEWEST_PANE = 7
    """The newest pane of stage 1, for every shard: a flush must move `closed_until` alike. `body`
    is one byte, the kind by which `pane` is to be read."""
    PIECE = 8
    """What a piece of an event-time stream did to its clock, for every shard: `pane` is the largest
    event time that it took, `arrival` its smallest arrival number, `body` names its partition."""
    DISORDERED = 9
    """Messages of one pane as in `PACK`, of which the clock of their piece had closed a window
    before they came; the pack has their event times and lags."""
    RIGHT = 10
    """Messages of one pane as in `PACK`, of the right side of a join."""


class ShuffleRow(NamedTuple):
    """One row of the shuffle.

    Attributes:
        shard: the shard that takes it, from 0.
        kind: a `RowKind`.
        pane: the pane's id, or what the kind says.
        arrival: the smallest arrival number in the body; 0 where the kind has none.
        body: a pack (`encode_pack`), JSON, or nothing.
    """

    shard: int
    kind: int
    pane: int
    arrival: int
    body: bytes
