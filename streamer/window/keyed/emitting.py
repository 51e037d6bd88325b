"""Gives the batches of a micro-batch in their order, as far as they are wanted."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from heapq import merge
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Final

from streamer.window.emission import Emission
from streamer.window.folds.release import FoldedGroup
from streamer.window.having import Having
from streamer.window.keyed.columns.ended import Ended
from streamer.window.keyed.moments import emissions_of, output_of
from streamer.window.keyed.outputs import Released
from streamer.window.keyed.pending import Pending
from streamer.window.status import Closed, Counters

_SHOWN: Final = 16


def emitted(
    pending: Pending,
    released: Released,
    ended: Ended,
    having: Having | None,
    counters: Counters,
    together: bool,
) -> Generator[Emission, None, tuple[Closed, ...]]:
    """Give the batches, and count them.

    Args:
        pending: what comes out.
        released: looks messages up.
        ended: sessions that were kept as columns; they come out in between.
        having: says which batches are wanted; None for all.
        counters: the shard's.
        together: give runs of batches where there are some.

    Returns:
        The first windows that came out, for people to see.
    """
    closed: list[Closed] = []
    if together and having is None and not pending.outputs and not pending.moments:
        for run in ended.runs():
            sizes = [group.size for group in run.groups]
            counters.emitted_windows += len(sizes)
            counters.emitted_messages += sum(sizes)
            shown = zip(run.ends, sizes, run.reasons, strict=True)
            closed += [Closed(*one) for one in islice(shown, _SHOWN - len(closed))]
            yield run
        return tuple(closed)
    for emission in _in_place(pending, released, ended):
        messages = emission.messages
        count = messages.size if isinstance(messages, FoldedGroup) else len(messages)
        if having is not None and not having.keeps(messages):
            counters.suppressed += count
            continue
        counters.emitted_windows += 1
        counters.emitted_messages += count
        if emission.end is not None and len(closed) < _SHOWN:
            closed.append(Closed(emission.end, count, emission.reason))
        yield emission
    return tuple(closed)


def _in_place(pending: Pending, released: Released, ended: Ended) -> Iterator[Emission]:
    """Give the batches in their order, their messages looked up."""
    outputs, moments = pending.outputs, pending.moments
    if not outputs and not moments:
        yield from ended.emissions()
        return
    if moments and not outputs:
        yield from emissions_of(moments, released.ledger, released.keyed)
        return
    # Windows that are folded and such that are not, in between.
    outputs += [output_of(moment) for moment in moments]
    outputs.sort(key=attrgetter("place"))
    if not len(ended):
        yield from released.emissions(outputs)
        return
    others = zip(ended.places(), ended.emissions(), strict=True)
    for _, emission in merge(released.placed(outputs), others, key=itemgetter(0)):
        yield emission
