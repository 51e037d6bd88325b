"""The event time from which windows aggregate for a new mapping, kept in Spark's offsets.

When a stream is started with another mapping, windows that are open were folded for the one before,
and finish on it. Until the driver knows how far these reach, messages are kept whole; those are
folded for the mapping of their window when it closes. From then on, later windows fold for the new
mapping. All this is in the offsets, so that a replay folds the same.

Every process that plans micro-batches imports this: it must stay free of what a mapping needs.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class AggregatesFrom(NamedTuple):
    """The windows that aggregate for a mapping, by the mapping's identity.

    Attributes:
        identity: the mapping's; None when no window was ever folded, so that any may.
        after: event times, ns, up to this one belong to windows that were begun under another
            mapping; None when there are none.
    """

    identity: str | None
    after: int | None


FROM_THE_START: Final = AggregatesFrom(None, None)


def next_aggregates_from(
    before: AggregatesFrom, identity: str, newest_end: int | None, known: bool
) -> AggregatesFrom:
    """Return what the offset of the next micro-batch says.

    Args:
        before: what the one before says.
        identity: of the mapping of this start; empty when windows keep messages.
        newest_end: the end of the newest window that holds messages, ns; None when none does.
        known: whether `newest_end` was told by a micro-batch of this start.
    """
    if not identity or before.identity == identity:
        return before
    if before.identity is None:
        return AggregatesFrom(identity, None)
    return AggregatesFrom(identity, newest_end) if known else before
