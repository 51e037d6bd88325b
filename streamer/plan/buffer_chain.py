"""Questions to a plan with several buffers: who takes whose results, and by what clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from streamer.plan.plan import Plan
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.window.settings.result_times import (
    ResultTimes,
    clock_that_reaches,
    least_result_time,
)

_NO_OUTPUT: Final = ParsedComponent(Kind.OUTPUT, "drop")


def plan_of_buffer(plan: Plan, number: int) -> Plan:
    """Return the plan of one of several buffers, as if there were no other.

    Args:
        plan: the stream's.
        number: the buffer's.
    """
    one = plan.buffers[number]
    windows = one.windows
    return replace(
        plan,
        buffer=one.component,
        window=windows.window,
        timestamp=windows.timestamp,
        right_timestamp=windows.right_timestamp,
        filter=windows.filter,
        gap=windows.gap,
        conditions=windows.conditions,
        having=windows.having,
        key=windows.key,
        aggregation=windows.aggregation,
        processors=one.processors,
        output=one.output or _NO_OUTPUT,
        late_output=one.late_output,
        keyed_state=one.keyed_state,
        buffers=(),
        stream_outputs=plan.outputs,
    )


def find_readers(plan: Plan, number: int | None) -> tuple[int, ...]:
    """Return the numbers of the buffers that take a buffer's results; None for the input's.

    Those of lower levels come first.
    """
    readers = [
        at
        for at, one in enumerate(plan.buffers)
        if (one.takes_input if number is None else number in one.sources)
    ]
    return tuple(sorted(readers, key=lambda at: plan.buffers[at].level))


def level_count(plan: Plan) -> int:
    """Return how many operators the windows of a plan are."""
    return 1 + max((one.level for one in plan.buffers), default=0)


def keeps_at_end(plan: Plan, number: int) -> bool:
    """Return whether what a buffer holds stays in the checkpoint when the input ends."""
    one = plan.buffers[number]
    window = one.windows.window
    if window is not None and window.end_of_input == "keep":
        return True
    return any(keeps_at_end(plan, source) for source in one.sources)


def times_of_results(plan: Plan, number: int, source: int) -> ResultTimes:
    """Return which times the results of a buffer have for one that takes them.

    Args:
        plan: the stream's.
        number: the number of the buffer that takes them.
        source: the number of the buffer that gives them.
    """
    one, before = plan.buffers[number], plan.buffers[source].windows.window
    if one.has_own_times:
        return "mapped"
    is_join = one.windows.window is not None and one.windows.window.join is not None
    return "event" if is_join and before is not None and before.join is not None else "end"


def upstream_time(plan: Plan, number: int, source: int, next_end: int | None) -> int | None:
    """Return the clock of a buffer behind another one, by what that one has yet to give.

    Args:
        plan: the stream's.
        number: the buffer's.
        source: the number of the other one.
        next_end: the least end of the windows that the other one has yet to give, ns; None where
            that is not known.
    """
    window = plan.buffers[source].windows.window
    if next_end is None or window is None:
        return None
    return least_result_time(window, next_end, times_of_results(plan, number, source))


def find_system_due(plan: Plan, number: int, due_clock: int) -> int | None:
    """Return when the system clock brings a buffer's clock to a time.

    Args:
        plan: the stream's.
        number: the buffer's, whose windows follow the clock of the stream.
        due_clock: the time, ns.

    Returns:
        ns; None where no buffer before it follows the system clock.
    """
    latest: int | None = None
    for source in plan.buffers[number].sources:
        window = plan.buffers[source].windows.window
        assert window is not None
        times = times_of_results(plan, number, source)
        reached = clock_that_reaches(window, due_clock, times)
        if reached is not None and window.uses_event_time:
            reached = find_system_due(plan, source, reached)
        if reached is None:
            return None
        latest = reached if latest is None else max(latest, reached)
    return latest
