"""Frames: what stage 2 hands to the driver, ready to be written, logged or counted."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import accumulate, pairwise
from typing import NamedTuple

JOIN = 1 << 20
"""Bytes up to which neighbouring payloads of one route become one frame."""

KEPT = -1
"""Stands for the output of payloads that are results to be kept."""

_SIZE = 8


class FrameKind(IntEnum):
    """What a frame holds."""

    DATA = 0
    """Bytes for an output."""
    STATUS = 1
    """The status of a shard, as JSON."""
    LOG = 2
    """Log lines, as a JSON list of [level, text, fields]."""
    COUNT = 3
    """Counts of this micro-batch, as a JSON list of [name, number, labels]."""
    TIMING = 4
    """Times of this micro-batch, as a JSON list of [name, ns in all, {bucket: number}, labels]."""
    REJECTED = 5
    """Messages that must not be delivered, as a JSON list of [number, text, labels, source]."""
    ANSWER = 6
    """Requests that have been dealt with, and what answers them: see `answers`."""
    PARTS = 7
    """Bytes for an output that have orders of their own: the number of parts, for each its order
    and its size, and the bytes. A frame costs some hundred times what a part does: each is a row of
    Spark's. Sessions end each at a time of its own."""
    RESULT = 8
    """Results of windows that are to be kept, as `retention.rows.packed` makes them."""


class Frame(NamedTuple):
    """One row that comes back to the driver; frames are written in their natural order.

    Attributes:
        kind: a `FrameKind`.
        order: the window's end in ns, or the number of the source's piece.
        shard: the shard, or 0.
        seq: number of the frame within its shard and micro-batch.
        output: number of the output that it is for, in `Plan.written`.
        route: what the output says about the destination: a file's path, or nothing.
        body: the bytes.
    """

    kind: int
    order: int
    shard: int
    seq: int
    output: int
    route: str
    body: bytes


class Payload(NamedTuple):
    """Bytes on their way into a frame."""

    order: int
    output: int
    route: str
    body: bytes
    joins: bool


def frames(payloads: Iterable[Payload], shard: int) -> Iterator[Frame]:
    """Number payloads and join neighbours of one output and route, whatever their order."""
    seq = 0
    held: list[Payload] = []
    size = 0
    for payload in payloads:
        if held and (
            not payload.joins or size >= JOIN or payload[1:3] != held[-1][1:3] or not held[-1].joins
        ):
            yield _frame(held, shard, seq)
            seq, held, size = seq + 1, [], 0
        held.append(payload)
        size += len(payload.body)
    if held:
        yield _frame(held, shard, seq)


def _frame(held: list[Payload], shard: int, seq: int) -> Frame:
    first = held[0]
    bodies = [payload.body for payload in held]
    orders = [payload.order for payload in held]
    kind, whole = FrameKind.RESULT if first.output == KEPT else FrameKind.DATA, bodies
    if len(held) > 1 and orders.count(first.order) < len(orders):
        kind = FrameKind.PARTS
        numbers = array("q", [len(held), *orders, *map(len, bodies)])
        whole = [numbers.tobytes(), *bodies]
    body = whole[0] if len(whole) == 1 else b"".join(whole)
    return Frame(kind, first.order, shard, seq, first.output, first.route, body)


def parted(frames: Iterable[Frame]) -> Iterator[Frame]:
    """Give frames of which none is in parts; the parts of one keep its number."""
    for frame in frames:
        if frame.kind != FrameKind.PARTS:
            yield frame
            continue
        _, _, shard, seq, output, route, body = frame
        count = int.from_bytes(body[:_SIZE], sys.byteorder)
        numbers = array("q", body[_SIZE : _SIZE * (1 + 2 * count)])
        cuts = accumulate(numbers[count:], initial=_SIZE * (1 + 2 * count))
        for order, (start, end) in zip(numbers, pairwise(cuts), strict=False):
            part = body[start:end]
            yield Frame(FrameKind.DATA, order, shard, seq, output, route, part)
