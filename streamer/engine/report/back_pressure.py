"""Back pressure: which component of a stream holds those before it.

The terms are Flink's. A component is busy while it works on a micro-batch, an output also while it
waits to send again what has failed. It is back-pressured while a component behind it is busy: the
next micro-batch is not taken meanwhile. All other time it is idle: there is no message, or those
before it or Spark are at work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

HIGH: Final = 0.5
"""The part of the time from which back pressure is high, in Flink's web UI too."""


class NodeLoad(NamedTuple):
    """The load of a component over some time: three parts of it, which add up to 1.

    Attributes:
        busy: works, or waits to try again.
        back_pressured: is held by components behind it.
        idle: has nothing to do.
        waiting: the part of `busy` that is waiting.
        holds: whether it is the one that holds those before it.
    """

    busy: float
    back_pressured: float
    idle: float
    waiting: float
    holds: bool


class NodeShares(NamedTuple):
    """The part of the time in which a component has worked, and has waited to try again."""

    busy: float
    waiting: float


def find_back_pressure(
    shares: Mapping[str, NodeShares], order: Mapping[str, int]
) -> dict[str, NodeLoad]:
    """Return the load of each component.

    Args:
        shares: by path.
        order: where components stand on the way of a message, by path; those that stand beside each
            other have the same number, and those that are not in it stand last.

    One holds the others when the first component is back-pressured for more than half of the time,
    and it is the busiest of those behind.
    """
    last = max(order.values(), default=0)
    places = {path: order.get(path, last) for path in shares}
    total = {path: min(one.busy + one.waiting, 1.0) for path, one in shares.items()}
    loads: dict[str, NodeLoad] = {}
    for path, one in shares.items():
        busy = total[path]
        behind = sum(total[other] for other in shares if places[other] > places[path])
        held = min(behind, 1.0 - busy)
        loads[path] = NodeLoad(busy, held, max(1.0 - busy - held, 0.0), one.waiting, False)
    first = min(places, key=lambda path: places[path], default="")
    if first and loads[first].back_pressured > HIGH:
        later = [path for path in loads if places[path] > places[first]]
        holder = max(later, key=lambda path: loads[path].busy)
        loads[holder] = loads[holder]._replace(holds=True)
    return loads
