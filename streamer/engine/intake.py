"""Stage 1 before a window buffer: read a piece, run the input's processors, pack by shard and pane.

Rows of packs go through the shuffle to the shards. Besides the kernel's rows there are two kinds of
ours: what stage 1 logs, counts and times, which stage 2 passes on to the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamer.bloblang import compile_mapping
from streamer.bloblang.folding import Fold
from streamer.engine.feed import feed
from streamer.engine.folding import FROM_THE_START, FoldedSince
from streamer.engine.frame import FrameKind
from streamer.engine.task import Task
from streamer.errors import StreamerError
from streamer.failure import Origin
from streamer.message import Execution
from streamer.plan import Plan
from streamer.plan.origins import origin_of
from streamer.source.replayable import Raws, Readable
from streamer.window import Kind, Packer, Reading, Row
from streamer.window.event import EventWindow
from streamer.window.event_packer import Asked, EventPacker
from streamer.window.folds.groups import fold_for
from streamer.window.kinds import Join
from streamer.window.row import PIECE_BITS
from streamer.window.words import AnyWindow

SAID_ROWS = {FrameKind.LOG: 100, FrameKind.COUNT: 101, FrameKind.TIMING: 102}
"""Row kinds of the engine, beyond those of the kernel, by the frames that they become."""


def clock_rows(plan: Plan, reading: Reading) -> Iterator[Row]:
    """Return the rows that tell every shard what time it is."""
    for shard in range(plan.shards):
        yield reading.row(shard)


def pack_piece(
    plan: Plan,
    source: Readable,
    number: int,
    piece: Any,
    t: int,
    folded: FoldedSince = FROM_THE_START,
    partition: str = "",
    label: str = "",
    arrival: int | None = None,
) -> Iterator[Row]:
    """Read one piece of a source and pack its messages.

    Args:
        plan: the stream's plan.
        source: where the piece is from.
        number: its place among the pieces of the micro-batch, from 0.
        piece: what the source made in `split`.
        t: the micro-batch's time, ns.
        folded: which windows fold, as the micro-batch's offset says.
        partition: names the source's partition that the piece is from.
        label: of the input that the piece is from, where the piece does not know it.
        arrival: the number of the first message's arrival; by that of the piece when it is None.

    Raises:
        StreamerError: the windows join two inputs, and the piece is from neither.
    """
    assert plan.window is not None
    fold = None
    early = not isinstance(plan.window, EventWindow) or plan.window.way == "panes"
    if early and plan.folding.text is not None and folded.identity in (None, plan.folding.identity):
        fold = fold_for(plan.folding.text)
    task = Task(plan.level, strict=plan.strict, live=plan.live)
    ex = task.execution
    # In the mappings of the buffer, now() is the micro-batch's time.
    at_t = Execution(lambda: t, ex.log, ex.count)
    origin = origin_of(plan.input, piece, plan.resources)
    processors = plan.context().all(origin.processors)
    side = _side(plan.window, label or origin.label)
    arrival = number << PIECE_BITS if arrival is None else arrival
    packer = _packer(plan, arrival, partition, fold, folded.after, side)
    tally = ex.tally(Origin(plan.buffer).key)
    for chunk in source.read(piece, ex):
        if isinstance(chunk, Raws) and not processors:
            packer.add_raws(chunk.raws, chunk.meta, arrival, t, at_t)
            taken = batches = len(chunk.raws)
        else:
            made = list(feed(processors, chunk, ex))
            messages = [message for batch in made for message in batch]
            packer.add_messages(messages, arrival, t, at_t)
            taken, batches = len(messages), len(made)
        arrival += taken
        tally.received += taken
        tally.batches_received += batches
        yield from packer.ready()
    yield from packer.rows()
    for kind, body in task.said():
        # Nobody waits for what is kept in a window.
        if kind in SAID_ROWS:
            yield Row(0, SAID_ROWS[kind], 0, number, body)


def _side(window: AnyWindow, label: str) -> Kind:
    """Return the kind of rows that an input's messages go in."""
    if not isinstance(window, EventWindow) or not isinstance(window.kind, Join):
        return Kind.PACK
    join = window.kind
    if label not in (join.left, join.right):
        found = f"of the input {label!r}" if label else "of an input without a label"
        raise StreamerError(
            f"a window_join of {join.left} and {join.right} got messages {found}; expected those "
            "two: correct the label"
        )
    return Kind.RIGHT if label == join.right else Kind.PACK


def _packer(
    plan: Plan,
    arrival: int,
    partition: str,
    fold: Fold | None,
    folds_after: int | None,
    side: Kind,
) -> Packer | EventPacker:
    window, key = plan.window, plan.key.compiled() if plan.key else None
    keep_dropped = plan.late_output is not None
    if isinstance(window, EventWindow):
        asked = Asked(
            compile_mapping(plan.timestamp) if plan.timestamp else None,
            key,
            compile_mapping(plan.filter) if plan.filter else None,
        )
        return EventPacker(
            window,
            plan.shards,
            asked,
            arrival,
            partition.encode(),
            keep_dropped=keep_dropped,
            fold=fold,
            folds_after=folds_after,
            kind=side,
        )
    assert window is not None
    timestamp = compile_mapping(plan.timestamp)
    return Packer(window, plan.shards, timestamp, key, keep_dropped, fold, folds_after)
