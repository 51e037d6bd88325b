"""Frames: what stage 2 hands to the driver, ready to be written, logged or counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

JOIN = 1 << 20
"""Bytes up to which neighbouring payloads of one route become one frame."""


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
    """Number payloads and join neighbours of one order, output and route."""
    seq = 0
    held: list[bytes] = []
    size = 0
    last: Payload | None = None

    def close() -> Frame:
        assert last is not None
        body = held[0] if len(held) == 1 else b"".join(held)
        return Frame(FrameKind.DATA, last.order, shard, seq, last.output, last.route, body)

    for payload in payloads:
        if last is not None and (
            not payload.joins or size >= JOIN or payload[:3] != last[:3] or not last.joins
        ):
            yield close()
            seq, held, size = seq + 1, [], 0
        last = payload
        held.append(payload.body)
        size += len(payload.body)
    if last is not None:
        yield close()
