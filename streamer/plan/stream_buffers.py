"""Several buffers of one stream: which takes what, in which order of operators, and by what clock.

Buffers behind the input are of level 0; one behind another buffer is of the level after that one's.
All of a level are one operator of Spark's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from streamer.plan.keyed_state import NO_KEYED_STATE, KeyedStatePlan
from streamer.plan.window_plan import WindowPlan, describe_window_state
from streamer.sdk.spec import Kind, ParsedComponent
from streamer.window.settings.result_times import clock_that_reaches, least_result_time

if TYPE_CHECKING:
    from streamer.plan.plan import Plan

_NO_OUTPUT: Final = ParsedComponent(Kind.OUTPUT, "drop")


@dataclass(frozen=True, slots=True)
class StreamBuffer:
    """One of several buffers of a stream.

    Attributes:
        component: the buffer as the config has it.
        windows: its windows.
        processors: the pipeline behind it.
        output: where its results go; None where only other buffers take them.
        late_output: where dropped messages go, or None.
        source: the number of the buffer whose results it takes; None for the input's messages.
        level: of the operator that it is a part of, from 0.
        has_own_times: a mapping of its own gives results their times, rather than their windows.
        keyed_state: what its pipeline keeps of each key.
    """

    component: ParsedComponent
    windows: WindowPlan
    processors: tuple[ParsedComponent, ...]
    output: ParsedComponent | None
    late_output: ParsedComponent | None
    source: int | None
    level: int
    has_own_times: bool
    keyed_state: KeyedStatePlan = NO_KEYED_STATE

    @property
    def label(self) -> str:
        """Its label."""
        return self.component.label


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


_SEPARATOR: Final = " | "


def describe_state(buffers: tuple[StreamBuffer, ...]) -> tuple[str, str]:
    """Return what the state of several buffers is bound to: their windows, and their keys."""
    windows, keys = [], []
    for one in buffers:
        window, key = one.windows.window, one.windows.key
        source = "input" if one.source is None else buffers[one.source].label
        fingerprint = one.component.name
        if window is not None:
            fingerprint = describe_window_state(window, one.windows.aggregation)
        windows.append(f"{one.level}:{one.label} from {source} {fingerprint}")
        keys.append(str(key.text if key is not None else None))
    return _SEPARATOR.join(windows), _SEPARATOR.join(keys)


def extends_state(bound: str, current: str) -> bool:
    """Return whether buffers were added behind those that a state is bound to, and nothing else.

    The windows of the others go on: the shards of a buffer are found by its place in the list. A
    level more would be an operator more, which Spark does not take into a checkpoint.

    Args:
        bound: the windows, as `describe_state` gave them.
        current: the same of the config that is to run.
    """
    if not current.startswith(bound + _SEPARATOR):
        return False
    before, after = (
        {part.split(":")[0] for part in text.split(_SEPARATOR)} for text in (bound, current)
    )
    return before == after and all(level.isdecimal() for level in before)


def find_readers(plan: Plan, number: int | None) -> tuple[int, ...]:
    """Return the numbers of the buffers that take a buffer's results; None for the input's."""
    return tuple(at for at, one in enumerate(plan.buffers) if one.source == number)


def level_count(plan: Plan) -> int:
    """Return how many operators the windows of a plan are."""
    return 1 + max((one.level for one in plan.buffers), default=0)


def outputs_of(buffers: tuple[StreamBuffer, ...]) -> tuple[ParsedComponent, ...]:
    """Return the outputs of buffers, each place in the config once."""
    return tuple({one.path: one for one in _all_outputs(buffers)}.values())


def _all_outputs(buffers: tuple[StreamBuffer, ...]) -> Iterator[ParsedComponent]:
    for one in buffers:
        yield from (output for output in (one.output, one.late_output) if output is not None)


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
