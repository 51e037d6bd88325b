"""Stage 2: a shard keeps what came in, and what is due runs through the pipeline at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import orjson

from streamer.bloblang import compile_mapping
from streamer.engine.emitted import Emitted
from streamer.engine.encode import OutputStage, Stage
from streamer.engine.folds import TOGETHER, FoldedPipeline
from streamer.engine.frame import Frame, FrameKind, Payload, frames
from streamer.engine.intake import SAID_ROWS
from streamer.engine.task import Task
from streamer.message import Batch
from streamer.pipeline import run, run_each
from streamer.plan import Plan
from streamer.window import Emission, Kind, Reading, Row, Shard, Store
from streamer.window.folds.release import FoldedGroup

_AT_ONCE: Final = ("each", "event", "count")
_TOGETHER: Final = 500
_FIRST, _LAST = -(2**63), 2**63 - 1

_PASSED_ON = {row: frame for frame, row in SAID_ROWS.items()}


def release(
    plan: Plan,
    shard: int,
    rows: Iterable[Row],
    store: Store,
    outputs: Sequence[Stage] = (),
    now: Callable[[], int] = time.time_ns,
) -> Iterator[Frame]:
    """Take the rows of one micro-batch into a shard; return what comes out of it.

    Args:
        plan: the stream's plan.
        shard: number of the shard.
        rows: what stage 1 made for it, in any order.
        store: the shard's state.
        outputs: take the place of the plan's, by the number of the output.
        now: the clock of the processors, Unix ns.
    """
    assert plan.window is not None
    kernel_rows: list[Row] = []
    ended = False
    for row in rows:
        if row.kind in _PASSED_ON:
            kind = _PASSED_ON[row.kind]
            yield Frame(kind, row.arrival, shard, row.arrival, 0, "", row.body)
            continue
        if row.kind == Kind.CLOCK:
            ended = ended or Reading.of([row.body]).ended
        kernel_rows.append(row)
    task = Task(plan.level, now, strict=plan.strict)
    ex = task.execution
    having = compile_mapping(plan.having) if plan.having else None
    text = plan.folding.text
    shard_ = Shard(plan.window, store, plan.late_output is not None, having, text)
    step = shard_.step(kernel_rows)
    processors = plan.context().all(plan.processors)
    folding = FoldedPipeline(plan, processors, ex)
    emitted = Emitted(plan, ex)
    stages = outputs or [OutputStage(plan, n, output) for n, output in enumerate(plan.outputs)]

    def singly(ones: Batch) -> Iterator[Payload]:
        """What events make come out are batches of one, and many: together they cost less."""
        if ones:
            yield from stages[0].payloads(run_each(processors, ones, ex), _FIRST, ex)

    def payloads() -> Iterator[Payload]:
        ones: Batch = []
        groups: list[FoldedGroup] = []
        before = _FIRST
        for emission in step:
            if emission.reason == "event" and len(emission.messages) == 1:
                emitted.add(emission)
                ones += emission.messages
                if len(ones) >= _TOGETHER:
                    yield from singly(ones)
                    ones = []
                continue
            yield from singly(ones)
            ones = []
            order = _order(emission)
            folded = emission.messages if isinstance(emission.messages, FoldedGroup) else None
            if groups and _ends(groups, folded, same=order == before):
                yield from stages[0].payloads(folding.run(groups), before, ex)
                groups = []
            before = order
            if folded is not None:
                emitted.add(emission)
                groups.append(folded)
                continue
            batches: Iterable[Batch] = (emission.messages,)
            if emission.reason == "dropped":
                yield from stages[1].payloads(batches, order, ex)
                continue
            emitted.add(emission)
            # The shard has grouped the window as the first processor would; only messages whose
            # key failed, which have the empty key, are still to be looked at by it.
            grouped = plan.key is not None and plan.key.replaces_grouping and emission.key
            rest = processors[1:] if grouped else processors
            batches = run(rest, batches, ex)
            yield from stages[0].payloads(batches, order, ex)
        yield from singly(ones)
        if groups:
            yield from stages[0].payloads(folding.run(groups), before, ex)

    yield from frames(payloads(), shard)
    status = step.status
    for line in status.log:
        ex.log(line.level, line.text, line.fields)
    body = orjson.dumps({**status.as_dict(), "ended": ended})
    yield Frame(FrameKind.STATUS, 0, shard, 0, 0, "", body)
    for kind, said in task.said():
        yield Frame(kind, status.now, shard, 1 << 30, 0, "", said)


def _ends(groups: list[FoldedGroup], following: FoldedGroup | None, same: bool) -> bool:
    """Tell whether groups go through the pipeline now; `same`: what follows has their order."""
    if following is None or not same or len(groups) >= TOGETHER:
        return True
    return following.text != groups[0].text


def _order(emission: Emission) -> int:
    """Return the place of a batch among those of all shards in a micro-batch."""
    if emission.end is None or emission.reason in _AT_ONCE:
        # What is in no window goes ahead of those that close, and what an event made come out
        # keeps the order of the events.
        return _FIRST
    return min(emission.end, _LAST)
