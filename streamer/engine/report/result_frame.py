"""Frames: what stage 2 hands to the driver, ready to be written, logged or counted."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import NamedTuple

MAX_JOINED_BYTES = 1 << 20
"""Bytes up to which neighbouring payloads of one route become one frame."""

RESULTS_OUTPUT = -1
"""Stands for the output of payloads that are results to be kept."""

_INT_BYTES = 8


class FrameKind(IntEnum):
    """The content of a frame."""

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
    """Requests that have been dealt with, and what answers them: see `reply_codec`."""
    MULTI_PART = 7
    """Bytes for an output that have orders of their own: the number of parts, for each its order
    and its size, and the bytes. A frame costs some hundred times what a part does: each is a row of
    Spark's. Sessions end each at a time of its own."""
    RESULT = 8
    """Results of windows that are to be kept, as `results.rows.encode_rows` makes them."""
    SAMPLE = 9
    """Samples of messages, as a JSON list of [label, path, samples]: see `message_sampler`."""
    SPAN = 10
    """What a task did and when, for a trace, as JSON: see `spans.TaskSpan`."""
    UNDELIVERED = 11
    """Batches that an output did not take in time: see `undelivered.UndeliveredBatches`."""
    WORK = 12
    """How long a task's own processors and outputs took, as JSON: see `batch_work.TaskWork`."""


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


def make_frames(payloads: Iterable[Payload], shard: int) -> Iterator[Frame]:
    """Number payloads and join neighbours of one output and route, whatever their order."""
    seq = size = 0
    pending: list[Payload] = []
    joins, of, to = False, 0, ""
    for payload in payloads:
        _, output, route, body, more = payload
        if pending and (
            not more or not joins or size >= MAX_JOINED_BYTES or output != of or route != to
        ):
            yield _join_payloads(pending, shard, seq)
            seq, pending, size = seq + 1, [], 0
        pending.append(payload)
        joins, of, to = more, output, route
        size += len(body)
    if pending:
        yield _join_payloads(pending, shard, seq)


def _join_payloads(payloads: list[Payload], shard: int, seq: int) -> Frame:
    first = payloads[0]
    bodies = [payload.body for payload in payloads]
    orders = [payload.order for payload in payloads]
    kind, whole = FrameKind.RESULT if first.output == RESULTS_OUTPUT else FrameKind.DATA, bodies
    if len(payloads) > 1 and orders.count(first.order) < len(orders):
        kind = FrameKind.MULTI_PART
        numbers = array("q", [len(payloads), *orders, *map(len, bodies)])
        whole = [numbers.tobytes(), *bodies]
    body = whole[0] if len(whole) == 1 else b"".join(whole)
    return Frame(kind, first.order, shard, seq, first.output, first.route, body)


def split_parts(frames: Iterable[Frame]) -> Iterator[Frame]:
    """Give frames of which none is in parts; the parts of one keep its number."""
    for frame in frames:
        if frame.kind != FrameKind.MULTI_PART:
            yield frame
            continue
        _, _, shard, seq, output, route, body = frame
        orders, cuts = _part_bounds(body)
        for order, (start, end) in zip(orders, pairwise(cuts), strict=True):
            part = body[start:end]
            yield Frame(FrameKind.DATA, order, shard, seq, output, route, part)


def sort_frames(frames: Iterable[Frame]) -> list[Frame]:
    """Return frames as they are delivered, none of which is in parts.

    Parts that no other frame of their output comes between are one frame: there may be a hundred
    thousand of them.
    """
    others: list[Frame] = []
    parts: dict[int, list[Frame]] = {}
    for frame in frames:
        if frame.kind == FrameKind.MULTI_PART:
            parts.setdefault(frame.output, []).append(frame)
        else:
            others.append(frame)
    between = {frame.output for frame in others if frame.kind == FrameKind.DATA}
    for output, some in parts.items():
        if output in between or len({frame.route for frame in some}) > 1:
            others += split_parts(some)
        else:
            others.append(_merge_parts(some))
    return sorted(others, key=itemgetter(slice(4)))


def _merge_parts(frames: list[Frame]) -> Frame:
    """Return the parts of frames of one output and route, in their order."""
    orders = array("q")
    bodies: list[bytes] = []
    for frame in sorted(frames, key=itemgetter(2, 3)):
        numbers, cuts = _part_bounds(frame.body)
        orders += numbers
        bodies += [frame.body[start:end] for start, end in pairwise(cuts)]
    # It is stable: parts of one order stay by the shard and the number of their frames.
    places = sorted(range(len(bodies)), key=orders.__getitem__)
    body = b"".join([bodies[place] for place in places])
    first = frames[0]
    return Frame(
        FrameKind.DATA, orders[places[0]], first.shard, first.seq, first.output, first.route, body
    )


def _part_bounds(body: bytes) -> tuple[array[int], Iterator[int]]:
    """Return the orders of the parts of a frame, and where they are cut."""
    count = int.from_bytes(body[:_INT_BYTES], sys.byteorder)
    numbers = array("q", body[_INT_BYTES : _INT_BYTES * (1 + 2 * count)])
    return numbers[:count], accumulate(numbers[count:], initial=_INT_BYTES * (1 + 2 * count))
