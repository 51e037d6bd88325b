"""Several buffers of one stream: which takes what, in which order of operators, and by what clock.

Buffers behind the input alone are of level 0; one behind other buffers is of the level after the
last of theirs. All of a level are one operator of Spark's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from streamer.core.errors import StreamerError
from streamer.plan.keyed_state import NO_KEYED_STATE, KeyedStatePlan
from streamer.plan.window_plan import WindowPlan, describe_window_state
from streamer.sdk.spec import ParsedComponent


@dataclass(frozen=True, slots=True)
class StreamBuffer:
    """One of several buffers of a stream.

    Attributes:
        component: the buffer as the config has it.
        windows: its windows.
        processors: the pipeline behind it.
        output: where its results go; None where only other buffers take them.
        late_output: where dropped messages go, or None.
        sources: the numbers of the buffers whose results it takes: of a join the left side's
            before the right side's.
        takes_input: whether it takes messages of the input: also a join with one side behind the
            input does.
        level: of the operator that it is a part of, from 0.
        has_own_times: a mapping of its own gives results their times, rather than their windows.
        keyed_state: what its pipeline keeps of each key.
    """

    component: ParsedComponent
    windows: WindowPlan
    processors: tuple[ParsedComponent, ...]
    output: ParsedComponent | None
    late_output: ParsedComponent | None
    sources: tuple[int, ...]
    takes_input: bool
    level: int
    has_own_times: bool
    keyed_state: KeyedStatePlan = NO_KEYED_STATE

    @property
    def label(self) -> str:
        """Its label."""
        return self.component.label


_SEPARATOR: Final = " | "


def describe_state(buffers: tuple[StreamBuffer, ...]) -> tuple[str, str]:
    """Return what the state of several buffers is bound to: their windows, and their keys."""
    windows, keys = [], []
    for one in buffers:
        window, key = one.windows.window, one.windows.key
        names = ["input"] if one.takes_input else []
        source = " and ".join([*(buffers[number].label for number in one.sources), *names])
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


def outputs_of(buffers: tuple[StreamBuffer, ...]) -> tuple[ParsedComponent, ...]:
    """Return the outputs of buffers, each place in the config once."""
    return tuple({one.path: one for one in _all_outputs(buffers)}.values())


def _all_outputs(buffers: tuple[StreamBuffer, ...]) -> Iterator[ParsedComponent]:
    for one in buffers:
        yield from (output for output in (one.output, one.late_output) if output is not None)


def find_level(sources: Sequence[tuple[int, ...]], mine: tuple[int, ...]) -> int:
    """Return the number of buffers on the longest way to one.

    Args:
        sources: of all buffers, the numbers of those whose results they take.
        mine: those of the one.

    Raises:
        StreamerError: a buffer takes its own results.
    """
    level = 0
    before = {*mine}
    while before:
        level, before = level + 1, {source for number in before for source in sources[number]}
        if level > len(sources):
            raise StreamerError("field from: a buffer takes its own results; lint names it")
    return level
