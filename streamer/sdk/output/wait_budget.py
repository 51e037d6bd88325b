"""Budget of the time that a task waits for its outputs before unsent messages go to the driver.

A task holds one of Spark's slots while it waits, and other streams need them. So what waits for an
output longer than a bound is handed to the driver, which holds the micro-batch without a slot, and
has it sent again from time to time (`engine.undelivered`). Where nobody takes what is unsent, in
tests of configs and in a dry run, nothing bounds it (`Execution.wait_budget` is None).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from streamer.core.execution import Execution
from streamer.core.message import Batch


class UnsentBatches(NamedTuple):
    """Batches that are handed over, in order.

    Attributes:
        batches: the batches.
        text: why they were not sent.
        place: label and path of the component that could not send them.
        path: the config path of the component that they go to.
        start: of that component's outputs, the first that they go to, where it sends in sequence.
    """

    batches: Sequence[Batch]
    text: str
    place: Mapping[str, str]
    path: str
    start: int = 0


class WaitBudget:
    """The budget of one task for all of its outputs. Several threads may use this object.

    Attributes:
        cuts_tries: whether an output may end its own tries early: no component around it does
            something else with what has failed.
        hands_over: whether what is unsent may be handed over.
        place: of what is being sent, the number of the output at the end of the stream, the order,
            and the part of the micro-batch (see `engine.undelivered`).
    """

    hands_over = True
    place = (0, 0, "")

    def __init__(
        self, limit: int, hand_over: Callable[[UnsentBatches], None], *, cuts_tries: bool = False
    ) -> None:
        """Begin.

        Args:
            limit: how long the task may wait in all, in failed tries and between tries, ns.
            hand_over: takes what is unsent.
            cuts_tries: see the attribute.
        """
        self.cuts_tries = cuts_tries
        self._limit = limit
        self._hand_over = hand_over
        self._waited = 0
        self._counted_to = 0
        self._handed_over: dict[tuple[str, int], tuple[str, Mapping[str, str]]] = {}

    def wait(self, period: int, ex: Execution) -> bool:
        """Sleep, unless that is longer than the task may wait.

        Args:
            period: for how long, ns.
            ex: the run.

        Returns:
            Whether it has slept; otherwise the wait budget has ended.
        """
        now = ex.elapsed()
        self.spend(now, now + period)
        if self.is_ended:
            return False
        ex.sleep(period)
        return True

    def spend(self, start: int, end: int) -> None:
        """Count time that is waited in vain, by `Execution.elapsed`.

        What several threads wait at once counts once.
        """
        self._waited += max(end - max(start, self._counted_to), 0)
        self._counted_to = max(end, self._counted_to)

    @property
    def is_ended(self) -> bool:
        """Whether the task has waited for as long as it may."""
        return self._waited >= self._limit

    def hand_over(self, unsent: UnsentBatches) -> None:
        """Hand over what is not sent; all that comes for the same component is to follow."""
        self._handed_over.setdefault((unsent.path, unsent.start), (unsent.text, unsent.place))
        self._hand_over(unsent)

    def follows(self, batches: Sequence[Batch], path: str, start: int = 0) -> bool:
        """Hand batches over if some that go to the same component were handed over before.

        Returns:
            Whether they are; otherwise they are to be sent.
        """
        before = self._handed_over.get((path, start))
        if before is None:
            return False
        self._hand_over(UnsentBatches(batches, *before, path, start))
        return True


class NestedWaitBudget(WaitBudget):
    """The wait budget of outputs that hand nothing over: something comes after them.

    What they return as held is handed over by the one who sends to them.
    """

    hands_over = False

    def __init__(self, outer: WaitBudget) -> None:
        """Take the wait budget around it, which time is counted with."""
        super().__init__(0, lambda unsent: None, cuts_tries=outer.cuts_tries)
        self._outer = outer

    def spend(self, start: int, end: int) -> None:
        """Count time that is waited in vain."""
        self._outer.spend(start, end)

    @property
    def is_ended(self) -> bool:
        """Whether the task has waited for as long as it may."""
        return self._outer.is_ended


def with_wait_budget(ex: Execution, wait_budget: WaitBudget | None) -> Execution:
    """Return the same run with another wait budget."""
    made = copy.copy(ex)
    made.wait_budget = wait_budget
    return made


def pause_before_retry(ex: Execution, period: int) -> bool:
    """Sleep for some ns before a further try, and return whether there is to be one."""
    if ex.wait_budget is None:
        ex.sleep(period)
        return True
    slept: bool = ex.wait_budget.wait(period, ex)
    return slept


def pause_own_try(ex: Execution, period: int, took: int = 0) -> bool:
    """Do the same before a further try of an output's own.

    Args:
        ex: the run.
        period: how long to sleep, ns.
        took: how long the failed try has taken, ns.

    Returns:
        Whether there is to be one. Where a component around the output does something else with
        what has failed, the output has all the tries that its config gives it.
    """
    if ex.wait_budget is None or not ex.wait_budget.cuts_tries:
        ex.sleep(period)
        return True
    now = ex.elapsed()
    ex.wait_budget.spend(now - took, now)
    return pause_before_retry(ex, period)
