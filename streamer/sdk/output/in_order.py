"""Order among several outputs: what comes later is sent when what comes before it is taken.

An output that sends one batch at a time keeps the order of what it gets. Two of them keep it among
each other only when whoever passes batches on to them waits for the one before it gives something
to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.output.protocols import Composition, SendError, SendOrder, SendOutcome

_WAITS_TEXT: Final = "waits for a batch before it"


def waits_for_another() -> SendError:
    """Return the error of a batch that is not tried, since one before it has failed."""
    return SendError(_WAITS_TEXT, not_tried=True)


def holds_others(error: SendError | None) -> bool:
    """Return whether what comes after a batch has to wait; a rejected one is dealt with apart."""
    return error is not None and not error.is_rejected


def goes_one_by_one(outputs: Sequence[Composition]) -> bool:
    """Return whether outputs that a batch may go to in turn are to be given one batch at a time.

    That is so where two or more of them send, all of them in order, and none of them puts batches
    together: it could not, from one alone.
    """
    orders = [output.send_order for output in outputs]
    return (
        orders.count(SendOrder.KEPT) > 1
        and SendOrder.NONE not in orders
        and not any(output.joins_batches for output in outputs)
    )


def deliver_one_by_one(
    deliver: Callable[[Sequence[Batch], Execution], SendOutcome],
    batches: Sequence[Batch],
    ex: Execution,
    *,
    hold: bool,
) -> SendOutcome:
    """Send batches by calls with one each.

    Args:
        deliver: sends a list of one.
        batches: the batches, in order.
        ex: the run.
        hold: see `Composition.deliver`.
    """
    sent = SendOutcome(len(batches))
    is_blocked = False
    for number, batch in enumerate(batches):
        if is_blocked:
            sent.fail(number, waits_for_another())
            continue
        outcome = deliver([batch], ex)
        sent.written += outcome.written
        [error] = outcome.errors
        sent.errors[number] = error
        is_blocked = hold and holds_others(error)
    return sent
