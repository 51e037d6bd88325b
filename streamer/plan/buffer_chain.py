"""Questions to a plan with several buffers: who takes whose results, and by what clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from streamer.plan.plan import Plan
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.window.settings.result_times import clock_that_reaches, least_result_time

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
    """Return the numbers of the buffers that take a buffer's results; None for the input's."""
    return tuple(at for at, one in enumerate(plan.buffers) if one.source == number)


def level_count(plan: Plan) -> int:
    """Return how many operators the windows of a plan are."""
    return 1 + max((one.level for one in plan.buffers), default=0)


def keeps_at_end(plan: Plan, number: int) -> bool:
    """Return whether what a buffer holds stays in the checkpoint when the input ends."""
    at: int | None = number
    while at is not None:
        window = plan.buffers[at].windows.window
        if window is not None and window.end_of_input == "keep":
            return True
        at = plan.buffers[at].source
    return False


def upstream_time(plan: Plan, number: int, next_end: int | None) -> int | None:
    """Return the clock of a buffer behind another one, by what that one has yet to give.

    Args:
        plan: the stream's.
        number: the buffer's.
        next_end: the least end of the windows that the other one has yet to give, ns; None where
            that is not known.
    """
    one = plan.buffers[number]
    assert one.source is not None
    window = plan.buffers[one.source].windows.window
    if next_end is None or window is None:
        return None
    return least_result_time(window, next_end, one.has_own_times)


def find_system_due(plan: Plan, number: int, due_clock: int) -> int | None:
    """Return when the system clock brings a buffer's clock to a time.

    Args:
        plan: the stream's.
        number: the buffer's, whose windows follow the clock of the stream.
        due_clock: the time, ns.

    Returns:
        ns; None where no buffer before it follows the system clock.
    """
    one = plan.buffers[number]
    if one.source is None:
        return None
    window = plan.buffers[one.source].windows.window
    assert window is not None
    reaching = clock_that_reaches(window, due_clock, one.has_own_times)
    if reaching is None or not window.uses_event_time:
        return reaching
    return find_system_due(plan, one.source, reaching)
